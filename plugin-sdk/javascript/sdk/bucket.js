// A bucket of keys and values, for these interfaces of `wasi:keyvalue`.

import { RequestError, thrownCase } from './failure.js';
import { decode, encode } from './utf8.js';

/** Returns the function `open`. */
export function opener(store, atomics) {
  return (name = 'default') => new Bucket(said(() => store.open(name)), atomics);
}

class Bucket {
  #bucket;
  #atomics;

  constructor(bucket, atomics) {
    this.#bucket = bucket;
    this.#atomics = atomics;
  }

  getBytes(key) {
    return said(() => this.#bucket.get(key)) ?? undefined;
  }

  get(key) {
    const bytes = this.getBytes(key);
    return bytes === undefined ? undefined : decode(bytes);
  }

  set(key, value) {
    said(() => this.#bucket.set(key, typeof value === 'string' ? encode(value) : value));
  }

  delete(key) {
    said(() => this.#bucket.delete(key));
  }

  has(key) {
    return said(() => this.#bucket.exists(key));
  }

  increment(key, by = 1) {
    return said(() => this.#atomics.increment(this.#bucket, key, by));
  }

  *keys() {
    let cursor = null;
    do {
      const page = said(() => this.#bucket.listKeys(cursor));
      yield* page.keys;
      cursor = page.cursor ?? null;
    } while (cursor !== null);
  }
}

/** Returns the result of `act`, or throws its error with a message that is the same in every language. */
function said(act) {
  try {
    return act();
  } catch (thrown) {
    const why = thrownCase(thrown);
    switch (why?.tag) {
      case 'access-denied':
        throw new RequestError('Keeping state is denied.');
      case 'no-such-store':
        throw new RequestError('There is no such bucket.');
      case 'other':
        throw new RequestError(`The state cannot be used: ${why.val}.`);
      default:
        throw thrown;
    }
  }
}
