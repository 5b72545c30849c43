// `toolbay/keyvalue` in Node, for tests: it stores the state in memory.

import { opener } from './bucket.js';
import { decode, encode } from './utf8.js';

const buckets = new Map();

/** Deletes all state. Use it at the beginning of a test. */
export function clear() {
  buckets.clear();
}

const store = {
  open(name) {
    if (!buckets.has(name)) buckets.set(name, new Map());
    const values = buckets.get(name);
    return {
      values,
      get: (key) => values.get(key) ?? null,
      set: (key, value) => void values.set(key, Uint8Array.from(value)),
      delete: (key) => void values.delete(key),
      exists: (key) => values.has(key),
      listKeys: () => ({ keys: [...values.keys()].sort(), cursor: null }),
    };
  },
};

const atomics = {
  increment({ values }, key, by) {
    const sum = Number(values.has(key) ? decode(values.get(key)) : 0) + by;
    values.set(key, encode(String(sum)));
    return sum;
  },
};

export const open = opener(store, atomics);
