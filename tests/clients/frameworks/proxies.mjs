// Real servers behind a reverse proxy, with the configurations of the book.
//
//     node proxies.mjs NAME PROGRAM LIBRARIES BOOK SERVER PLUGINS NEWCOMER
//
// NAME is `nginx`, `haproxy` or `caddy`; PROGRAM the binary; LIBRARIES the folder of its libraries; BOOK the page with the
// configurations; SERVER, PLUGINS and NEWCOMER are those of the other clients.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { check, counted } from './checks.mjs';
import { freePort, listening } from './harness.mjs';
import { official, toUrl } from './official.mjs';

// The timeout of the whole test, in milliseconds.
const PATIENCE = 400_000;

// The number of concurrent calls on one session.
const AT_ONCE = 400;

// The number of calls if two servers respond in turn.
const IN_TURN = 20;

// The number of comments in an idle stream before a change.
const IDLE = 3;

// The language of the configurations in the book.
const LANGUAGES = { nginx: 'nginx', haproxy: 'haproxy', caddy: 'caddyfile' };

// The line of a configuration that has the address on which the proxy listens.
const LISTENS = { nginx: 'listen 443 ssl;', haproxy: 'bind :443 ssl crt /etc/haproxy/tools.pem', caddy: 'tools.example.com {' };

// A token, and the size of a message for which nginx needs a setting, in bytes.
const TOKEN = 'a-token-of-an-operator';
const LARGE = 3_900_000;

const [name, program, libraries, book, server, plugins, newcomer] = process.argv.slice(2);

/** Returns the code blocks of a page in a language, in order. */
function blocks(language) {
  const page = readFileSync(book, 'utf8');
  return [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)].filter((found) => found[1] === language).map((found) => found[2]);
}

/** Adds settings to the configuration of the book: writable paths, and running in the foreground. */
function whole(configuration, root) {
  if (name === 'haproxy') {
    // The settings of Debian's own file, except those for logs.
    const timeouts = '    timeout connect 5000\n    timeout client 50000\n    timeout server 50000\n';
    return `global\n    maxconn 4000\ndefaults\n    mode http\n${timeouts}\n${configuration}`;
  }
  if (name === 'caddy') return `{\n\tadmin off\n\tauto_https off\n}\n${configuration}`;
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const writable = paths.map((path) => `  ${path}_temp_path ${root}/${path};\n`).join('');
  const main = `daemon off;\nmaster_process off;\npid ${root}/pid;\nerror_log stderr warn;\n`;
  return `${main}events { worker_connections 4000; }\nhttp {\n  access_log off;\n${writable}${configuration}}\n`;
}

/** Returns the line for an address of this machine, without TLS. */
function plainly(port) {
  return { nginx: `listen 127.0.0.1:${port};`, haproxy: `bind 127.0.0.1:${port}`, caddy: `http://:${port} {\n\tbind 127.0.0.1` }[name];
}

/**
 * Starts the proxy with a configuration of the book, for these servers. Returns its port, and a function that ends it.
 */
async function proxy(configuration, root, servers) {
  const port = await freePort();
  let text = whole(configuration, root);
  const [from, to] = [LISTENS[name], plainly(port)];
  if (!text.includes(from)) throw new Error(`no "${from}" in ${text}`);
  text = text.replaceAll(from, to).replaceAll(/^ *ssl_certificate.*\n/gm, '');
  servers.forEach((url, n) => (text = text.replaceAll(`127.0.0.1:${8931 + n}`, new URL(url).host)));
  const file = join(root, `${name}.conf`);
  writeFileSync(file, text);
  const args = {
    nginx: ['-p', root, '-c', file, '-e', 'stderr'],
    haproxy: ['-db', '-f', file],
    caddy: ['run', '--adapter', 'caddyfile', '--config', file],
  }[name];
  const env = { PATH: '/usr/bin:/bin', HOME: root, LD_LIBRARY_PATH: libraries };
  const child = spawn(program, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const said = [];
  createInterface(child.stderr).on('line', (line) => said.push(line));
  let over = false;
  const ended = new Promise((resolve) => child.on('exit', resolve)).then(() => (over = true));
  // It does not report when it is ready.
  const accepts = () =>
    new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true));
      socket.on('error', () => resolve(false)).on('connect', () => socket.destroy());
    });
  while (!(await accepts())) {
    if (over) throw new Error(`${name} ended: ${said.join('\n')}`);
  }
  return {
    port,
    end: () => {
      child.kill();
      return ended;
    },
  };
}

