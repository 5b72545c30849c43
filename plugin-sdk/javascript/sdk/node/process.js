// The part of Node's `process` that libraries read. A plugin has no environment variables.

export const process = {
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

export default process;
