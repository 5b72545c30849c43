// A server that listens, for clients that call it.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

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