/** Creates a folder with plugins, and starts a server with a configuration for it. */
async function serve(root, id, settings) {
  const folder = join(root, `plugins-${id}`);
  mkdirSync(folder);
  copyFileSync(join(plugins, 'calculator.wasm'), join(folder, 'calculator.wasm'));
  writeFileSync(join(folder, 'calculator.toml'), '[rate_limit]\ncalls = 100_000\nper = "1m"\n');
  for (const guest of ['conformance.wasm', 'hostile.wasm']) copyFileSync(join(newcomer, '..', guest), join(folder, guest));
  writeFileSync(join(folder, 'hostile.toml'), '[limits]\nconcurrency = 1\nfuel = 1_000_000_000_000\ntimeout = "10m"\n');
  const file = join(root, `toolbay-${id}.toml`);
  writeFileSync(file, settings.replace('127.0.0.1:8931', '127.0.0.1:0'));
  const env = { PATH: process.env.PATH, HOME: root, XDG_CACHE_HOME: join(root, 'cache') };
  const args = ['serve', '--plugins', folder, '--config', file, '--http', '127.0.0.1:0'];
  const started = await listening(server, args, env, /listening on (\S+)/);
  // A proxy with health checks does not forward to a server that is not ready.
  while ((await fetch(new URL('/readyz', started.url))).status !== 200);
  return { folder, ...started };
}

/** Returns the response to a raw request through the proxy: its status, and its body as a stream. */
function raw(port, path, headers, body) {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST';
    const sent = request({ host: '127.0.0.1', port, path, method, headers }, resolve);
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Starts a session. Returns its header. */
async function session(url) {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } };
  const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const answer = await fetch(url, { method: 'POST', headers, body });
  await answer.text();
  return { 'Mcp-Session-Id': answer.headers.get('Mcp-Session-Id') };
}

/** The conversation of a client with a session. */
async function converse(port, prefix, transport, folder) {
  const url = `http://127.0.0.1:${port}${prefix}/${transport === 'sse' ? 'sse' : 'mcp'}`;
  const { client, changed, names, call, close } = await official(toUrl(transport, url));
  const what = (text) => `${prefix || '/'}, ${transport}: ${text}`;
  const listed = await names();
  check(what('lists tools'), listed.includes('calculate_sum') && listed.includes('loop_forever'), listed);

  const sums = Array.from({ length: AT_ONCE }, (_, n) => call('calculate_sum', { a: n, b: 0.5 }));
  const wrong = (await Promise.all(sums)).filter((text, n) => text !== `{"sum":${n + 0.5}}`);
  check(what(`${AT_ONCE} calls at once`), wrong.length === 0, wrong.slice(0, 3));

  // The call never ends, so its notifications are received while it runs.
  const giveUp = new AbortController();
  let steps = 0;
  const onprogress = () => {
    steps += 1;
    giveUp.abort('enough');
  };
  const options = { signal: giveUp.signal, onprogress, timeout: PATIENCE };
  const ended = await client.callTool({ name: 'loop_forever', arguments: {} }, undefined, options).then(
    () => 'an answer',
    () => 'given up',
  );
  check(what('progress comes while a call goes on'), steps > 0 && ended === 'given up', { steps, ended });
  const count = await call('count', {});
  check(what('a call that is given up ends'), count === '1', count);

  if (transport === 'http') {
    // A separate session, because a message is sent on only one stream of a session, and a proxy may detect late that
    // this one was closed.
    const stream = await raw(port, `${prefix}/mcp`, { Accept: 'text/event-stream', ...(await session(url)) });
    let comments = 0;
    for await (const chunk of stream) {
      comments += `${chunk}`.split('\n').filter((line) => line.startsWith(':')).length;
      if (comments >= IDLE) break;
    }
    check(what('an idle stream stays open, and its comments come'), comments >= IDLE, comments);
  }
  const target = join(folder, 'newcomer.wasm');
  copyFileSync(newcomer, target);
  while (!(await names()).includes('shout')) await changed.next();
  rmSync(target);
  while ((await names()).includes('shout')) await changed.next();
  check(what('is told of a new tool, and that it is gone'), true);
  await close();
}

/** Sends a request with a token, and returns the response. */
function authorized(url, method, params, headers = {}) {
  const fixed = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  return fetch(url, { method: 'POST', headers: { ...fixed, ...headers }, body });
}

