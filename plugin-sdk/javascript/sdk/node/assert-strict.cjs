module.exports = require('assert/build/assert.js').strict;
