// `AbortController` and `AbortSignal`.

import { addTimer } from '../loop.js';
import { DOMException } from './dom-exception.js';
import { defineHandler, Event, EventTarget } from './event.js';

// A signal is made by a controller or by the static functions.
const KEY = Symbol('signal');
let abort;

export class AbortSignal extends EventTarget {
  #aborted = false;
  #reason;

  constructor(key) {
    if (key !== KEY) throw new TypeError('a signal is made by an AbortController');
    super();
  }

  static {
    abort = (signal, reason = new DOMException('This operation was aborted', 'AbortError')) => {
      if (signal.#aborted) return;
      signal.#aborted = true;
      signal.#reason = reason;
      signal.dispatchEvent(new Event('abort'));
    };
  }

  static abort(reason) {
    const signal = new AbortSignal(KEY);
    abort(signal, reason);
    return signal;
  }

  static timeout(milliseconds) {
    if (!(milliseconds >= 0 && milliseconds <= Number.MAX_SAFE_INTEGER)) {
      throw new RangeError(`a timeout is a number of milliseconds, not ${milliseconds}`);
    }
    const signal = new AbortSignal(KEY);
    const expired = () => abort(signal, new DOMException('The operation was aborted due to timeout', 'TimeoutError'));
    addTimer(expired, milliseconds);
    return signal;
  }

  static any(signals) {
    const signal = new AbortSignal(KEY);
    const sources = [...signals];
    const aborted = sources.find((source) => source.aborted);
    if (aborted !== undefined) abort(signal, aborted.reason);
    for (const source of aborted === undefined ? sources : []) {
      source.addEventListener('abort', () => abort(signal, source.reason), { once: true });
    }
    return signal;
  }

  get aborted() {
    return this.#aborted;
  }

  get reason() {
    return this.#reason;
  }

  throwIfAborted() {
    if (this.#aborted) throw this.#reason;
  }

  get [Symbol.toStringTag]() {
    return 'AbortSignal';
  }
}

defineHandler(AbortSignal, 'abort');

export class AbortController {
  #signal = new AbortSignal(KEY);

  get signal() {
    return this.#signal;
  }

  abort(reason) {
    abort(this.#signal, reason);
  }

  get [Symbol.toStringTag]() {
    return 'AbortController';
  }
}
