// The metrics of a server with real calls, read by Prometheus and promtool, and every query of the dashboard for
// Grafana on them.
//
//     node dashboard.mjs SERVER PLUGINS GUESTS PROGRAMS DOCS
//
// SERVER is the binary; PLUGINS a folder with the sample plugins, GUESTS one with those of the tests; PROGRAMS has prometheus
// and promtool; DOCS has the page and the dashboard. With CONSOLE_SCREENSHOTS=FOLDER, the picture for the book is
// written there. This script draws it, not Grafana, from the panels and the responses of Prometheus.

import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { launch } from './browser.mjs';
import { check, counted } from './checks.mjs';
import { PAGE, drawn } from './panels.mjs';
import { INTERVAL, JOB, Prometheus, promtool } from './prometheus.mjs';
import { Serving } from './serving.mjs';

const [server, plugins, guests, programs, docs] = process.argv.slice(2);
const screenshots = process.env.CONSOLE_SCREENSHOTS;

/** The timeout of the whole test, in milliseconds. */
const PATIENCE = 300_000;

/** The seconds of load that a picture shows, and the minimum for a check. */
const SHOWN = screenshots ? 90 : 10;

/** The interval that Grafana inserts: four scrapes, so that it contains two if one is late. */
const RATE_INTERVAL = `${4 * INTERVAL}s`;

const CONFIG = `
[audit]
folder = "audit"
[state]
folder = "state"
[console]
enabled = false
[rate_limit]
calls = 1_000_000
per = "1m"
[caller_rate_limit]
calls = 1_000_000
per = "1m"
[circuit_breaker]
crashes = 0
`;

const FILES = {
  'calculator.wasm': { from: join(plugins, 'calculator.wasm') },
  'text.wasm': { from: join(plugins, 'text.wasm') },
  'keeper.wasm': { from: join(guests, 'keeper.wasm') },
  'keeper.toml': '[permissions.state]\nsize = "1MiB"\n',
  'hostile.wasm': { from: join(guests, 'hostile.wasm') },
  'hostile.toml': '[tools.burn.limits]\nfuel = 1_000_000\n[tools.sleep_hour.limits]\ntimeout = "50ms"\n',
  'web.wasm': { from: join(guests, 'web.wasm') },
  'broken.wasm': 'This is no WebAssembly.',
};

/** The frequency of each call. */
const CALLS = [
  [8, 'calculate_sum', { a: 20, b: 22 }],
  [5, 'count_words', { text: 'Some words.' }],
  [3, 'slugify', { text: 'Some words' }],
  [4, 'evaluate', { expression: '2 * (3 + 4)' }],
  [1, 'evaluate', { expression: '1/0' }],
  [1, 'fail', {}],
  [3, 'keep', { steps: [{ increment: ['n', 1] }, { get: 'n' }] }],
  [1, 'burn', { n: 100_000_000 }],
  [1, 'sleep_hour', {}],
  [1, 'try_to_send', { url: 'https://not-allowed.example/' }],
  [1, 'no_such_tool', {}],
].flatMap(([times, ...call]) => Array(times).fill(call));

/** Calls tools, and adds and removes plugins, until it is stopped. Returns the number of calls. */
async function load(serving, stop) {
  const began = Date.now();
  let made = 0;
  const caller = async (first) => {
    // Coprime to their number, so that each is called in turn.
    for (let number = first; !stop.aborted; number += 7) {
      const [name, args] = CALLS[number % CALLS.length];
      await serving.call(name, args);
      made += 1;
      // The load varies, as that of real clients.
      const wave = 55 + 45 * Math.sin((Date.now() - began) / 9000);
      await new Promise((resolve) => setTimeout(resolve, wave));
    }
  };
  const changer = async () => {
    for (let number = 0; !stop.aborted; number += 1) {
      const name = `${['qr', 'time', 'chart'][number % 3]}.wasm`;
      if (number % 6 < 3) serving.put(name, { from: join(plugins, name) });
      else serving.remove(name);
      await new Promise((resolve) => setTimeout(resolve, 3000));
    }
  };
  await Promise.all([caller(0), caller(3), caller(11), changer()]);
  return made;
}

