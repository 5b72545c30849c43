// Keys of elliptic curves in DER: the formats `spki` and `pkcs8`.

import { joined } from './bytes.js';
import { DOMException } from './dom-exception.js';

const EC_KEY = [0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const CURVES = {
  'P-256': [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
  'P-384': [0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22],
  'P-521': [0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23],
};

const refuse = () => {
  throw new DOMException('the data is not a key of this curve in DER', 'DataError');
};

function element(tag, ...parts) {
  const content = joined(parts.map((part) => Uint8Array.from(part)));
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return joined([Uint8Array.from([tag, ...size]), content]);
}

/** Reads the elements of DER one after the other. */
class Reader {
  #bytes;
  #at = 0;

  constructor(bytes) {
    this.#bytes = bytes;
  }

  get isAtEnd() {
    return this.#at === this.#bytes.length;
  }

  get tag() {
    return this.#bytes[this.#at];
  }

  /** Returns the content of the next element, which has this tag. */
  read(tag) {
    if (this.isAtEnd || this.tag !== tag) refuse();
    let length = this.#bytes[this.#at + 1];
    let start = this.#at + 2;
    if (length >= 0x80) {
      const size = length & 0x7f;
      if (size === 0 || size > 2 || start + size > this.#bytes.length) refuse();
      length = this.#bytes.subarray(start, start + size).reduce((sum, byte) => sum * 256 + byte, 0);
      start += size;
    }
    if (!(start + length <= this.#bytes.length)) refuse();
    this.#at = start + length;
    return this.#bytes.subarray(start, start + length);
  }
}

const same = (bytes, expected) => bytes.length === expected.length && expected.every((byte, at) => byte === bytes[at]);

function readAlgorithm(reader, curve) {
  const algorithm = new Reader(reader.read(0x30));
  if (!same(algorithm.read(0x06), EC_KEY.slice(2)) || !same(algorithm.read(0x06), CURVES[curve].slice(2))) refuse();
}

export function toSpki(curve, point) {
  return element(0x30, element(0x30, EC_KEY, CURVES[curve]), element(0x03, [0], point));
}

/** Returns the point of a public key. */
export function fromSpki(curve, bytes) {
  const outer = new Reader(bytes);
  const reader = new Reader(outer.read(0x30));
  readAlgorithm(reader, curve);
  const point = reader.read(0x03);
  if (!outer.isAtEnd || !reader.isAtEnd || point[0] !== 0) refuse();
  return point.slice(1);
}

export function toPkcs8(curve, secret, point) {
  const key = element(0x30, element(0x02, [1]), element(0x04, secret), element(0xa1, element(0x03, [0], point)));
  return element(0x30, element(0x02, [0]), element(0x30, EC_KEY, CURVES[curve]), element(0x04, key));
}

/** Returns the secret number of a private key. */
export function fromPkcs8(curve, bytes) {
  const reader = new Reader(new Reader(bytes).read(0x30));
  if (!same(reader.read(0x02), [0])) refuse();
  readAlgorithm(reader, curve);
  const key = new Reader(new Reader(reader.read(0x04)).read(0x30));
  if (!same(key.read(0x02), [1])) refuse();
  return key.read(0x04).slice();
}
