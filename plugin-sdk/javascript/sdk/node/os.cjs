// `node:os`, as far as it describes the plugin's own machine.

const known = {
  EOL: '\n',
  arch: () => 'wasm32',
  devNull: '/dev/null',
  endianness: () => 'LE',
  homedir: () => '/',
  hostname: () => 'localhost',
  platform: () => 'wasi',
  release: () => '',
  tmpdir: () => '/tmp',
  type: () => 'WASI',
  version: () => '',
};

module.exports = require('./missing.cjs')('os', 'a plugin has no machine of its own', known);
