// A Prometheus that reads the metrics of a server every second, and promtool.

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** The job label of the server's metrics. */
export const JOB = 'toolbay';

/** The scrape interval, in seconds. */
export const INTERVAL = 1;

/**
 * Returns the output of promtool for a text, which it reads from its input or from a file, and whether it accepts it.
 */
export function promtool(programs, args, text, isFile = false) {
  const folder = mkdtempSync(join(tmpdir(), 'toolbay-promtool-'));
  try {
    const file = join(folder, 'text.yml');
    if (isFile) writeFileSync(file, text);
    const options = { encoding: 'utf8', input: isFile ? '' : text };
    const { status, stdout, stderr, error } = spawnSync(join(programs, 'promtool'), isFile ? [...args, file] : args, options);
    if (error) throw error;
    return { ok: status === 0, said: `${stdout}${stderr}`.trim() };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export class Prometheus {
  #child;
  #folder;
  #ended;

  /** Starts a Prometheus that scrapes `target`, which is an address with a port. */
  static async start(programs, target) {
    const prometheus = new Prometheus();
    const folder = mkdtempSync(join(tmpdir(), 'toolbay-prometheus-'));
    prometheus.#folder = folder;
    const config = {
      global: { scrape_interval: `${INTERVAL}s`, scrape_timeout: `${INTERVAL}s` },
      scrape_configs: [{ job_name: JOB, static_configs: [{ targets: [target] }] }],
    };
    // JSON is valid YAML.
    writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config));
    const args = ['--config.file', join(folder, 'prometheus.yml'), '--storage.tsdb.path', join(folder, 'data')];
    const child = spawn(join(programs, 'prometheus'), [...args, '--web.listen-address', '127.0.0.1:0'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    prometheus.#child = child;
    prometheus.#ended = new Promise((resolve) => {
      child.on('exit', resolve);
      child.on('error', resolve);
    });
    const log = [];
    const address = await new Promise((resolve, reject) => {
      createInterface(child.stderr).on('line', (line) => {
        log.push(line);
        const found = /msg="Listening on" address=(\S+)/.exec(line);
        if (found) resolve(found[1]);
      });
      prometheus.#ended.then((code) => reject(new Error(`Prometheus ended with ${code}: ${log.join('\n')}`)));
    });
    prometheus.site = `http://${address}`;
    return prometheus;
  }

  /** Returns a response of its API. */
  async ask(path, params = {}) {
    const response = await fetch(`${this.site}/api/v1/${path}`, { method: 'POST', body: new URLSearchParams(params) });
    return answer(path, params, response);
  }

  /** Returns the values of a variable of the dashboard. */
  async values(label, selector) {
    const params = { 'match[]': selector };
    const response = await fetch(`${this.site}/api/v1/label/${label}/values?${new URLSearchParams(params)}`);
    return answer(label, params, response);
  }

  async end() {
    this.#child.kill();
    await this.#ended;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function answer(path, params, response) {
  const said = await response.json();
  if (said.status !== 'success') throw new Error(`${path} ${JSON.stringify(params)}: ${said.error}`);
  return said.data;
}
