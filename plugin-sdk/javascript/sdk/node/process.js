// The part of Node's `process` that libraries read. A plugin has no environment variables.

export const process = {
  // As the build replaces it.
  env: { NODE_ENV: 'production' },
  argv: [],
  execArgv: [],
  version: '',
  versions: {},
  platform: 'wasi',
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
};

export default process;