/** The conversation of a client with a token, and of an operator's browser. */
async function authenticate(port) {
  const base = `http://127.0.0.1:${port}`;
  const refused = await fetch(`${base}/mcp`, { method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json' } });
  check('a token is required', refused.status === 401, refused.status);
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } };
  const begun = await authorized(`${base}/mcp`, 'initialize', params);
  await begun.text();
  const headers = { 'Mcp-Session-Id': begun.headers.get('Mcp-Session-Id') ?? '' };
  const long = { name: 'calculate_sum', arguments: { a: 1, b: 2, c: 'x'.repeat(LARGE) } };
  const answer = await authorized(`${base}/mcp`, 'tools/call', long, headers);
  const text = await answer.text();
  const isNamed = answer.status === 200 && text.includes('"c\\"');
  check('a large message reaches the server', isNamed, { status: answer.status, text: text.slice(0, 300) });
  // A browser at the address that the certificate names, which `fetch` cannot imitate.
  const browser = { Host: 'tools.example.com', Origin: 'https://tools.example.com', 'Sec-Fetch-Site': 'same-origin' };
  const form = { ...browser, 'Content-Type': 'application/x-www-form-urlencoded' };
  const login = await raw(port, '/console/login', form, `token=${TOKEN}`);
  login.resume();
  const cookie = login.headers['set-cookie']?.[0] ?? '';
  const opened = await raw(port, '/console', { ...browser, Cookie: cookie.split(';')[0] });
  let page = '';
  for await (const chunk of opened) page += chunk;
  const seen = { status: login.statusCode, page: page.slice(0, 300) };
  check('the console opens with a token', page.includes('<title>Overview'), seen);
  check('its cookie is sent only over TLS', /; Secure\b/.test(cookie), cookie);
}

/** Returns the number of calls that a server reports as finished. */
async function answered(url) {
  const text = await (await fetch(new URL('/metrics', url))).text();
  const counts = [...text.matchAll(/^toolbay_calls_total\{.*tool="calculate_sum".*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Tests one or two servers with settings, behind a proxy with a configuration. */
async function behind(configuration, settings, work) {
  const root = mkdtempSync(join(tmpdir(), 'toolbay-'));
  const servers = [];
  try {
    for (const [n, each] of settings.entries()) servers.push(await serve(root, n, each));
    const front = await proxy(configuration, root, servers.map(({ url }) => url));
    try {
      await work(front.port, servers);
    } finally {
      await front.end();
    }
  } finally {
    const codes = await Promise.all(servers.map(({ end }) => end()));
    check('the servers end well', codes.every((code) => code === 0), codes);
    rmSync(root, { recursive: true, force: true });
  }
}

async function run() {
  const [plain, below, several] = blocks(LANGUAGES[name]);
  const [tokens, settings, sessionless] = blocks('toml');
  const hash = createHash('sha256').update(TOKEN).digest('hex');
  await behind(plain, [tokens.replace('0'.repeat(64), hash)], (port) => authenticate(port));
  // The test waits for the comments of an idle stream, so they are sent often.
  const lively = settings.replace('[http]', '[http]\nstream_keep_alive = "1s"');
  for (const [configuration, prefix] of [
    [plain, ''],
    [below, '/tools'],
  ]) {
    await behind(configuration, [lively], async (port, [{ folder }]) => {
      for (const transport of ['http', 'sse']) await converse(port, prefix, transport, folder);
      const named = await raw(port, `${prefix}/healthz`, { Host: 'tools.example.com' });
      named.resume();
      check(`${prefix || '/'}: the name of the server is passed on`, named.statusCode === 200, named.statusCode);
    });
  }
  await behind(several, [sessionless, sessionless], async (port, servers) => {
    const { client, names, call, close } = await official(toUrl('http', `http://127.0.0.1:${port}/mcp`));
    check('two servers: there is no session', client.transport.sessionId === undefined, client.transport.sessionId);
    check('two servers: lists tools', (await names()).includes('calculate_sum'));
    for (let n = 0; n < IN_TURN; n += 1) {
      const text = await call('calculate_sum', { a: n, b: 0.5 });
      if (JSON.parse(text).sum !== n + 0.5) check('two servers: each call has its answer', false, text);
    }
    const steps = [];
    const onprogress = ({ progress }) => steps.push(progress);
    await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, undefined, { onprogress });
    check('two servers: progress comes', steps.length === 3, steps);
    const counts = await Promise.all(servers.map(({ url }) => answered(url)));
    const both = counts.every((count) => count > 0) && counts[0] + counts[1] === IN_TURN;
    check('two servers: both answer', both, counts);
    await close();
  });
}

const patience = setTimeout(() => {
  check('all comes to its end', false, 'it takes too long');
  process.exit(counted());
}, PATIENCE);
await run().catch((error) => check('all comes to its end', false, `${error?.stack ?? error}`));
clearTimeout(patience);
process.exit(counted());
