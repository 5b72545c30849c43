// Promises for a place without an event loop.
//
// A call enters the component by a plain function that must return its answer,
// and the engine's own jobs only run after that: a native promise would never
// settle in time. So the build turns `async` functions into generators, and
// this class, whose jobs can be run here and now, stands in for `Promise`.

const jobs = [];

/** Takes the place of `queueMicrotask`. */
export function enqueue(job) {
  jobs.push(job);
}

/** Runs every job, and those that they add. */
function runJobs() {
  while (jobs.length > 0) {
    for (const job of jobs.splice(0)) job();
  }
}

/** The answer that `value` is or promises. Throws what a promise is rejected with. */
export function settle(value) {
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
  if (outcome === undefined) {
    throw new Error('the handler awaits what never happens: a plugin has no timers and no network to wait for');
  }
  if ('reason' in outcome) throw outcome.reason;
  return outcome.answer;
}

const Native = globalThis.Promise;

/** The standard's `Promise`, but for who runs the jobs. */
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

  // Generic, as the standard has them: they work on any class with `then`.
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

  /** A pair of functions of which the first call counts. */
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

  /** Takes over the state of another promise, or is fulfilled with a plain value. */
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
