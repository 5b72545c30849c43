/** State that outlives a call, if the operator's grant has `[permissions.state]`. */

/** Keys and their values. Every method throws an error with a message for the model if the host refuses. */
export interface Bucket {
  /** Returns the value of a key as text; `undefined` if there is none. */
  get(key: string): string | undefined;
  /** Returns the value of a key as bytes; `undefined` if there is none. */
  getBytes(key: string): Uint8Array | undefined;
  /** Sets the value of a key. A text is stored in UTF-8. */
  set(key: string, value: string | Uint8Array): void;
  /** Removes a key, if it exists. */
  delete(key: string): void;
  /** Returns whether a key exists. */
  has(key: string): boolean;
  /** Adds to the number that a key has, which is initially 0, and returns the sum. The operation is atomic. */
  increment(key: string, by?: number): number;
  /** Returns every key, in any order. */
  keys(): IterableIterator<string>;
}

/** Opens a bucket of the plugin. */
export declare function open(name?: string): Bucket;

/** Deletes all state, in tests, which store it in memory. */
export declare function clear(): void;
