module.exports = { ...require('util/util.js'), TextEncoder, TextDecoder };
