// The previous TypeScript SDK, with its own transports, against the real server.
//
//     node client_v1.mjs MODE TRANSPORT SERVER PLUGINS NEWCOMER
//
// The arguments are those of client.mjs. MODE is `legacy`, and TRANSPORT may also
// be `sse`.

import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport, getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

import { check, counted } from './checks.mjs';
import { addGuests, overHttp } from './serving.mjs';
import { CAPABILITIES, Person, surface } from './surface.mjs';
import { TASKS, tasks } from './tasks.mjs';

// The timeout of the whole conversation, in milliseconds.
const PATIENCE = 180_000;

const [, transport, server, plugins, newcomer] = process.argv.slice(2);

async function converse(client, folder) {
  const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
  let changed;
  const told = () => new Promise((resolve) => (changed = resolve));
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => changed?.());
  const logged = [];
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => logged.push(params.data));

  check('lists tools', (await names()).includes('calculate_sum'));
  const sum = await client.callTool({ name: 'calculate_sum', arguments: { a: 1, b: 2.5 } });
  check('calls a tool', isDeepStrictEqual(sum.structuredContent, { sum: 3.5 }), sum);
  const steps = [];
  const onprogress = ({ progress }) => steps.push(progress);
  await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, undefined, { onprogress });
  check('progress comes as it is made', isDeepStrictEqual(steps, [0, 50, 100]), steps);
  await client.setLoggingLevel('info');
  await client.callTool({ name: 'test_tool_with_logging', arguments: {} });
  check('log lines come', logged.length === 3, logged);
  // It computes forever, and blocks all other calls of its plugin.
  const giveUp = new AbortController();
  const begun = { signal: giveUp.signal, onprogress: () => giveUp.abort('changed my mind') };
  const endless = client.callTool({ name: 'loop_forever', arguments: {} }, undefined, begun);
  const ended = await endless.then(() => 'an answer', () => 'given up');
  check('a call can be given up', ended === 'given up', ended);
  const one = await client.callTool({ name: 'count', arguments: {} });
  check('it ends, so that the next one gets its turn', one.content[0].text === '1', one);
  await surface(client, person, subscribe, check);
  await tasks(client, person, transport === 'stdio', check);
  // The first notification may be that of the start, so the client lists again
  // after each.
  let next = told();
  copyFileSync(newcomer, join(folder, 'newcomer.wasm'));
  do {
    await next;
    next = told();
  } while (!(await names()).includes('shout'));
  check('is told of a new tool', true);
}

/** Subscribes to a resource; see `surface`. */
async function subscribe(uri) {
  const updates = new Promise((resolve) => {
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => resolve(params.uri));
  });
  await client.subscribeResource({ uri });
  return () => updates;
}

const root = mkdtempSync(join(tmpdir(), 'toolbay-'));
const person = new Person();
const client = new Client({ name: 'toolbay-tests', version: '0' }, { capabilities: { ...CAPABILITIES, ...TASKS } });
client.setRequestHandler(ElicitRequestSchema, ({ params }) => person.elicit(params));
client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => person.sample(params));
client.setRequestHandler(ListRootsRequestSchema, () => person.roots());
let timer;
let served;
try {
  const folder = join(root, 'plugins');
  mkdirSync(folder);
  copyFileSync(join(plugins, 'calculator.wasm'), join(folder, 'calculator.wasm'));
  addGuests(newcomer, folder);
  const env = { ...getDefaultEnvironment(), XDG_CACHE_HOME: join(root, 'cache') };
  // So that all tools are available immediately, even on a slow machine.
  execFileSync(server, ['compile', '--plugins', folder], { env, stdio: 'pipe' });
  let to;
  if (transport === 'stdio') {
    const args = ['serve', '--plugins', folder, '--log', 'warn'];
    to = new StdioClientTransport({ command: server, args, env, cwd: root });
  } else {
    served = await overHttp(server, folder, env);
    to = transport === 'sse' ? new SSEClientTransport(new URL('/sse', served.url)) : new StreamableHTTPClientTransport(served.url);
  }
  await client.connect(to);
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${PATIENCE / 1000} s`)), PATIENCE);
  });
  await Promise.race([converse(client, folder), late]);
} catch (error) {
  check('the conversation goes on to its end', false, `${error.name}: ${error.message}`);
} finally {
  clearTimeout(timer);
  await client.close();
  if (served) check('the server ends well', (await served.end()) === 0);
  rmSync(root, { recursive: true, force: true });
}
process.exitCode = counted();
