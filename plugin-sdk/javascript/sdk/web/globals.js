// Globals of the web platform that the engine lacks, and the module that provides each.
//
// The build inserts a module only if the author's code or one of its packages uses the
// name: as a free name, as a member of `globalThis`, `self` or `global`, or through an
// alias of the global object. Each module exports its globals by name. To add a global,
// add a row.

/** The module of each global, relative to the folder of the SDK. */
export const GLOBALS = {
  Headers: 'fetch.js',
  Response: 'fetch.js',
  fetch: 'fetch.js',
  TextDecoder: 'web/encoding.js',
  TextEncoder: 'web/encoding.js',
  URL: 'web/url.js',
  URLSearchParams: 'web/url.js',
  structuredClone: 'web/structured-clone.js',
  Buffer: 'web/buffer.js',
  navigator: 'web/navigator.js',
  process: 'node/process.js',
};

/** Other names of the global object. */
export const ALIASES = ['global', 'globalThis', 'self'];
