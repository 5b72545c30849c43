// The conversation of every framework in JavaScript with the real server, in the folder with the most unusual plugins.
//
//     node SCRIPT MODE TRANSPORT SERVER FOLDER CALLS CACHE NEWCOMER
//
// MODE is `auto` or `legacy`; TRANSPORT `stdio`, `http` or `sse`; SERVER the binary; FOLDER has the plugins; CALLS
// lists calls and their results as JSON; CACHE is the cache with all compiled plugins; NEWCOMER is a further plugin,
// with the tool `shout`, which the test adds later.

import { spawn } from 'node:child_process';
import { copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { isDeepStrictEqual } from 'node:util';

import { check, counted } from './checks.mjs';

// The timeout of the whole conversation, in milliseconds.
const PATIENCE = 180_000;

// The number of concurrent calls on one session.
const AT_ONCE = 400;

/** Starts a program that prints its address. Returns the output, and a function that ends it. */
export async function listening(command, args, env, pattern) {
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise((resolve) => child.on('exit', (code, signal) => resolve(code ?? signal)));
  const found = await new Promise((resolve, reject) => {
    ended.then((code) => reject(new Error(`${command} ended with ${code}`)));
    child.on('error', reject);
    // Read to their ends, so that the program never blocks.
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream).on('line', (line) => {
        const found = pattern.exec(line);
        if (found) resolve(found[1]);
      });
    }
  });
  return {
    url: found,
    end: (signal = 'SIGTERM') => {
      child.kill(signal);
      return ended;
    },
  };
}

/** Returns a free port, for programs that cannot choose one themselves. */
export function freePort() {
  const server = createServer();
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Returns whether a text is the expected result of a tool. */
function fits(text, expected) {
  if (typeof expected === 'string') return text.includes(expected);
  try {
    return isDeepStrictEqual(JSON.parse(text), expected);
  } catch {
    return false;
  }
}

async function converse(framework, folder, calls, newcomer) {
  const listed = await framework.names();
  const missing = calls.listed.filter((name) => !listed.includes(name));
  check(`lists all ${calls.listed.length} tools`, missing.length === 0, missing);
  for (const call of calls.calls) {
    const text = await framework.call(call.tool, call.arguments).catch((error) => `${error}`);
    check(`calls ${call.tool}`, fits(text, call.returns), text);
  }
  if (framework.uris) {
    const uris = await framework.uris();
    const unlisted = calls.resources.filter((uri) => !uris.includes(uri));
    check('lists resources with every kind of URI', unlisted.length === 0, unlisted);
  }
  const atOnce = framework.atOnce ?? AT_ONCE;
  const sums = await Promise.all(
    Array.from({ length: atOnce }, (_, n) =>
      framework.call('calculate_sum', { a: n, b: 0.5 }).then(
        (text) => fits(text, { sum: n + 0.5 }) || text,
        (error) => `${error}`,
      ),
    ),
  );
  const wrong = sums.filter((sum) => sum !== true);
  check(`${atOnce} calls at once on one session`, wrong.length === 0, wrong.slice(0, 3));
  if (framework.fixed) return;

  const how = framework.changed ? 'is told of' : 'lists again and sees';
  const target = join(folder, 'newcomer.wasm');
  const until = async (there) => {
    while ((await framework.names()).includes('shout') !== there) await framework.changed?.next();
  };
  copyFileSync(newcomer, target);
  await until(true);
  const shouted = await framework.call('shout', { text: 'hello' });
  check(`${how} a new tool, and calls it`, shouted.includes('HELLO'), shouted);
  rmSync(target);
  await until(false);
  check(`${how} that it is gone`, true);
}

/** Notifications of the server: the package calls `heard`, and `next` waits for the next one. */
export class Changed {
  #count = 0;
  #wake;
  heard = () => {
    this.#count += 1;
    this.#wake?.();
  };
  async next() {
    while (this.#count === 0) await new Promise((resolve) => (this.#wake = resolve));
    this.#count = 0;
  }
}

/**
 * Has the conversation of the arguments, and ends the program. `connect` gets the address of the server, and returns:
 *
 * - `names()`: the tools that the framework lists, by the server's names
 * - `call(name, arguments)`: the result of the tool, as text; it throws the errors of the framework
 * - `uris()`: the URIs of the resources that it lists, if it lists any
 * - `changed`: a `Changed`, if the framework forwards notifications
 * - `atOnce`: the number of concurrent calls, if it supports fewer than the others
 * - `fixed`: true if it lists only once
 * - `close()`
 */
export async function main(connect) {
  const [mode, transport, server, plugins, callsFile, cache, newcomer] = process.argv.slice(2);
  const patience = setTimeout(() => {
    check('the conversation goes on to its end', false, 'it takes too long');
    process.exit(counted());
  }, PATIENCE);
  const root = mkdtempSync(join(tmpdir(), 'toolbay-'));
  const folder = join(root, 'plugins');
  cpSync(plugins, folder, { recursive: true });
  const env = { PATH: process.env.PATH, HOME: root, XDG_CACHE_HOME: cache };
  const args = ['serve', '--no-config', '--plugins', folder];
  let http;
  try {
    const target = { mode, transport, root, env };
    if (transport === 'stdio') {
      Object.assign(target, { command: server, args: [...args, '--log', 'warn'] });
    } else {
      const listen = [...args, '--http', '127.0.0.1:0', '--sse'];
      http = await listening(server, listen, env, /listening on (\S+)/);
      target.url = transport === 'sse' ? new URL('/sse', http.url).href : http.url;
    }
    const framework = await connect(target);
    await converse(framework, folder, JSON.parse(readFileSync(callsFile, 'utf8')), newcomer);
    await framework.close();
  } catch (error) {
    check('the conversation goes on to its end', false, `${error?.stack ?? error}`);
  }
  if (http) {
    const code = await http.end();
    check('the server ends well', code === 0, code);
  }
  clearTimeout(patience);
  rmSync(root, { recursive: true, force: true });
  process.exit(counted());
}
