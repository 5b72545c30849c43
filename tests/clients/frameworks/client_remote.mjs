// mcp-remote between a client that supports only stdio and the real server over HTTP: see harness.mjs.

import { fileURLToPath } from 'node:url';

import { main } from './harness.mjs';
import { official, toProgram } from './official.mjs';

const PROGRAM = fileURLToPath(new URL('node_modules/mcp-remote/dist/proxy.js', import.meta.url));

await main(({ mode, transport, root, env, url }) => {
  const args = [PROGRAM, url, '--transport', `${transport}-only`, '--protocol', mode];
  return official(toProgram(process.execPath, args, { ...env, MCP_REMOTE_CONFIG_DIR: root }));
});
