// The official TypeScript client against the real server.
//
//     node client.mjs MODE TRANSPORT SERVER PLUGINS NEWCOMER
//
// MODE is `legacy` or `auto`; TRANSPORT `stdio` or `http`; SERVER the binary; PLUGINS a folder with the sample
// plugins; NEWCOMER a further plugin, with the tool `shout`, which the test adds later.

import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport, getDefaultEnvironment } from '@modelcontextprotocol/client/stdio';

import { check, counted } from './checks.mjs';
import { size } from './png.mjs';
import { GUESTS, addGuests, overHttp } from './serving.mjs';
import { CAPABILITIES, Person, surface } from './surface.mjs';

const SAMPLES = ['calculator', 'chart', 'qr', 'text', 'time'];
const CALLS = JSON.parse(readFileSync(new URL('calls.json', import.meta.url)));

// The maximum time in milliseconds from a change in the folder to the notification of the client, on a busy machine.
// The time on an idle machine is printed, and `cargo xtask demo` shows it.
const AT_ONCE = 5000;

// The maximum number of attempts for a change that took longer.
const ATTEMPTS = 3;

// The first revision in which a client requests notifications with `subscriptions/listen`.
const STREAMS_SINCE = '2026-07-28';

// The timeout of the whole conversation, in milliseconds.
const PATIENCE = 180_000;

const [mode, transport, server, plugins, newcomer] = process.argv.slice(2);

/** The times of the server's notifications that its tools changed. */
class News {
  #arrived = [];
  #waiting = null;

  take() {
    this.#arrived.push(performance.now());
    this.#waiting?.();
  }

  /** Waits for the next notification, and returns its time. */
  async wait() {
    if (this.#arrived.length === 0) await new Promise((resolve) => (this.#waiting = resolve));
    return this.#arrived.shift();
  }
}

async function names(client) {
  return (await client.listTools()).tools.map((tool) => tool.name);
}

/**
 * Makes a change. Returns the milliseconds from its end to the notification after which the list of tools is correct.
 */
async function toldAfter(client, news, change, fits) {
  const begun = performance.now();
  change();
  const ended = performance.now();
  for (;;) {
    const at = await news.wait();
    if (at >= begun && fits(await names(client))) return Math.max(at - ended, 0);
  }
}

/** Returns whether `whole` contains all members of `part`. */
function contains(whole, part) {
  if (part === null || typeof part !== 'object' || Array.isArray(part)) return isDeepStrictEqual(whole, part);
  if (whole === null || typeof whole !== 'object') return false;
  return Object.keys(part).every((key) => contains(whole[key], part[key]));
}

/** Returns the difference between a result and the expected one; nothing if there is none. */
function judge(call, result) {
  if (result.isError) return `isError: ${JSON.stringify(result.content)}`;
  if (call.structured && !contains(result.structuredContent, call.structured)) {
    return `structured content ${JSON.stringify(result.structuredContent)}`;
  }
  const texts = result.content.filter((block) => block.type === 'text').map((block) => block.text);
  if (call.text && !texts.some((text) => text.startsWith(call.text))) return `texts ${JSON.stringify(texts)}`;
  if (!call.image) return '';
  const images = result.content.filter((block) => block.type === 'image');
  if (images.length !== 1 || images[0].mimeType !== 'image/png') return `not one PNG: ${images.map((i) => i.mimeType)}`;
  try {
    const { width, height } = size(Buffer.from(images[0].data, 'base64'));
    return isDeepStrictEqual({ width, height }, call.image) ? '' : `the picture is ${width} by ${height}`;
  } catch (error) {
    return `the picture is broken: ${error.message}`;
  }
}

/** Returns the code of the error with which a call ends. */
async function errorCode(call) {
  try {
    return `a result: ${JSON.stringify(await call)}`;
  } catch (error) {
    return error.code;
  }
}

async function converse(client, news, folder) {
  const version = client.getNegotiatedProtocolVersion();
  const fitting = version >= '2025-11-25' && (mode === 'auto' || version === '2025-11-25');
  check(`connects, with revision ${version}`, fitting);

  const expected = CALLS.map((call) => call.tool).sort();
  let found = await names(client);
  while (found.length < expected.length) {
    await news.wait();
    found = await names(client);
  }
  check(`lists the ${expected.length} tools of the five samples`, isDeepStrictEqual(found.toSorted(), expected), found);
  const { tools } = await client.listTools();
  const bare = tools.filter((tool) => !(tool.description && tool.inputSchema.type === 'object'));
  check('every tool has a description and an input schema', bare.length === 0, bare);
  const structured = tools.filter((tool) => tool.outputSchema).map((tool) => tool.name);
  const promised = CALLS.filter((call) => call.structured).map((call) => call.tool);
  check('tools that return data declare its schema', isDeepStrictEqual(structured.sort(), promised.sort()), structured);

  for (const call of CALLS) {
    const problem = judge(call, await client.callTool({ name: call.tool, arguments: call.arguments }));
    check(call.tool + (call.image ? ' draws a PNG that decodes' : ' returns what it should'), !problem, problem);
  }

  let code = await errorCode(client.callTool({ name: 'no_such_tool', arguments: {} }));
  check('an unknown tool is error -32602', code === -32602, String(code));
  const refused = await client.callTool({ name: 'calculate_sum', arguments: { a: 'many', b: 1 } });
  const named = refused.isError === true && refused.content[0].text.includes('/a');
  check('bad arguments are a result with isError that names them', named, refused);

  const target = join(folder, basename(newcomer));
  for (const [what, took] of Object.entries(await timeChanges(client, news, target))) {
    check(`told ${took.toFixed(0)} ms after ${what}`, took < AT_ONCE, `not within ${AT_ONCE} ms`);
  }
  const shouted = await client.callTool({ name: 'shout', arguments: { text: 'hello' } });
  check('the new tool works', shouted.content[0].text.includes('HELLO'), shouted);
  await toldAfter(client, news, () => rmSync(target), (names) => !names.includes('shout'));
  code = await errorCode(client.callTool({ name: 'shout', arguments: { text: 'hello' } }));
  check('a removed tool is unknown', code === -32602, String(code));
}

/** Calls a tool of the conformance suite that reports progress, and cancels a call that never ends. */
async function callAndCancel(client) {
  const steps = [];
  const onprogress = ({ progress }) => steps.push(progress);
  await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, { onprogress });
  check('progress comes as it is made', isDeepStrictEqual(steps, [0, 50, 100]), steps);
  // It computes forever, and blocks all other calls of its plugin.
  const giveUp = new AbortController();
  const begun = { signal: giveUp.signal, onprogress: () => giveUp.abort('changed my mind') };
  const ended = await client.callTool({ name: 'loop_forever', arguments: {} }, begun).then(() => 'an answer', () => 'given up');
  check('a call can be given up', ended === 'given up', ended);
  const next = await client.callTool({ name: 'count', arguments: {} });
  check('it ends, so that the next one gets its turn', next.content[0].text === '1', next);
}

