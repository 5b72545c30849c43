// The plugins that clients call, and a server that listens.

import { spawn } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** One tool of each plugin that `addGuests` adds. */
export const GUESTS = ['test_simple_text', 'loop_forever'];

/**
 * Adds the plugins of the tests that are next to `newcomer`. One never ends: its grant allows one call at a time,
 * without a timeout.
 */
export function addGuests(newcomer, folder) {
  const grant = '[limits]\nconcurrency = 1\nfuel = 1_000_000_000_000\ntimeout = "10m"\n';
  writeFileSync(join(folder, 'hostile.toml'), grant);
  for (const guest of ['conformance.wasm', 'hostile.wasm']) copyFileSync(join(newcomer, '..', guest), join(folder, guest));
}

/** Starts the server. Returns its address, and a function that ends it. */
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
