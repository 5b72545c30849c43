// The timers of the HTML standard, on the event loop.

import { addTimer, removeTimer } from '../loop.js';

/** A timer, as in Node: `clearTimeout` takes it, and it converts to its number. */
class Timer {
  #number;

  constructor(number) {
    this.#number = number;
  }

  // The end of a call drops its timers in any case.
  ref() {
    return this;
  }

  unref() {
    return this;
  }

  hasRef() {
    return true;
  }

  close() {
    removeTimer(this.#number);
    return this;
  }

  [Symbol.dispose]() {
    removeTimer(this.#number);
  }

  [Symbol.toPrimitive]() {
    return this.#number;
  }
}

function started(name, act, delay, every, values) {
  if (typeof act !== 'function') throw new TypeError(`the first argument of ${name} is a function, not ${typeof act}`);
  return new Timer(addTimer(() => act(...values), delay, every));
}

export const setTimeout = (act, delay, ...values) => started('setTimeout', act, delay, false, values);
export const setInterval = (act, delay, ...values) => started('setInterval', act, delay, true, values);
export const setImmediate = (act, ...values) => started('setImmediate', act, 0, false, values);

export function clearTimeout(timer) {
  if (timer !== undefined && timer !== null) removeTimer(Number(timer));
}

export { clearTimeout as clearInterval, clearTimeout as clearImmediate };
