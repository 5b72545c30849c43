// The host's functions for a handler, on top of the contract's.

import { inspect } from './failure.js';

const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];

/** The second parameter of a handler. */
export class Host {
  #functions;

  constructor(functions) {
    this.#functions = functions;
  }

  log(level, message) {
    if (!LEVELS.includes(level)) throw new TypeError(`the level of a log line is one of ${LEVELS.join(', ')}`);
    this.#functions.log(level, inspect(message).toWellFormed());
  }

  progress(done, total, message) {
    const said = message === undefined ? undefined : String(message).toWellFormed();
    this.#functions.progress(Number(done), total === undefined ? undefined : Number(total), said);
  }

  cancelled() {
    return this.#functions.cancelled();
  }

  config(key) {
    return this.#functions.config(String(key).toWellFormed()) ?? undefined;
  }

  configAll() {
    return Object.fromEntries(this.#functions.configAll());
  }
}

/** A `console` that writes to the host's log. */
export function consoleOf(host) {
  const at = (level) => (...values) => host.log(level, values.map(inspect).join(' '));
  return {
    trace: at('debug'),
    debug: at('debug'),
    log: at('info'),
    info: at('info'),
    warn: at('warning'),
    error: at('error'),
  };
}
