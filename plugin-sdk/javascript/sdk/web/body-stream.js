// The streams of bodies. A plugin that names a class of streams, such as `ReadableStream` or
// `TextDecoderStream`, gets the complete implementation, which is large. In any other plugin
// there is nothing to pipe a body into, and it gets the class of this module, which can be read.

let Complete;

/** Makes the streams of bodies those of the complete implementation. */
export function useStreams(ReadableStream) {
  Complete = ReadableStream;
}

/** Returns the stream of a source, which has `read` and `cancel`. It reads only when the stream is read. */
export function streamOf(source) {
  if (Complete === undefined) return new BodyStream(source);
  return new Complete(
    {
      async pull(controller) {
        const piece = await source.read();
        if (piece === undefined) controller.close();
        else controller.enqueue(piece);
      },
      cancel: (reason) => source.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

/** Returns a source of these bytes, in pieces. */
export function sourceOf(bytes) {
  let at = 0;
  return {
    async read() {
      if (at >= bytes.length) return undefined;
      at += 65_536;
      return bytes.slice(at - 65_536, at);
    },
    async cancel() {
      at = bytes.length;
    },
  };
}

/** Returns a source of what is iterated over. */
export function sourceOfIterable(iterable) {
  const iterator = (iterable[Symbol.asyncIterator] ?? iterable[Symbol.iterator]).call(iterable);
  return {
    async read() {
      const { done, value } = await iterator.next();
      return done ? undefined : await value;
    },
    async cancel(reason) {
      await iterator.return?.(reason);
    },
  };
}

/** A stream that can be read with a reader, `for await` and `tee`. */
class BodyStream {
  #source;
  #reader;
  #done = false;
  #failed;
  /** The promise of the latest read: reads happen one after the other. */
  #latest = Promise.resolve();
  /** True if the stream was read or cancelled. The complete implementation has the same member. */
  _disturbed = false;

  constructor(source) {
    this.#source = source;
  }

  get locked() {
    return this.#reader !== undefined;
  }

  #next() {
    this._disturbed = true;
    const next = async () => {
      if (this.#failed !== undefined) throw this.#failed.error;
      if (this.#done) return { done: true, value: undefined };
      try {
        const value = await this.#source.read();
        if (value !== undefined) return { done: false, value };
        this.#done = true;
        return { done: true, value };
      } catch (error) {
        this.#failed = { error };
        throw error;
      }
    };
    this.#latest = this.#latest.then(next, next);
    return this.#latest;
  }

  async #cancel(reason) {
    this._disturbed = true;
    if (this.#failed !== undefined) throw this.#failed.error;
    if (this.#done) return;
    this.#done = true;
    await this.#source.cancel(reason);
  }

  #refuseLocked() {
    if (this.locked) throw new TypeError('the stream is being read by a reader');
  }

  getReader(options) {
    if (options?.mode !== undefined) throw new TypeError('the stream has no byob reader');
    this.#refuseLocked();
    const own = (act) => (value) => {
      if (this.#reader !== reader) return Promise.reject(new TypeError('the reader has released its lock'));
      return act(value);
    };
    let close;
    let fail;
    const closed = new Promise((resolve, reject) => {
      close = resolve;
      fail = reject;
    });
    closed.catch(() => {});
    const reader = {
      closed,
      read: own(() => {
        const next = this.#next();
        next.then(({ done }) => done && close(), fail);
        return next;
      }),
      cancel: own((reason) => {
        close();
        return this.#cancel(reason);
      }),
      releaseLock: () => {
        if (this.#reader === reader) this.#reader = undefined;
      },
    };
    this.#reader = reader;
    return reader;
  }

  async cancel(reason) {
    this.#refuseLocked();
    await this.#cancel(reason);
  }

  /** Returns two streams with the same pieces. What one of them has not read yet is kept. */
  tee() {
    const reader = this.getReader();
    const queues = [[], []];
    const cancelled = [false, false];
    const branch = (own) => ({
      read: async () => {
        while (queues[own].length === 0) {
          const { done, value } = await reader.read();
          for (const [index, queue] of queues.entries()) if (!cancelled[index]) queue.push(done ? undefined : index === own ? value : value.slice());
        }
        const [piece] = queues[own];
        // The end stays.
        if (piece !== undefined) queues[own].shift();
        return piece;
      },
      cancel: async (reason) => {
        cancelled[own] = true;
        queues[own] = [];
        if (cancelled.every(Boolean)) await reader.cancel(reason);
      },
    });
    return [new BodyStream(branch(0)), new BodyStream(branch(1))];
  }

  values({ preventCancel = false } = {}) {
    const reader = this.getReader();
    return {
      async next() {
        const result = await reader.read();
        if (result.done) reader.releaseLock();
        return result;
      },
      async return(value) {
        if (!preventCancel) await reader.cancel(value);
        reader.releaseLock();
        return { done: true, value };
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  [Symbol.asyncIterator](options) {
    return this.values(options);
  }

  pipeThrough() {
    throw new TypeError('this stream can only be read: to pipe it, name the class TransformStream or WritableStream in the plugin');
  }

  pipeTo() {
    return this.pipeThrough();
  }

  get [Symbol.toStringTag]() {
    return 'ReadableStream';
  }
}
