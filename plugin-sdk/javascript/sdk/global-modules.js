// Globals of the web platform that the engine lacks, and the module that provides each.
//
// The build inserts a module only if the author's code or one of its packages uses the
// name: as a free name, as a member of `globalThis`, `self` or `global`, or through an
// alias of the global object. Each module exports its globals by name. To add a global,
// add a row.

/** The module of each global, relative to the folder of the SDK. */
export const GLOBALS = {
  // The bundler loads the modules in this order, each of them after those that it is still loading.
  // `URL` needs `TextEncoder` while it loads, so it must be the first: then it waits for the others.
  URL: 'web/url.js',
  URLSearchParams: 'web/url.js',
  TextDecoder: 'web/encoding.js',
  TextEncoder: 'web/encoding.js',
  fetch: 'fetch.js',
  ...rows('timers.js', [
    'clearImmediate',
    'clearInterval',
    'clearTimeout',
    'setImmediate',
    'setInterval',
    'setTimeout',
  ]),
  AbortSignal: 'abort-signal.js',
  ...rows('web/globals.js', [
    'AbortController',
    'Blob',
    'CustomEvent',
    'DOMException',
    'Event',
    'EventTarget',
    'File',
    'FormData',
    'Headers',
    'Request',
    'Response',
  ]),
  ...rows('web/stream-globals.js', [
    'ByteLengthQueuingStrategy',
    'CountQueuingStrategy',
    'ReadableByteStreamController',
    'ReadableStream',
    'ReadableStreamBYOBReader',
    'ReadableStreamBYOBRequest',
    'ReadableStreamDefaultController',
    'ReadableStreamDefaultReader',
    'TextDecoderStream',
    'TextEncoderStream',
    'TransformStream',
    'TransformStreamDefaultController',
    'WritableStream',
    'WritableStreamDefaultController',
    'WritableStreamDefaultWriter',
  ]),
  structuredClone: 'web/structured-clone.js',
  Buffer: 'web/buffer.js',
  navigator: 'web/navigator.js',
  process: 'node/process.js',
};

/** Other names of the global object. */
export const ALIASES = ['global', 'globalThis', 'self'];

/** Returns the rows of the globals that one module provides. */
function rows(file, names) {
  return Object.fromEntries(names.map((name) => [name, file]));
}
