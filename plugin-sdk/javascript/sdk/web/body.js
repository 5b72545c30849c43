// The body of a request or a response.

import { decode, encode } from '../utf8.js';
import { Blob, blobBytes } from './blob.js';
import { sourceOf, sourceOfIterable, streamOf } from './body-stream.js';
import { isBuffer, joined, view } from './bytes.js';
import { FormData, multipart, parseForm } from './form-data.js';

const isStream = (value) => typeof value?.getReader === 'function';

/** Returns the bytes or the stream of a value, and its MIME type. */
function extracted(value) {
  if (value === null || value === undefined) return {};
  if (value instanceof Blob) return { bytes: blobBytes(value), type: value.type || undefined };
  if (value instanceof FormData) return multipart(value);
  if (isBuffer(value)) return { bytes: view(value).slice() };
  if (isStream(value)) return { stream: value };
  // A URLSearchParams may be that of a package.
  if (Object.prototype.toString.call(value) === '[object URLSearchParams]' || value.constructor?.name === 'URLSearchParams') {
    return { bytes: encode(value), type: 'application/x-www-form-urlencoded;charset=UTF-8' };
  }
  if (typeof value === 'object' && typeof value[Symbol.asyncIterator] === 'function') return { stream: streamOf(sourceOfIterable(value)) };
  // The standard would send `[object Object]`.
  if (typeof value === 'object' && String(value).startsWith('[object ')) {
    throw new TypeError('the body is a string, bytes, a URLSearchParams, a FormData, a Blob or a ReadableStream: write an object with JSON.stringify');
  }
  return { bytes: encode(value), type: 'text/plain;charset=UTF-8' };
}

/** Returns all bytes of a stream. */
async function readAll(stream) {
  const reader = stream.getReader();
  const pieces = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return joined(pieces);
    if (!(value instanceof Uint8Array)) throw new TypeError(`the stream of a body has pieces of the type Uint8Array, not ${typeof value}`);
    pieces.push(value);
  }
}

let state;

export class Body {
  #source;
  #stream;
  #bytes;
  #used = false;

  /** `given` is a value as in the standard, or `{ source }` for the body of a response of the host. */
  constructor(given, headers) {
    if (given?.source !== undefined && typeof given.source.read === 'function') {
      this.#source = given.source;
      return;
    }
    const { bytes, stream, type } = extracted(given);
    if (stream !== undefined && (stream.locked || stream._disturbed)) {
      throw new TypeError('the stream of a body was read before, or is being read');
    }
    this.#bytes = bytes;
    this.#stream = stream;
    if (type !== undefined && !headers.has('content-type')) headers.set('content-type', type);
  }

  static {
    state = {
      hasStream: (body) => body.#stream !== undefined || body.#source !== undefined,
      bytes: (body) => body.#bytes,
      isNull: (body) => body.#bytes === undefined && body.#stream === undefined && body.#source === undefined,
      /** Takes the body for another object, which leaves it used. */
      take(body) {
        if (body.bodyUsed) throw new TypeError('the body was read before');
        const { body: stream } = body;
        if (stream?.locked) throw new TypeError('the body is being read');
        const given = body.#bytes ?? (body.#source === undefined ? stream : { source: body.#source });
        if (!state.isNull(body)) body.#used = true;
        return given;
      },
      cloned(body) {
        if (body.bodyUsed || body.#stream?.locked) throw new TypeError('a body that was read cannot be cloned');
        if (body.#bytes !== undefined) return body.#bytes;
        if (state.isNull(body)) return null;
        const [own, other] = body.body.tee();
        body.#stream = own;
        body.#source = undefined;
        return other;
      },
    };
  }

  get body() {
    if (state.isNull(this)) return null;
    this.#stream ??= streamOf(this.#source ?? sourceOf(this.#bytes));
    return this.#stream;
  }

  get bodyUsed() {
    return this.#used || this.#stream?._disturbed === true;
  }

  /** Returns all bytes. A body can be read once. */
  async #read() {
    if (this.bodyUsed) throw new TypeError('the body was read before: it can be read once, and clone() makes another one');
    if (this.#stream?.locked) throw new TypeError('the body is being read by a reader of its stream');
    if (state.isNull(this)) return new Uint8Array();
    this.#used = true;
    if (this.#stream !== undefined) return readAll(this.#stream);
    if (this.#bytes !== undefined) return this.#bytes;
    const pieces = [];
    for (let piece = await this.#source.read(); piece !== undefined; piece = await this.#source.read()) pieces.push(piece);
    return joined(pieces);
  }

  async bytes() {
    return (await this.#read()).slice();
  }

  async arrayBuffer() {
    return (await this.#read()).slice().buffer;
  }

  async blob() {
    const bytes = await this.#read();
    return new Blob([bytes], { type: this.headers.get('content-type') ?? '' });
  }

  /** Refuses a body whose bytes are not text, because nobody decompressed it. */
  #refuseCompressed() {
    const encoding = this.headers.get('content-encoding') ?? 'identity';
    if (this.#source === undefined || /^(identity)?$/i.test(encoding)) return;
    throw new TypeError(`the server sent a compressed body (${encoding}), which fetch does not decompress: read it with bytes()`);
  }

  async text() {
    this.#refuseCompressed();
    return decode(await this.#read());
  }

  async json() {
    return JSON.parse(await this.text());
  }

  async formData() {
    this.#refuseCompressed();
    return parseForm(await this.#read(), this.headers.get('content-type') ?? '');
  }
}

export const bodyState = state;