/**
 * Measures the minimum time until the client is notified of each kind of change: delays by other work on the machine
 * are not counted. The plugin is loaded at the end.
 */
async function timeChanges(client, news, target) {
  const there = (names) => names.includes('shout');
  const gone = (names) => !names.includes('shout');
  const remove = () => rmSync(target);
  const best = {};
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    // With a custom section, it is a different file, which must be compiled.
    const section = Buffer.from([0, 2, 1, 'a'.charCodeAt(0) + attempt]);
    const copy = () => writeFileSync(target, Buffer.concat([readFileSync(newcomer), section]));
    if (attempt > 0) await toldAfter(client, news, remove, gone);
    const times = {
      'a plugin was copied in': await toldAfter(client, news, copy, there),
      'it was removed': await toldAfter(client, news, remove, gone),
      'it was copied in again': await toldAfter(client, news, copy, there),
    };
    for (const [what, took] of Object.entries(times)) best[what] = Math.min(took, best[what] ?? took);
    if (Math.max(...Object.values(best)) < AT_ONCE) break;
  }
  return best;
}

/** Subscribes to a resource, in the form of the revision; see `surface`. */
async function subscribe(client, uri) {
  const updates = new Promise((resolve) => {
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => resolve(params.uri));
  });
  if (client.getNegotiatedProtocolVersion() >= STREAMS_SINCE) await client.listen({ resourceSubscriptions: [uri] });
  else await client.subscribeResource({ uri });
  return () => updates;
}

const root = mkdtempSync(join(tmpdir(), 'toolbay-'));
const person = new Person();
const news = new News();
const client = new Client(
  { name: 'toolbay-tests', version: '0' },
  {
    capabilities: CAPABILITIES,
    versionNegotiation: { mode },
    listChanged: { tools: { onChanged: () => news.take(), autoRefresh: false, debounceMs: 0 } },
  },
);
client.setRequestHandler('elicitation/create', ({ params }) => person.elicit(params));
client.setRequestHandler('sampling/createMessage', ({ params }) => person.sample(params));
client.setRequestHandler('roots/list', () => person.roots());
let timer;
let served;
try {
  const folder = join(root, 'plugins');
  mkdirSync(folder);
  for (const sample of SAMPLES) copyFileSync(join(plugins, `${sample}.wasm`), join(folder, `${sample}.wasm`));
  const args = ['serve', '--plugins', folder, '--log', 'warn'];
  // The cache has no code from before this run.
  const env = { ...getDefaultEnvironment(), XDG_CACHE_HOME: join(root, 'cache') };
  if (transport === 'http') served = await overHttp(server, folder, env);
  const to = served
    ? new StreamableHTTPClientTransport(served.url)
    : new StdioClientTransport({ command: server, args, env, cwd: root });
  await client.connect(to);
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${PATIENCE / 1000} s`)), PATIENCE);
  });
  const all = async () => {
    await converse(client, news, folder);
    const add = () => addGuests(newcomer, folder);
    await toldAfter(client, news, add, (names) => GUESTS.every((guest) => names.includes(guest)));
    await callAndCancel(client);
    await surface(client, person, (uri) => subscribe(client, uri), check);
  };
  await Promise.race([all(), late]);
} catch (error) {
  check('the conversation goes on to its end', false, `${error.name}: ${error.message}`);
} finally {
  clearTimeout(timer);
  await client.close();
  if (served) check('the server ends well', (await served.end()) === 0);
  rmSync(root, { recursive: true, force: true });
}
process.exitCode = counted();
