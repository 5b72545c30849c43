// Streams that convert between text and bytes in UTF-8.

import { decode, encode } from '../utf8.js';
import { joined, view } from './bytes.js';
import { TransformStream } from './streams.js';

class Conversion {
  #stream;

  constructor(transformer) {
    this.#stream = new TransformStream(transformer);
  }

  get encoding() {
    return 'utf-8';
  }

  get readable() {
    return this.#stream.readable;
  }

  get writable() {
    return this.#stream.writable;
  }
}

/** Returns how many bytes at the end are the beginning of a character. */
function unfinished(bytes) {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back];
    if (byte < 0x80) return 0;
    if (byte > 0xf4) return 0;
    if (byte >= 0xc0) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return length > back ? back : 0;
    }
  }
  return 0;
}

export class TextDecoderStream extends Conversion {
  #fatal;
  #ignoreBOM;

  constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
    if (!/^\s*(utf-?8|unicode-1-1-utf-8)\s*$/i.test(label)) throw new RangeError(`a TextDecoderStream decodes utf-8, not ${label}`);
    let left = new Uint8Array();
    let first = true;
    // `decode` removes the byte order mark of every piece, and it belongs only to the first one.
    const text = (bytes) => {
      const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
      const decoded = (hasMark && (!first || ignoreBOM) ? '\ufeff' : '') + decode(bytes);
      first = false;
      if (fatal && decoded.includes('\ufffd') && !sameBytes(encode(decoded), bytes, hasMark && !decoded.startsWith('\ufeff'))) {
        throw new TypeError('the data is not valid utf-8');
      }
      return decoded;
    };
    super({
      transform(chunk, controller) {
        const bytes = joined([left, view(chunk)]);
        const end = bytes.length - unfinished(bytes);
        left = bytes.slice(end);
        if (end > 0) controller.enqueue(text(bytes.subarray(0, end)));
      },
      flush(controller) {
        if (left.length > 0) controller.enqueue(text(left));
      },
    });
    this.#fatal = Boolean(fatal);
    this.#ignoreBOM = Boolean(ignoreBOM);
  }

  get fatal() {
    return this.#fatal;
  }

  get ignoreBOM() {
    return this.#ignoreBOM;
  }
}

function sameBytes(encoded, bytes, withoutMark) {
  const given = withoutMark ? bytes.subarray(3) : bytes;
  return encoded.length === given.length && encoded.every((byte, at) => byte === given[at]);
}

export class TextEncoderStream extends Conversion {
  constructor() {
    // The first half of a pair, whose second half may be in the next piece.
    let high = '';
    super({
      transform(chunk, controller) {
        const text = high + String(chunk);
        const isHalf = /[\ud800-\udbff]$/.test(text);
        high = isHalf ? text.slice(-1) : '';
        const whole = isHalf ? text.slice(0, -1) : text;
        if (whole !== '') controller.enqueue(encode(whole));
      },
      flush(controller) {
        if (high !== '') controller.enqueue(encode(high));
      },
    });
  }
}
