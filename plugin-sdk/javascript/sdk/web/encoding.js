// `TextEncoder` and `TextDecoder`, for UTF-8, UTF-16 and Latin-1 (windows-1252).

import { decode, encode } from '../utf8.js';

// The characters of windows-1252 from 0x80 to 0x9f.
const WINDOWS = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

const LABELS = {
  'utf-8': 'utf-8',
  utf8: 'utf-8',
  'unicode-1-1-utf-8': 'utf-8',
  'utf-16': 'utf-16le',
  'utf-16le': 'utf-16le',
  ucs2: 'utf-16le',
  'ucs-2': 'utf-16le',
  'utf-16be': 'utf-16be',
  latin1: 'windows-1252',
  ascii: 'windows-1252',
  'us-ascii': 'windows-1252',
  'iso-8859-1': 'windows-1252',
  'windows-1252': 'windows-1252',
};

export class TextEncoder {
  get encoding() {
    return 'utf-8';
  }

  encode(text = '') {
    return encode(text);
  }

  encodeInto(source, target) {
    let [read, written] = [0, 0];
    for (const character of String(source)) {
      const bytes = encode(character);
      if (written + bytes.length > target.length) break;
      target.set(bytes, written);
      written += bytes.length;
      read += character.length;
    }
    return { read, written };
  }
}

export class TextDecoder {
  #rest = new Uint8Array();
  #begun = false;

  constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
    this.encoding = LABELS[String(label).trim().toLowerCase()];
    if (this.encoding === undefined) {
      throw new RangeError(`TextDecoder knows utf-8, utf-16le, utf-16be and latin1, not ${label}`);
    }
    this.fatal = fatal;
    this.ignoreBOM = ignoreBOM;
  }

  decode(input = new Uint8Array(), { stream = false } = {}) {
    const view = ArrayBuffer.isView(input)
      ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength)
      : new Uint8Array(input);
    const bytes = new Uint8Array(this.#rest.length + view.length);
    bytes.set(this.#rest);
    bytes.set(view, this.#rest.length);
    const end = stream ? bytes.length - this.#incomplete(bytes) : bytes.length;
    this.#rest = bytes.slice(end);
    let text = this.#text(bytes.subarray(0, end));
    if (!this.#begun && !this.ignoreBOM && text.startsWith('\ufeff')) text = text.slice(1);
    this.#begun = stream && (this.#begun || end > 0);
    return text;
  }

  #text(bytes) {
    if (this.encoding === 'utf-8') return this.#utf8(bytes);
    let text = '';
    if (this.encoding === 'windows-1252') {
      for (const byte of bytes) text += byte >= 0x80 && byte < 0xa0 ? WINDOWS[byte - 0x80] : String.fromCharCode(byte);
      return text;
    }
    const low = this.encoding === 'utf-16le' ? 0 : 1;
    for (let at = 0; at + 1 < bytes.length; at += 2) {
      text += String.fromCharCode(bytes[at + low] | (bytes[at + 1 - low] << 8));
    }
    // An incomplete character at the end is one error, even with half of its second unit.
    if (bytes.length % 2 === 1 && !/[\ud800-\udbff]$/.test(text)) text += '\ud800';
    if (this.fatal && !text.isWellFormed()) throw new TypeError('the bytes are not valid UTF-16');
    return text.toWellFormed();
  }

  #utf8(bytes) {
    // `decode` removes a byte order mark: this class does so itself.
    const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
    const text = (marked ? '\ufeff' : '') + decode(bytes);
    if (this.fatal) {
      const again = encode(text);
      if (again.length !== bytes.length || again.some((byte, at) => byte !== bytes[at])) {
        throw new TypeError('the bytes are not valid UTF-8');
      }
    }
    return text;
  }

  /** Returns the number of bytes at the end that begin a character. */
  #incomplete(bytes) {
    if (this.encoding === 'windows-1252') return 0;
    if (this.encoding !== 'utf-8') {
      const odd = bytes.length % 2;
      const high = bytes[bytes.length - odd - (this.encoding === 'utf-16le' ? 1 : 2)];
      return odd + (high >= 0xd8 && high < 0xdc ? 2 : 0);
    }
    for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
      const byte = bytes[bytes.length - back];
      if ((byte & 0xc0) === 0x80) continue;
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
      return length > back ? back : 0;
    }
    return 0;
  }
}
