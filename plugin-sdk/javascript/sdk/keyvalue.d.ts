/** State that outlives a call, if the operator's grant has `[permissions.state]`. */

/** Keys and their values. Every method throws an error with words for the model if the host refuses. */
export interface Bucket {
  /** The value of a key as text; `undefined` if there is none. */
  get(key: string): string | undefined;
  /** The value of a key as bytes; `undefined` if there is none. */
  getBytes(key: string): Uint8Array | undefined;
  /** Sets the value of a key. A text is kept in UTF-8. */
  set(key: string, value: string | Uint8Array): void;
  /** Removes a key, if it is there. */
  delete(key: string): void;
  /** Whether a key has a value. */
  has(key: string): boolean;
  /** Adds to the number that a key has, which is 0 at first, and returns the sum; calls at the same time all count. */
  increment(key: string, by?: number): number;
  /** Every key, in any order. */
  keys(): IterableIterator<string>;
}

/** Opens a bucket of the plugin. */
export declare function open(name?: string): Bucket;

/** In tests, which keep state in memory: forgets everything. */
export declare function clear(): void;
