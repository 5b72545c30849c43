// Views of plugins (MCP Apps) in a browser: the official client reads them from the real server, the official bridge
// communicates with them, and a headless Chromium shows them.
//
//     node apps.mjs MODE SERVER PLUGINS LIBRARY
//
// MODE is `legacy` or `auto`; SERVER the binary; PLUGINS a folder with the sample plugins; LIBRARY a plugin whose view
// tries to reach other servers.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { build } from 'esbuild';

import { launch } from './browser.mjs';
import { check, counted } from './checks.mjs';
import { counting, host, policy, sandbox } from './sites.mjs';

/** The capabilities of a client with MCP Apps. */
const APPS = { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } };

/** The resources that a view can load from an origin of `resourceDomains`. */
const LOADED = ['image', 'style', 'script', 'module', 'font', 'preload'];
/** The requests that a view can send to an origin of `connectDomains`. */
const CONNECTED = ['fetch', 'post', 'beacon', 'events', 'socket'];

/** The timeout of the whole test, in milliseconds. */
const PATIENCE = 180_000;

const [mode, server, plugins, library] = process.argv.slice(2);

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** A server with plugins and grants, and the official client connected to it. */
async function serving(files) {
  const folder = mkdtempSync(join(tmpdir(), 'toolbay-apps-'));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(folder, 'plugins', name, '..'), { recursive: true });
    writeFileSync(join(folder, 'plugins', name), content);
  }
  const env = { ...process.env, XDG_CONFIG_HOME: folder, XDG_STATE_HOME: folder };
  const args = ['serve', '--http', '127.0.0.1:0', '--plugins', join(folder, 'plugins')];
  const child = spawn(server, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const log = [];
  const listeners = [];
  createInterface(child.stderr).on('line', (line) => {
    log.push(line);
    listeners.forEach((listener) => listener(line));
  });
  const logged = (wanted) => new Promise((resolve) => {
    const look = (line) => wanted.test(line) && resolve(wanted.exec(line));
    listeners.push(look);
    log.forEach(look);
  });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  const died = ended.then((code) => Promise.reject(new Error(`the server ended with ${code}: ${log.join('\n')}`)));
  died.catch(() => {});
  const [, url] = await Promise.race([logged(/listening on (\S+)/), died]);
  const plugins = new Set(Object.keys(files).map((name) => /^(\w+)\.(?!toml)/.exec(name)?.[1]).filter(Boolean));
  await Promise.all([...plugins].map((id) => Promise.race([logged(new RegExp(`loaded plugin="${id}"`)), died])));
  const client = new Client({ name: 'apps', version: '1.0.0' }, { capabilities: APPS, versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return {
    client,
    logged,
    end: async () => {
      await client.close();
      child.kill();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Returns a view as a client receives it: the contents' `_meta`, and the page. */
async function read(client, uri) {
  const { contents: [view] } = await client.readResource({ uri });
  return view;
}

/** The browser with the host's page. */
class Shown {
  #page;
  #sandbox;
  /** The requests of views to the server. */
  calls = [];
  client;

  static async open(browser, hostSite, sandboxSite) {
    const shown = new Shown();
    shown.#sandbox = sandboxSite.origin;
    shown.#page = await browser.newPage();
    await shown.#page.exposeFunction('callTool', (params) => {
      shown.calls.push(params.name);
      return shown.client.callTool(params);
    });
    await shown.#page.exposeFunction('readResource', (params) => shown.client.readResource(params));
    await shown.#page.goto(hostSite.origin);
    await shown.#page.waitForFunction(() => 'show' in window);
    return shown;
  }

  /** Shows a view that was read. Returns the name that the view reports. */
  show(view, call) {
    const { csp, permissions } = view._meta?.ui ?? {};
    return this.#page.evaluate((given) => window.show(given), {
      sandbox: this.#sandbox, html: view.text, csp, permissions, ...call,
    });
  }

  /** Returns the frame of the sandbox. */
  get proxy() {
    return this.#page.frames().find((frame) => frame.url().startsWith(this.#sandbox));
  }

  /** Returns the frame of the view. */
  get view() {
    return this.proxy.childFrames()[0];
  }

  /** Sends a request as the host's page, after all requests of a view. */
  async last(origin) {
    await this.#page.evaluate((url) => fetch(url), `${origin}/last`);
  }

  /** Returns the targets that the probe reports as reached. */
  async probed() {
    const said = this.view.locator('#said', { hasText: '{' });
    return JSON.parse(await said.textContent());
  }
}

/** The chart draws, and calls a tool of its plugin. */
async function chart(shown) {
  const { client, end } = await serving({ 'chart.wasm': readFileSync(join(plugins, 'chart.wasm')) });
  shown.client = client;
  const { tools } = await client.listTools();
  const tool = tools.find(({ name }) => name === 'bar_chart');
  check('a tool names its view in both forms', tool._meta?.ui?.resourceUri === 'ui://chart/view' &&
    tool._meta['ui/resourceUri'] === 'ui://chart/view', tool._meta);
  const hidden = tools.find(({ name }) => name === 'group_values');
  check('a tool for views says so', same(hidden._meta?.ui?.visibility, ['app']), hidden._meta);
  check('the server declares the extension', 'io.modelcontextprotocol/ui' in (client.getServerCapabilities()?.extensions ?? {}),
    client.getServerCapabilities());
  const view = await read(client, tool._meta.ui.resourceUri);
  check('a view has the type of views', view.mimeType === 'text/html;profile=mcp-app', view.mimeType);
  check('a view that asks for nothing is allowed nothing', same(view._meta?.ui, { prefersBorder: false }), view._meta);
  const input = { title: 'Sales <b>', labels: ['a', 'b', 'c', 'd', 'e', 'f'], values: [1, 3, 8, -2, 5, 4] };
  const result = await client.callTool({ name: 'bar_chart', arguments: input });
  const texts = result.content.filter(({ type }) => type === 'text');
  check('who has no views gets text and a picture', texts.length === 1 && texts[0].text.includes('"count":6') &&
    result.content.some(({ type }) => type === 'image'), result.content.map(({ type }) => type));
  const name = await shown.show(view, { tool, input, result, theme: 'dark' });
  check('the view begins', name === 'chart', name);
  const page = shown.view;
  await page.locator('.bar').nth(5).waitFor({ state: 'attached' });
  check('the chart has a bar for each value', await page.locator('.bar').count() === 6);
  check('its title is text', await page.locator('#title').textContent() === input.title &&
    await page.locator('#title b').count() === 0);
  check('it looks as its host', await page.evaluate(() => document.documentElement.style.colorScheme) === 'dark');
  const heights = await page.locator('.bar').evaluateAll((bars) => bars.map((bar) => Number(bar.getAttribute('height'))));
  check('a bar is as high as its value', Math.abs(heights[2] / heights[0] - 8) < 0.01 && Math.abs(heights[3] / heights[0] - 2) < 0.01, heights);
  await page.locator('.bar').nth(2).focus();
  check('a value is said', await page.locator('#said').textContent() === 'c: 8');
  await page.locator('#style').selectOption('line');
  check('the chart changes its kind', await page.locator('.dot').count() === 6 && await page.locator('.bar').count() === 0);
  await page.locator('#measure').selectOption('sum');
  await page.locator('#groups').selectOption('2');
  await page.locator('#said', { hasText: '2 values' }).waitFor();
  const titles = await page.locator('.mark title').allTextContents();
  check('the view calls a tool of its plugin', same(shown.calls, ['group_values']) &&
    same(titles, ['a – c: 12', 'd – f: 7']), [shown.calls, titles]);
  await end();
}

/** Under a prefix, the view finds the tool by its name there. */
async function prefixed(shown) {
  const { client, end } = await serving({
    'chart.wasm': readFileSync(join(plugins, 'chart.wasm')),
    'chart.toml': 'prefix = "acme"\n',
  });
  shown.client = client;
  shown.calls = [];
  const tool = (await client.listTools()).tools.find(({ name }) => name === 'acme_line_chart');
  const view = await read(client, tool._meta.ui.resourceUri);
  await shown.show(view, { tool, input: { values: [1, 2, 3, 4, 5, 6] } });
  await shown.view.locator('.dot').nth(5).waitFor({ state: 'attached' });
  await shown.view.locator('#groups').selectOption('2');
  await shown.view.locator('#said', { hasText: '2 values' }).waitFor();
  check('a view finds the tools of its plugin under a prefix', same(shown.calls, ['acme_group_values']), shown.calls);
  await end();
}

/** Shows the probe, and returns the targets that it reached, by its report and by the server's count. */
async function probe(shown, grant, uri, kinds) {
  const counted = await counting();
  const files = { 'library.wasm': readFileSync(library) };
  if (uri.includes('files')) files['files.resources/ui/probe.html'] = readFileSync(new URL('probe.html', import.meta.url), 'utf8');
  for (const id of ['library', 'files']) if (grant) files[`${id}.toml`] = `[permissions.ui]\n${grant(counted.origin)}`;
  const { client, logged, end } = await serving(files);
  shown.client = client;
  const view = await read(client, uri.replace('PORT', counted.port));
  const tool = { name: 'probe', inputSchema: { type: 'object' } };
  await shown.show(view, { tool, input: { origin: counted.origin, ...(kinds && { kinds }) } });
  return {
    view,
    counted,
    logged,
    end: async () => {
      await end();
      counted.end();
      counted.server.close();
    },
  };
}

/** Returns the targets that a probe reached, by the server's count. */
const reached = ({ counted: { seen } }) => [...seen].filter((name) => name !== 'last').sort();

async function nothingGranted(shown) {
  for (const uri of ['ui://library/probe/PORT', 'ui://files/probe.html']) {
    const probed = await probe(shown, null, uri);
    check(`without a grant, a view is allowed nothing: ${uri}`, probed.view._meta?.ui === undefined, probed.view._meta);
    const said = await shown.probed();
    const { origin, connections } = probed.counted;
    const before = connections();
    await shown.last(origin);
    check(`without a grant, a view reaches nobody: ${uri}`, before === 0 && reached(probed).length === 0,
      [before, reached(probed), said]);
    const arrived = Object.keys(said).filter((kind) => said[kind] !== 'refused' && !['beacon', 'form'].includes(kind));
    check(`without a grant, each attempt is refused: ${uri}`, arrived.length === 0, said);
    if (uri.includes('library')) {
      const line = new RegExp(`denied: .*ui\\.connect = \\["${origin}"\\]`);
      await probed.logged(line);
      check('the log has the line that would allow it', true);
    }
    await probed.end();
  }
  const probed = await probe(shown, null, 'ui://library/probe/PORT', ['navigate']);
  await shown.proxy.waitForFunction(() => window.refused.some((what) => what.startsWith('frame-src')));
  const before = probed.counted.connections();
  await shown.last(probed.counted.origin);
  check('a view cannot leave for another page', before === 0 && reached(probed).length === 0, reached(probed));
  await probed.end();
}

async function someGranted(shown) {
  const cases = [
    ['connections', (origin) => `connect = ["${origin}", "${origin.replace('http', 'ws')}"]`, CONNECTED],
    ['what it loads', (origin) => `resources = ["${origin}"]`, LOADED],
    ['frames', (origin) => `frames = ["${origin}"]`, ['frame']],
  ];
  for (const uri of ['ui://library/probe/PORT', 'ui://files/probe.html']) {
    for (const [what, grant, kinds] of cases) {
      const probed = await probe(shown, grant, uri);
      const said = await shown.probed();
      await Promise.all(kinds.map((kind) => probed.counted.asked(kind)));
      await shown.last(probed.counted.origin);
      check(`a view reaches what it asks for and is granted, and nothing else: ${what}, ${uri}`,
        same(reached(probed), [...kinds].sort()), [reached(probed), said]);
      const text = JSON.stringify(probed.view._meta) + policy(probed.view._meta.ui.csp);
      check(`nothing else is in the policy: ${what}, ${uri}`, !/\*|x\/csp|connect-src \*|camera|clipboard/.test(text), text);
      await probed.end();
    }
  }
}

/** The metadata of a view in the list is also limited, and applies if its contents have none. */
async function listed() {
  const grant = '[permissions.ui]\nconnect = ["https://api.example.com"]\nresources = ["https://cdn.example.org"]\n' +
    'permissions = ["camera"]\n';
  const { client, logged, end } = await serving({ 'library.wasm': readFileSync(library), 'library.toml': grant });
  const { resources } = await client.listResources();
  const entry = resources.find(({ uri }) => uri === 'ui://library/reader');
  const expected = { ui: {
    csp: { connectDomains: ['https://api.example.com'], resourceDomains: ['https://cdn.example.org'] },
    permissions: { camera: {} },
    prefersBorder: true,
  } };
  check('a list has what is asked for and granted', same(entry._meta, expected), entry._meta);
  check('a view has the type of views in a list', entry.mimeType === 'text/html;profile=mcp-app', entry.mimeType);
  const view = await read(client, entry.uri);
  check('contents that say nothing have what the list has', same(view._meta, expected), view._meta);
  check('contents have the type of the list', view.mimeType === entry.mimeType, view.mimeType);
  await logged(/it may not have images, scripts, styles and fonts from https:\/\/\*\.example\.org/);
  await logged(/script-src \*/);
  check('the log says what was left out', true);
  await end();
}

async function main() {
  const entryPoints = [fileURLToPath(new URL('host.js', import.meta.url))];
  const bundled = await build({ entryPoints, bundle: true, format: 'esm', write: false, logLevel: 'error' });
  const sites = [await host(bundled.outputFiles[0].text), await sandbox()];
  const browser = await launch();
  try {
    const shown = await Shown.open(browser, ...sites);
    await chart(shown);
    await prefixed(shown);
    await listed();
    await nothingGranted(shown);
    await someGranted(shown);
  } finally {
    await browser.close();
    for (const { server: site } of sites) {
      site.closeAllConnections();
      site.close();
    }
  }
}

const overdue = setTimeout(() => {
  console.log(`FAILED  it took longer than ${PATIENCE} ms`);
  process.exit(1);
}, PATIENCE);
try {
  await main();
} catch (error) {
  check('it goes on to the end', false, String(error.stack ?? error));
}
clearTimeout(overdue);
process.exit(counted());
