// MCP servers that are plugins, called by both TypeScript clients, over stdio.
//
//     node servers.mjs SERVER PLUGINS NAME...
//
// SERVER is the binary; PLUGINS a folder with the plugins NAME..., each of which adds and divides.

import { execFileSync } from 'node:child_process';
import { isDeepStrictEqual } from 'node:util';

import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as FormerClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as FormerTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

import { check, counted } from './checks.mjs';

const [server, plugins, ...names] = process.argv.slice(2);
// Large plugins take a minute to compile.
execFileSync(server, ['compile', '--plugins', plugins]);

const ME = { name: 'toolbay-tests', version: '0' };
const COMMAND = { command: server, args: ['serve', '--plugins', plugins], stderr: 'ignore' };

/** The timeout for loading the plugins. */
const PATIENCE = 120_000;

/** Waits until the plugins are loaded and in the compile cache. */
async function offered(client) {
  const until = Date.now() + PATIENCE;
  for (;;) {
    const tools = (await client.listTools()).tools.map((tool) => tool.name);
    if (names.every((name) => tools.includes(`${name}_divide`))) return;
    if (Date.now() > until) throw new Error(`not all of ${names} are there: ${tools}`);
  }
}

async function converse(who, client, transport) {
  await client.connect(transport);
  await offered(client);
  for (const name of names) {
    const call = (tool, b) => client.callTool({ name: `${name}_${tool}`, arguments: { a: 1, b } });
    const added = await call('add', 2.5);
    check(`${who}: ${name} adds`, isDeepStrictEqual(added.structuredContent, { sum: 3.5 }), added);
    const divided = await call('divide', 4);
    check(`${who}: ${name} divides`, divided.content[0].text === '0.25', divided);
    const refused = await call('divide', 0);
    const said = refused.isError && refused.content[0].text === 'Nothing can be divided by zero.';
    check(`${who}: ${name} does not divide by zero`, said, refused);
  }
  await client.close();
}

const clients = [
  ['TypeScript, stateless', () => [new Client(ME, { versionNegotiation: { mode: 'auto' } }), new StdioClientTransport(COMMAND)]],
  ['TypeScript, with a session', () => [new Client(ME, { versionNegotiation: { mode: 'legacy' } }), new StdioClientTransport(COMMAND)]],
  ['TypeScript before', () => [new FormerClient(ME, {}), new FormerTransport(COMMAND)]],
];
for (const [who, make] of clients) {
  try {
    await converse(who, ...make());
  } catch (error) {
    check(`${who}: the conversation goes on to its end`, false, String(error));
  }
}
process.exit(counted());
