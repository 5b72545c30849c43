// The part of Node's `process` that libraries read. A plugin has no environment variables.

const NANOSECONDS = 1_000_000_000n;

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

/** Returns seconds and nanoseconds since a time that does not change within a call, or since `previous`. */
const hrtime = (previous = [0, 0]) => {
  const now = hrtime.bigint() - (BigInt(previous[0]) * NANOSECONDS + BigInt(previous[1]));
  return [Number(now / NANOSECONDS), Number(now % NANOSECONDS)];
};
hrtime.bigint = () => BigInt(Math.round(performance.now() * 1e6));

export const process = {
  stdout: outputStream((text) => console.log(text)),
  stderr: outputStream((text) => console.error(text)),
  // As the build replaces it.
  env: { NODE_ENV: 'production' },
  arch: 'wasm32',
  argv: [],
  execArgv: [],
  execPath: '',
  version: '',
  versions: {},
  platform: 'wasi',
  title: 'toolbay',
  browser: true,
  cwd: () => '/',
  hrtime,
  uptime: () => performance.now() / 1000,
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
  execPath,
  version,
  versions,
  platform,
  title,
  browser,
  cwd,
  uptime,
  nextTick,
  emitWarning,
  on,
  once,
  off,
  removeListener,
  exit,
} = process;

export { hrtime };

export default process;
