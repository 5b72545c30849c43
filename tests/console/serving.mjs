// The server under test, with its own folder, and a client.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

/** A running server with a folder with these files, and a client. */
export class Serving {
  #child;
  #ended;
  #log = [];
  #listeners = [];
  #folder;
  #server;
  #session;
  #next = 1;

  static async start(server, files, config) {
    const serving = new Serving();
    const folder = mkdtempSync(join(tmpdir(), 'toolbay-console-'));
    serving.#folder = folder;
    serving.#server = server;
    mkdirSync(join(folder, 'plugins'));
    for (const [name, content] of Object.entries(files)) serving.put(name, content);
    writeFileSync(join(folder, 'toolbay.toml'), config);
    const args = ['serve', '--http', '127.0.0.1:0', '--config', join(folder, 'toolbay.toml')];
    const child = spawn(server, args, { env: serving.#environment(), stdio: ['ignore', 'ignore', 'pipe'] });
    serving.#child = child;
    createInterface(child.stderr).on('line', (line) => {
      serving.#log.push(line);
      serving.#listeners.forEach((listener) => listener(line));
    });
    serving.#ended = new Promise((resolve) => child.on('exit', resolve));
    serving.endpoint = (await serving.logged(/listening on (\S+)/))[1];
    serving.site = new URL(serving.endpoint).origin;
    while ((await fetch(`${serving.site}/readyz`)).status !== 200) await serving.logged(/loaded plugin=/, true);
    return serving;
  }

  #environment() {
    const places = ['XDG_CONFIG_HOME', 'XDG_STATE_HOME', 'XDG_CACHE_HOME'].map((name) => [name, this.#folder]);
    return { ...process.env, ...Object.fromEntries(places) };
  }

  /** Runs a command for the same folder. Returns its exit code and its output. */
  run(...args) {
    const all = [...args, '--config', join(this.#folder, 'toolbay.toml')];
    const { status, stdout, stderr } = spawnSync(this.#server, all, { env: this.#environment(), encoding: 'utf8' });
    return { status, said: stdout + stderr };
  }

  /**
   * Puts a file into the plugin folder: `content` is text, or the source of a copy. Replaces an existing file
   * atomically.
   */
  put(name, content) {
    const [staged, path] = [join(this.#folder, 'staged'), join(this.#folder, 'plugins', name)];
    if (content.from) cpSync(content.from, staged);
    else writeFileSync(staged, content);
    mkdirSync(dirname(path), { recursive: true });
    renameSync(staged, path);
  }

  /** Removes a file from the plugin folder. */
  remove(name) {
    rmSync(join(this.#folder, 'plugins', name));
  }

  /** Returns the first line that matches; `fresh` waits briefly for a new one. */
  logged(wanted, fresh = false) {
    return new Promise((resolve, reject) => {
      const look = (line) => wanted.test(line) && resolve(wanted.exec(line));
      this.#listeners.push(look);
      if (!fresh) this.#log.forEach(look);
      if (fresh) setTimeout(resolve, 50);
      this.#ended.then((code) => reject(new Error(`the server ended with ${code}: ${this.#log.join('\n')}`)));
    });
  }

  /** Returns the newest address that opens the console. */
  address() {
    const lines = this.#log.map((line) => /opens once at (\S+)/.exec(line)).filter(Boolean);
    return lines.at(-1)[1];
  }

  /** Sends a message, and returns all messages up to its response. */
  async #send(method, params, id) {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    if (this.#session) headers['mcp-session-id'] = this.#session;
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params });
    const response = await fetch(this.endpoint, { method: 'POST', headers, body });
    this.#session ??= response.headers.get('mcp-session-id');
    return response.text();
  }

  /** Calls a tool like a client. */
  async call(name, args = {}) {
    if (!this.#session) {
      const clientInfo = { name: 'browser test', version: '1' };
      await this.#send('initialize', { protocolVersion: '2025-06-18', capabilities: { elicitation: {} }, clientInfo }, 0);
      await this.#send('notifications/initialized', {});
    }
    return this.#send('tools/call', { name, arguments: args }, this.#next++);
  }

  async end() {
    this.#child.kill();
    await this.#ended;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** A server over standard input and output, its client, and `toolbay console`. */
export class Beside {
  #server;
  #console;
  #folder;
  #said = '';
  #address;
  #waiting = new Map();
  #next = 1;

  static async start(server, files) {
    const beside = new Beside();
    const folder = mkdtempSync(join(tmpdir(), 'toolbay-beside-'));
    beside.#folder = folder;
    mkdirSync(join(folder, 'plugins'));
    for (const [name, content] of Object.entries(files)) cpSync(content.from, join(folder, 'plugins', name));
    const places = { XDG_CONFIG_HOME: folder, XDG_STATE_HOME: folder, XDG_CACHE_HOME: folder, XDG_RUNTIME_DIR: folder };
    const options = { cwd: folder, env: { ...process.env, ...places } };
    beside.#server = spawn(server, ['serve'], { ...options, stdio: ['pipe', 'pipe', 'ignore'] });
    createInterface(beside.#server.stdout).on('line', (line) => {
      const { id, method } = JSON.parse(line);
      if (method === undefined) beside.#waiting.get(id)?.(line);
    });
    const clientInfo = { name: 'browser test', version: '1' };
    await beside.#ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
    beside.#send({ method: 'notifications/initialized' });
    beside.#console = spawn(server, ['console', '--pid', beside.#server.pid], { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [beside.#console.stdout, beside.#console.stderr]) {
      stream.on('data', (text) => { beside.#said += text; });
    }
    const [line] = await once(createInterface(beside.#console.stdout), 'line');
    [, beside.#address] = /opens once at (\S+)/.exec(line);
    beside.site = new URL(beside.#address).origin;
    return beside;
  }

  /** Returns the address that was printed. */
  address() {
    return this.#address;
  }

  #send(message) {
    this.#server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  #ask(method, params) {
    const id = this.#next++;
    const answered = new Promise((resolve) => this.#waiting.set(id, resolve));
    this.#send({ id, method, params });
    return answered;
  }

  /** Calls a tool like the client. */
  call(name, args) {
    return this.#ask('tools/call', { name, arguments: args });
  }

  /** Ends the server like a client. Returns the output of `toolbay console`. */
  async end() {
    const ended = once(this.#console, 'close');
    this.#server.stdin.end();
    await ended;
    rmSync(this.#folder, { recursive: true, force: true });
    return this.#said;
  }
}
