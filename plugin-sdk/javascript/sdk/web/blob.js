// `Blob` and `File`, in memory.

import { decode, encode } from '../utf8.js';
import { sourceOf, streamOf } from './body-stream.js';
import { isBuffer, joined, view } from './bytes.js';

const TYPE = /^[\x20-\x7e]*$/;

let bytesOf;

export class Blob {
  #bytes;
  #type;

  constructor(parts = [], { type = '', endings = 'transparent' } = {}) {
    if (parts === null || typeof parts !== 'object' || typeof parts[Symbol.iterator] !== 'function') {
      throw new TypeError('the parts of a Blob are a list');
    }
    if (!['transparent', 'native'].includes(endings)) throw new TypeError(`the endings of a Blob are transparent or native, not ${endings}`);
    const pieces = [];
    for (const part of parts) {
      if (part instanceof Blob) pieces.push(part.#bytes);
      else if (isBuffer(part)) pieces.push(view(part));
      else pieces.push(encode(endings === 'native' ? String(part).replaceAll('\r\n', '\n') : part));
    }
    this.#bytes = joined(pieces);
    this.#type = TYPE.test(type) ? String(type).toLowerCase() : '';
  }

  static {
    bytesOf = (blob) => blob.#bytes;
  }

  get size() {
    return this.#bytes.length;
  }

  get type() {
    return this.#type;
  }

  slice(start = 0, end = this.size, type = '') {
    const blob = new Blob([], { type });
    blob.#bytes = this.#bytes.subarray(...range(start, end, this.size));
    return blob;
  }

  async arrayBuffer() {
    return this.#bytes.slice().buffer;
  }

  async bytes() {
    return this.#bytes.slice();
  }

  async text() {
    return decode(this.#bytes);
  }

  stream() {
    return streamOf(sourceOf(this.#bytes));
  }

  get [Symbol.toStringTag]() {
    return 'Blob';
  }
}

function range(start, end, size) {
  const place = (value) => (value < 0 ? Math.max(size + Math.trunc(value), 0) : Math.min(Math.trunc(value) || 0, size));
  const from = place(Number(start));
  return [from, Math.max(place(Number(end)), from)];
}

/** Returns the bytes of a blob, which must not be changed. */
export const blobBytes = (blob) => bytesOf(blob);

export class File extends Blob {
  #name;
  #lastModified;

  constructor(parts, name, options = {}) {
    if (name === undefined) throw new TypeError('a File has a name');
    super(parts, options);
    this.#name = String(name).toWellFormed();
    this.#lastModified = Math.trunc(Number(options?.lastModified ?? Date.now())) || 0;
  }

  get name() {
    return this.#name;
  }

  get lastModified() {
    return this.#lastModified;
  }

  get webkitRelativePath() {
    return '';
  }

  get [Symbol.toStringTag]() {
    return 'File';
  }
}
