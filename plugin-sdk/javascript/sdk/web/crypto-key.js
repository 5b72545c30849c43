// `CryptoKey` of the Web Cryptography API.

const KEY = Symbol('key');
let material;

export class CryptoKey {
  #fields;
  #material;

  constructor(key, fields, bytes) {
    if (key !== KEY) throw new TypeError('a CryptoKey is made by crypto.subtle');
    this.#fields = fields;
    this.#material = bytes;
  }

  static {
    material = (key) => key.#material;
  }

  get type() {
    return this.#fields.type;
  }

  get extractable() {
    return this.#fields.extractable;
  }

  get algorithm() {
    return this.#fields.algorithm;
  }

  get usages() {
    return [...this.#fields.usages];
  }

  get [Symbol.toStringTag]() {
    return 'CryptoKey';
  }
}

/** Returns a key with this material: bytes, or what its algorithm needs. */
export const makeKey = (fields, bytes) => new CryptoKey(KEY, fields, bytes);

/** Returns the material of a key. */
export function keyMaterial(key) {
  if (!(key instanceof CryptoKey)) throw new TypeError('the key is a CryptoKey, which crypto.subtle.importKey or generateKey makes');
  return material(key);
}
