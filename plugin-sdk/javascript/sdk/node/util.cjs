const { formatted } = require('../console.js');
const { inspectValue } = require('../inspect.js');
const util = require('util/util.js');

const inspect = (value) => inspectValue(value);
inspect.custom = Symbol.for('nodejs.util.inspect.custom');

// The package's own shows the wrong content of a `Map`.
const format = (...values) => formatted(values);

module.exports = { ...util, inspect, format, TextEncoder, TextDecoder };