/** Returns a query with the variables that Grafana would insert. */
function filled(query) {
  const text = query.replaceAll('$__rate_interval', RATE_INTERVAL).replaceAll('$job', JOB).replaceAll('$tool', '.*');
  if (text.includes('$')) throw new Error(`the query ${query} has a variable that is not known here`);
  return text;
}

/** Returns the name of a series, by its pattern. */
const named = (pattern, labels) => pattern.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label) => labels[label] ?? '');

/** Returns the series of a query in a time range, without values that are not numbers. */
async function asked(prometheus, { expr, legendFormat = '', instant }, { from, to }) {
  const query = filled(expr);
  const data = instant
    ? await prometheus.ask('query', { query, time: to })
    : await prometheus.ask('query_range', { query, start: from, end: to, step: INTERVAL });
  const series = data.result.map(({ metric, value, values }) => ({
    name: named(legendFormat, metric),
    points: (values ?? [value]).map(([time, text]) => [time, Number(text)]).filter(([, number]) => Number.isFinite(number)),
  }));
  return series.filter(({ points }) => points.length > 0);
}

/** Returns the current time, in seconds. */
const now = () => Date.now() / 1000;

/** Waits until Prometheus has enough data for a query, and returns the result. */
async function answered(prometheus, target, from) {
  const series = () => asked(prometheus, target, { from, to: now() });
  let found = await series();
  for (const began = Date.now(); found.length === 0 && Date.now() - began < 30_000; found = await series()) {
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return found;
}

/** Returns the code blocks of a language in a page. */
const blocks = (page, language) => [...page.matchAll(/```(\w+)\n([\s\S]*?)```/g)].filter(([, is]) => is === language).map(([, , text]) => text);

/** Tests the configuration in the page of the book. */
function theBook() {
  const written = blocks(readFileSync(join(docs, 'metrics.md'), 'utf8'), 'yaml');
  const [configs, rules] = ['scrape_configs:', 'groups:'].map((key) => written.filter((text) => text.startsWith(key)));
  check('the book has a configuration and alerts', configs.length === 1 && rules.length === 1, written);
  for (const [what, texts, args] of [['configuration', configs, ['check', 'config', '--syntax-only']], ['alerts', rules, ['check', 'rules']]]) {
    const { ok, said } = promtool(programs, args, texts.join(''), true);
    check(`promtool accepts the ${what} of the book`, ok, said);
  }
}

/** Tests the metrics of a server after calls, as text. */
async function theText(serving) {
  const text = await (await fetch(`${serving.site}/metrics`)).text();
  const { ok, said } = promtool(programs, ['check', 'metrics'], text);
  check('promtool has no finding in the metrics', ok && said === '', said);
  check('and they are about calls', text.includes('toolbay_calls_total{'), text.slice(0, 300));
  const { ok: bad } = promtool(programs, ['check', 'metrics'], `${text}toolbay_calls_total{tool="a" 1\n`);
  check('it would find half a line', !bad);
}

/** Tests the values of the dashboard's variables. */
async function variables(prometheus, dashboard) {
  for (const { name, type, query } of dashboard.templating.list.filter(({ type }) => type === 'query')) {
    const [, selector, label] = /^label_values\((.*), (\w+)\)$/.exec(query);
    const values = await prometheus.values(label, filled(selector));
    const wanted = { job: JOB, tool: 'calculate_sum' }[name];
    check(`the ${type} variable ${name} offers what there is`, values.includes(wanted), values);
  }
}

/** The additional checks of panels, which get the last value of each series. */
const SHOWS = {
  'Calls per second': ([rate]) => rate > 5,
  'Calls that failed': ([part]) => part > 0.01 && part < 0.5,
  'Plugins in service': ([count]) => count >= 5 && count <= 8,
  'Plugins refused or stale': ([count]) => count === 1,
  'Uptime': ([seconds]) => seconds > 1 && seconds < 600,
  'State of plugins': ([bytes]) => bytes > 1000,
  'Lines that the audit log lost': ([lines]) => lines === 0,
};

/** The names of series that must have been above 0. */
const NAMES = {
  'Calls by outcome': ['ok', 'failed', 'fuel', 'deadline', 'unknown-tool'],
  'Busiest tools': ['calculate_sum', '(other)'],
  'Where the time goes': ['queue', 'prepare', 'guest', 'check'],
  'Limits reached': ['limits.fuel', 'limits.timeout'],
  'Denials': ['http'],
  'Plugins by status': ['ready', 'refused'],
  'Changes of plugins': ['load', 'publications'],
  'Compilations': ['compiled: ok', 'cache: miss', 'compilers that run'],
};

/** Every query of every panel. */
async function queries(prometheus, dashboard, from) {
  const found = new Map();
  for (const { id, title, targets = [] } of dashboard.panels) {
    for (const target of targets) {
      const series = await answered(prometheus, target, from);
      check(`${title}: Prometheus answers ${target.expr}`, series.length > 0, 'no sample');
      found.set(id, [...(found.get(id) ?? []), ...series]);
    }
  }
  return found;
}

/** Returns the data of the dashboard at the end. */
async function everyPanel(prometheus, dashboard, window) {
  const found = new Map();
  for (const { id, title, type, targets } of dashboard.panels.filter(({ type }) => type !== 'row')) {
    const series = (await Promise.all(targets.map((target) => asked(prometheus, target, window)))).flat();
    found.set(id, series);
    const names = series.map(({ name }) => name);
    const told = new Set(names).size === names.length && (type === 'stat' || names.every(Boolean));
    check(`${title}: its series are told apart`, series.length > 0 && told, names);
    const last = series.map(({ points }) => points.at(-1)[1]);
    if (SHOWS[title]) check(`${title}: it is right`, SHOWS[title](last), last);
    const above = series.filter(({ points }) => points.some(([, value]) => value > 0)).map(({ name }) => name);
    if (NAMES[title]) check(`${title}: it has what happened`, NAMES[title].every((name) => above.includes(name)), above);
  }
  const titles = new Set(dashboard.panels.map(({ title }) => title));
  const unknown = [...Object.keys(SHOWS), ...Object.keys(NAMES)].filter((title) => !titles.has(title));
  check('what is expected is about panels that there are', unknown.length === 0, unknown);
  return found;
}

/** Draws the dashboard, and stores the picture for the book. */
async function picture(dashboard, found, window) {
  const browser = await launch();
  try {
    const page = await browser.newPage({ viewport: { width: PAGE, height: 800 } });
    await page.setContent(drawn(dashboard, found, window));
    const charts = await page.locator('section svg').count();
    const wanted = dashboard.panels.filter(({ type }) => type === 'timeseries').length;
    check('every panel is drawn', charts === wanted && await page.locator('.stat').count() > 0, charts);
    check('no line is without a place', !(await page.content()).includes('NaN'));
    if (screenshots) {
      mkdirSync(screenshots, { recursive: true });
      await page.screenshot({ path: join(screenshots, 'dashboard.png'), fullPage: true });
    }
  } finally {
    await browser.close();
  }
}

const timer = setTimeout(() => {
  console.error(`nothing more happened within ${PATIENCE / 1000} s`);
  process.exit(1);
}, PATIENCE);
const running = [];
try {
  const dashboard = JSON.parse(readFileSync(join(docs, 'grafana-dashboard.json'), 'utf8'));
  theBook();
  const serving = await Serving.start(server, FILES, CONFIG);
  running.push(serving);
  const prometheus = await Prometheus.start(programs, new URL(serving.site).host);
  running.unshift(prometheus);
  await serving.call('calculate_sum', { a: 1, b: 1 });
  const from = now();
  const stop = new AbortController();
  const loading = load(serving, stop.signal);
  try {
    await queries(prometheus, dashboard, from);
    const left = (from + SHOWN - now()) * 1000;
    if (left > 0) await new Promise((resolve) => setTimeout(resolve, left));
    await variables(prometheus, dashboard);
    const to = now();
    const window = { from: Math.max(from, to - SHOWN), to };
    const found = await everyPanel(prometheus, dashboard, window);
    await picture(dashboard, found, window);
  } finally {
    stop.abort();
  }
  check('calls were made meanwhile', await loading > 100, await loading);
  await theText(serving);
} catch (error) {
  check('the run came to its end', false, String(error.stack ?? error));
}
for (const each of running) await each.end();
clearTimeout(timer);
process.exit(counted());
