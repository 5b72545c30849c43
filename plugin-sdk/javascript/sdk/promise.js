// Promises whose jobs the SDK runs.
//
// The host calls a plain function of the component, which must return the answer,
// and the engine's own jobs run only after that: a native promise would not settle
// in time. So the build converts `async` functions to generators, and this class,
// whose jobs can be run immediately, replaces `Promise`.

import { endLoop, turn } from './loop.js';

let jobs = [];

/** Replaces `queueMicrotask`. */
export function enqueue(job) {
  jobs.push(job);
}

/** Runs every job, and those that they add. */
function runJobs() {
  while (jobs.length > 0) {
    const batch = jobs;
    jobs = [];
    for (const job of batch) job();
  }
}

/**
 * Returns `value`, or the result of the promise `value`, for which it runs the event loop. Throws
 * the reason of a rejected promise, and the error of a timer. Timers that are left are dropped.
 */
export function settle(value) {
  try {
    return result(value);
  } finally {
    endLoop();
    // Those of the dropped events too, which would otherwise run in a later call.
    jobs = [];
  }
}

function result(value) {
  if (typeof value?.then !== 'function') {
    runJobs();
    return value;
  }
  let outcome;
  SyncPromise.resolve(value).then(
    (answer) => (outcome = { answer }),
    (reason) => (outcome = { reason }),
  );
  runJobs();
  while (outcome === undefined) {
    if (!turn()) {
      throw new Error('the handler awaits a promise that never settles: no request, timer or other job is left that could settle it');
    }
    runJobs();
  }
  if ('reason' in outcome) throw outcome.reason;
  return outcome.answer;
}

const Native = globalThis.Promise;

/** The standard's `Promise`, except that the SDK runs the jobs. */
export class SyncPromise {
  #state = 'pending';
  #value;
  #reactions = [];

  constructor(executor) {
    if (typeof executor !== 'function') throw new TypeError('a promise is made with a function');
    const { resolve, reject } = this.#settlers();
    try {
      executor(resolve, reject);
    } catch (error) {
      reject(error);
    }
  }

  // Generic, as in the standard: they work on any class with `then`.
  static all = Native.all;
  static allSettled = Native.allSettled;
  static any = Native.any;
  static race = Native.race;
  static reject = Native.reject;
  static try = Native.try;
  static withResolvers = Native.withResolvers;

  static resolve(value) {
    return value instanceof SyncPromise && value.constructor === this ? value : new this((resolve) => resolve(value));
  }

  static get [Symbol.species]() {
    return this;
  }

  get [Symbol.toStringTag]() {
    return 'Promise';
  }

  then(onFulfilled, onRejected) {
    const Kind = this.constructor?.[Symbol.species] ?? SyncPromise;
    const next = {};
    const promise = new Kind((resolve, reject) => Object.assign(next, { resolve, reject }));
    this.#react(() => {
      const kept = this.#state === 'fulfilled';
      const handler = kept ? onFulfilled : onRejected;
      if (typeof handler !== 'function') {
        (kept ? next.resolve : next.reject)(this.#value);
        return;
      }
      try {
        next.resolve(handler(this.#value));
      } catch (error) {
        next.reject(error);
      }
    });
    return promise;
  }

  #react(reaction) {
    if (this.#state === 'pending') this.#reactions.push(reaction);
    else enqueue(reaction);
  }

  #settle(state, value) {
    this.#state = state;
    this.#value = value;
    for (const reaction of this.#reactions) enqueue(reaction);
    this.#reactions = [];
  }

  /** Returns a pair of functions of which only the first call has an effect. */
  #settlers() {
    let called = false;
    const once = (act) => (value) => {
      if (called) return;
      called = true;
      act(value);
    };
    return {
      resolve: once((value) => this.#resolve(value)),
      reject: once((reason) => this.#settle('rejected', reason)),
    };
  }

  /** Adopts the state of another promise, or fulfills this one with a plain value. */
  #resolve(value) {
    if (value === this) {
      this.#settle('rejected', new TypeError('a promise cannot wait for itself'));
      return;
    }
    let then;
    try {
      then = value !== null && (typeof value === 'object' || typeof value === 'function') ? value.then : undefined;
    } catch (error) {
      this.#settle('rejected', error);
      return;
    }
    if (typeof then !== 'function') {
      this.#settle('fulfilled', value);
      return;
    }
    enqueue(() => {
      const { resolve, reject } = this.#settlers();
      try {
        then.call(value, resolve, reject);
      } catch (error) {
        reject(error);
      }
    });
  }
}

// Generic like the combinators above.
SyncPromise.prototype.catch = Native.prototype.catch;
SyncPromise.prototype.finally = Native.prototype.finally;
Object.defineProperty(SyncPromise, 'name', { value: 'Promise' });
