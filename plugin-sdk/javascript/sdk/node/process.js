// The part of Node's `process` that libraries read. A plugin has no environment variables.

/** Returns a stream that writes each text as a line of the log. */
const outputStream = (print) => ({
  isTTY: false,
  columns: 80,
  write(text) {
    print(String(text).replace(/\n$/, ''));
    return true;
  },
  on() {
    return this;
  },
  once() {
    return this;
  },
  emit: () => false,
});

export const process = {
  stdout: outputStream((text) => console.log(text)),
  stderr: outputStream((text) => console.error(text)),
  // As the build replaces it.
  env: { NODE_ENV: 'production' },
  arch: 'wasm32',
  argv: [],
  execArgv: [],
  version: '',
  versions: {},
  platform: 'wasi',
  title: 'toolbay',
  browser: true,
  cwd: () => '/',
  nextTick: (job, ...args) => queueMicrotask(() => job(...args)),
  emitWarning: (warning) => console.warn(String(warning)),
  on() {
    return process;
  },
  once() {
    return process;
  },
  off() {
    return process;
  },
  removeListener() {
    return process;
  },
  exit() {
    throw new Error('a plugin cannot end its process: return from the handler, or throw an error');
  },
};

// For `require('node:process')` and `import { env } from 'node:process'`.
export const {
  stdout,
  stderr,
  env,
  arch,
  argv,
  execArgv,
  version,
  versions,
  platform,
  title,
  browser,
  cwd,
  nextTick,
  emitWarning,
  on,
  once,
  off,
  removeListener,
  exit,
} = process;

export default process;
