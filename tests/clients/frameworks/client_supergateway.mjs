// supergateway between a client and the real server: see harness.mjs. TRANSPORT is the transport of the server, and
// MODE is that of the gateway.

import { fileURLToPath } from 'node:url';

import { freePort, listening, main } from './harness.mjs';
import { official, toProgram, toUrl } from './official.mjs';

const PROGRAM = fileURLToPath(new URL('node_modules/supergateway/dist/index.js', import.meta.url));

/** Quotes a word of a command line for a shell. */
const quoted = (word) => `'${word}'`;

await main(async ({ mode, transport, command, args, env, url }) => {
  if (mode === 'stdio') {
    const from = transport === 'sse' ? '--sse' : '--streamableHttp';
    // It forwards responses, but not notifications.
    return { ...(await official(toProgram(process.execPath, [PROGRAM, from, url], env))), changed: undefined };
  }
  const port = await freePort();
  const line = [command, ...args].map(quoted).join(' ');
  const gateway = [PROGRAM, '--stdio', line, '--outputTransport', mode, '--port', `${port}`];
  if (mode === 'streamableHttp') gateway.push('--stateful');
  const { end } = await listening(process.execPath, gateway, env, /(Listening on port)/);
  const path = mode === 'sse' ? 'sse' : 'mcp';
  // After SIGTERM, it sometimes waits forever. The server ends at the end of its input.
  return official(toUrl(mode, `http://127.0.0.1:${port}/${path}`), () => end('SIGKILL'));
});
