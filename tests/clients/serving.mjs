// What clients call: plugins of the tests, and a server that listens.

import { spawn } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A tool of each plugin that `addGuests` adds. */
export const GUESTS = ['test_simple_text', 'loop_forever'];

/**
 * Adds the plugins of the tests that lie beside `newcomer`. One never ends: it has a grant of one call at a time, for
 * as long as that takes.
 */
export function addGuests(newcomer, folder) {
  const grant = '[limits]\nconcurrency = 1\nfuel = 1_000_000_000_000\ntimeout = "10m"\n';
  writeFileSync(join(folder, 'hostile.toml'), grant);
  for (const guest of ['conformance.wasm', 'hostile.wasm']) copyFileSync(join(newcomer, '..', guest), join(folder, guest));
}

/** Starts the server; says where it is served, and how to end it. */
export async function overHttp(server, folder, env) {
  const args = ['serve', '--http', '127.0.0.1:0', '--sse', '--plugins', folder];
  const child = spawn(server, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  const address = new Promise((resolve, reject) => {
    ended.then((code) => reject(new Error(`the server ended with ${code}`)));
    createInterface(child.stderr).on('line', (line) => {
      const found = /listening on (\S+)/.exec(line);
      if (found) resolve(new URL(found[1]));
    });
  });
  return {
    url: await address,
    end: () => {
      child.kill();
      return ended;
    },
  };
}
