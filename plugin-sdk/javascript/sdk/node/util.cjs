const { inspectValue } = require('../inspect.js');
const util = require('util/util.js');

const inspect = (value) => inspectValue(value);
inspect.custom = Symbol.for('nodejs.util.inspect.custom');

/** Like Node's `format`; the package's own shows the wrong content of a `Map`. */
function format(...args) {
  const text = (value) => (typeof value === 'string' ? value : inspectValue(value));
  if (typeof args[0] !== 'string') return args.map(text).join(' ');
  const [pattern, ...rest] = args;
  const filled = pattern.replace(/%[sdifjoOc%]/g, (sign) => {
    if (sign === '%%') return '%';
    if (rest.length === 0) return sign;
    const value = rest.shift();
    if (sign === '%s') return text(value);
    if (sign === '%d') return String(Number(value));
    if (sign === '%i') return String(parseInt(value, 10));
    if (sign === '%f') return String(parseFloat(value));
    if (sign === '%j') return JSON.stringify(value);
    return sign === '%c' ? '' : inspectValue(value);
  });
  return [filled, ...rest.map(text)].join(' ');
}

module.exports = { ...util, inspect, format, TextEncoder, TextDecoder };
