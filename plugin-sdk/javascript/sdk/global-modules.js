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
  CryptoKey: 'web/crypto-key.js',
  navigator: 'web/navigator.js',
  process: 'node/process.js',
};

/** Members of globals that are large, and that the build adds if something names them: the global and the module. */
export const MEMBERS = { subtle: { owner: 'crypto', file: 'web/subtle.js' } };

/** The globals of the engine, and those that the SDK sets in every plugin. */
export const ENGINE_GLOBALS = new Set(
  `AggregateError Array ArrayBuffer AsyncDisposableStack BigInt BigInt64Array BigUint64Array Boolean DataView Date
  DisposableStack Error EvalError FinalizationRegistry Float16Array Float32Array Float64Array Function Infinity Int16Array
  Int32Array Int8Array Iterator JSON Map Math NaN Number Object Promise Proxy RangeError ReferenceError Reflect RegExp Set
  SharedArrayBuffer String SuppressedError Symbol SyntaxError TypeError URIError Uint16Array Uint32Array Uint8Array
  Uint8ClampedArray WeakMap WeakRef WeakSet atob btoa console crypto decodeURI decodeURIComponent encodeURI
  encodeURIComponent escape eval globalThis isFinite isNaN parseFloat parseInt performance queueMicrotask undefined
  unescape`.split(/\s+/),
);

const PAGE = 'a plugin has no page';
const FILES = 'a plugin has no files: import what it needs, such as a JSON file, so that the build includes it';
const STATE = "state is kept by `open` of 'toolbay/keyvalue'";
const LOCALES = 'the engine has no locale data: format the value in the code, or take a package that brings its own data';

/** Names that exist elsewhere, and what to use instead. */
export const MISSING_GLOBALS = {
  ...advice(PAGE, ['document', 'history', 'location', 'screen', 'window', 'DOMParser', 'Element', 'HTMLElement', 'Image', 'Node']),
  ...advice(FILES, ['__dirname', '__filename', 'FileReader']),
  ...advice(STATE, ['localStorage', 'sessionStorage', 'indexedDB', 'caches']),
  ...advice('ask the user with `host.ask`', ['alert', 'confirm', 'prompt']),
  ...advice('a plugin has one thread', ['Atomics', 'BroadcastChannel', 'MessageChannel', 'MessagePort', 'SharedWorker', 'Worker']),
  ...advice('use `fetch`', ['EventSource', 'WebSocket', 'XMLHttpRequest']),
  ...advice('take a package such as fflate', ['CompressionStream', 'DecompressionStream']),
  ...advice('a plugin runs neither in Deno nor in Bun', ['Bun', 'Deno']),
  Intl: LOCALES,
  Temporal: 'use `Date`, or take a package such as temporal-polyfill',
  WebAssembly: 'a plugin cannot load WebAssembly: take a package that is written in JavaScript',
  exports: 'write `export`',
  module: 'write `export`',
  require: 'write `import`',
  requestAnimationFrame: 'use `setTimeout`',
};

/** Returns the rows of the globals that one module provides. */
function rows(file, names) {
  return Object.fromEntries(names.map((name) => [name, file]));
}

/** Returns rows of names with the same advice. */
function advice(text, names) {
  return Object.fromEntries(names.map((name) => [name, text]));
}
