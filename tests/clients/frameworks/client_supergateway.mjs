// supergateway between a client and the real server: see harness.mjs. TRANSPORT is what the server speaks, and MODE what the
// gateway makes of it.

import { fileURLToPath } from 'node:url';

import { freePort, listening, main } from './harness.mjs';
import { official, toProgram, toUrl } from './official.mjs';

const PROGRAM = fileURLToPath(new URL('node_modules/supergateway/dist/index.js', import.meta.url));

/** A word of a command line for a shell. */
const quoted = (word) => `'${word}'`;

await main(async ({ mode, transport, command, args, env, url }) => {
  if (mode === 'stdio') {
    const from = transport === 'sse' ? '--sse' : '--streamableHttp';
    // It passes on what answers a request, and no notifications.
    return { ...(await official(toProgram(process.execPath, [PROGRAM, from, url], env))), changed: undefined };
  }
  const port = await freePort();
  const line = [command, ...args].map(quoted).join(' ');
  const gateway = [PROGRAM, '--stdio', line, '--outputTransport', mode, '--port', `${port}`];
  if (mode === 'streamableHttp') gateway.push('--stateful');
  const { end } = await listening(process.execPath, gateway, env, /(Listening on port)/);
  const path = mode === 'sse' ? 'sse' : 'mcp';
  // Asked to end, it sometimes waits for ever; the server ends with its input.
  return official(toUrl(mode, `http://127.0.0.1:${port}/${path}`), () => end('SIGKILL'));
});
