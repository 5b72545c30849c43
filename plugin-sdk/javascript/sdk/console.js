// `console`, which writes to the host's log.

import { inspectValue } from './inspect.js';
import { inspect } from './failure.js';

/** Returns the values as one text. As in Node, the first text can have places such as `%s`, `%d` and `%o`. */
export function formatted(values) {
  const [pattern, ...rest] = values;
  if (typeof pattern !== 'string' || rest.length === 0) return values.map(inspect).join(' ');
  const text = pattern.replace(/%[sdifjoOc%]/g, (sign) => {
    if (sign === '%%') return '%';
    if (rest.length === 0) return sign;
    const value = rest.shift();
    if (sign === '%s') return typeof value === 'symbol' ? String(value) : inspect(value);
    if (sign === '%d' || sign === '%i' || sign === '%f') return String(numberOf(sign, value));
    if (sign === '%j') return JSON.stringify(value);
    return sign === '%c' ? '' : inspectValue(value);
  });
  return [text, ...rest.map(inspect)].join(' ');
}

function numberOf(sign, value) {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'symbol') return NaN;
  if (sign === '%i') return parseInt(value, 10);
  return sign === '%f' ? parseFloat(value) : Number(value);
}

/** Returns a `console` that writes to `host.log(level, text)`. `now()` is a time in milliseconds. */
export function consoleOf(host, now = () => performance.now()) {
  let indent = '';
  const counts = new Map();
  const timers = new Map();
  const write = (level, text) => host.log(level, indent + text.replaceAll('\n', `\n${indent}`));
  const at = (level) => (...values) => write(level, formatted(values));
  const elapsed = (label) => `${label}: ${(now() - timers.get(label)).toFixed(3)}ms`;
  const timer = (label, act) => {
    if (timers.has(label)) act();
    else write('warning', `No such label '${label}' for console.time()`);
  };
  const group = (...labels) => {
    if (labels.length > 0) write('info', formatted(labels));
    indent += '  ';
  };
  return {
    trace: (...values) => write('debug', `Trace${values.length > 0 ? `: ${formatted(values)}` : ''}\n${new Error().stack}`.trimEnd()),
    debug: at('debug'),
    log: at('info'),
    info: at('info'),
    warn: at('warning'),
    error: at('error'),
    assert(condition, ...values) {
      if (condition) return;
      const [first, ...rest] = values;
      write('error', formatted(typeof first === 'string' ? [`Assertion failed: ${first}`, ...rest] : ['Assertion failed', ...values]));
    },
    clear() {},
    count(label = 'default') {
      counts.set(String(label), (counts.get(String(label)) ?? 0) + 1);
      write('info', `${label}: ${counts.get(String(label))}`);
    },
    countReset: (label = 'default') => void counts.delete(String(label)),
    dir: (value) => write('info', inspectValue(value)),
    dirxml: at('info'),
    group,
    groupCollapsed: group,
    groupEnd() {
      indent = indent.slice(2);
    },
    // One line a row, which the model and people can both read.
    table(data) {
      if (typeof data !== 'object' || data === null) return write('info', formatted([data]));
      for (const [key, row] of data instanceof Map ? data : Object.entries(data)) write('info', `${key}: ${inspect(row)}`);
      return undefined;
    },
    time: (label = 'default') => void timers.set(String(label), now()),
    timeEnd: (label = 'default') =>
      timer(String(label), () => {
        write('info', elapsed(String(label)));
        timers.delete(String(label));
      }),
    timeLog: (label = 'default', ...values) =>
      timer(String(label), () => write('info', [elapsed(String(label)), ...(values.length > 0 ? [formatted(values)] : [])].join(' '))),
    timeStamp() {},
  };
}
