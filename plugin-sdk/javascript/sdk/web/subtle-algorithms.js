// The algorithms of `crypto.subtle`.

import { aeskw, cbc, ctr, gcm } from '@noble/ciphers/aes.js';
import { p256, p384, p521 } from '@noble/curves/nist.js';
import { expand, extract } from '@noble/hashes/hkdf.js';
import { hmac } from '@noble/hashes/hmac.js';
import { sha1 } from '@noble/hashes/legacy.js';
import { pbkdf2 } from '@noble/hashes/pbkdf2.js';
import { sha256, sha384, sha512 } from '@noble/hashes/sha2.js';
import { isBuffer, joined, view } from './bytes.js';
import { keyMaterial } from './crypto-key.js';
import { fromPkcs8, fromSpki, toPkcs8, toSpki } from './der.js';
import { DOMException } from './dom-exception.js';

const HASHES = { 'SHA-1': sha1, 'SHA-256': sha256, 'SHA-384': sha384, 'SHA-512': sha512 };
const CURVES = { 'P-256': p256, 'P-384': p384, 'P-521': p521 };
/** The size of a coordinate, in bytes. */
const SIZES = { 'P-256': 32, 'P-384': 48, 'P-521': 66 };

const refuse = (text, name = 'OperationError') => {
  throw new DOMException(text, name);
};

/** Returns the algorithm as an object, with the name as the standard writes it. */
export function named(algorithm) {
  const given = typeof algorithm === 'string' ? { name: algorithm } : algorithm;
  if (typeof given?.name !== 'string') throw new TypeError('an algorithm is a name, or an object with a name');
  const known = [...Object.keys(ALGORITHMS), ...Object.keys(HASHES)].find((name) => name.toLowerCase() === given.name.toLowerCase());
  if (known === undefined) {
    refuse(`the algorithm ${given.name} is none of those of a plugin: ${[...Object.keys(ALGORITHMS), ...Object.keys(HASHES)].join(', ')}`, 'NotSupportedError');
  }
  return { ...given, name: known };
}

/** Returns the hash function of an algorithm. */
export function digestOf(algorithm) {
  const { name } = named(algorithm);
  return HASHES[name] ?? refuse(`${name} is not a hash: take one of ${Object.keys(HASHES).join(', ')}`, 'NotSupportedError');
}

export function algorithmOf(algorithm, operation) {
  const { name, ...params } = named(algorithm);
  const functions = ALGORITHMS[name];
  if (functions?.[operation] === undefined) refuse(`${name} has no operation ${operation}`, 'NotSupportedError');
  return { name, functions, params };
}

function bytesOf(params, member, isRequired = true) {
  const value = params[member];
  if (value === undefined && !isRequired) return undefined;
  if (!isBuffer(value)) throw new TypeError(`the member ${member} of ${params.name} is an ArrayBuffer or a view of one`);
  return view(value).slice();
}

const randomBytes = (length) => crypto.getRandomValues(new Uint8Array(length));

const toBase64Url = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');

function fromBase64Url(text, member) {
  if (typeof text !== 'string' || !/^[\w-]*$/.test(text) || text.length % 4 === 1) refuse(`the member ${member} of the key is not base64url`, 'DataError');
  return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (character) => character.charCodeAt(0));
}

function secretBytes(format, data) {
  if (format === 'raw') return data;
  if (format !== 'jwk') return refuse(`a secret key has the formats raw and jwk, not ${format}`, 'NotSupportedError');
  if (data.kty !== 'oct') refuse('the member kty of a secret key is oct', 'DataError');
  return fromBase64Url(data.k, 'k');
}

function exportedSecret(format, bytes, alg) {
  if (format === 'raw') return bytes;
  if (format === 'jwk') return { kty: 'oct', k: toBase64Url(bytes), alg };
  return refuse(`a secret key has the formats raw and jwk, not ${format}`, 'NotSupportedError');
}

// HMAC

const hmacLength = ({ hash, length }) => length ?? digestOf(hash).blockLen * 8;

function hmacKey(bytes, { name, hash, length }) {
  const hashName = named(hash).name;
  digestOf(hash);
  if (bytes.length === 0) refuse('the key is empty', 'DataError');
  const bits = length ?? bytes.length * 8;
  if (bits > bytes.length * 8 || bits <= bytes.length * 8 - 8) refuse(`the key has not the length of ${bits} bits`, 'DataError');
  const material = bytes.slice();
  if (bits % 8 !== 0) material[material.length - 1] &= 0xff << (8 - (bits % 8));
  return { type: 'secret', algorithm: { name, hash: { name: hashName }, length: bits }, material, allowed: ['sign', 'verify'] };
}

const mac = (bytes, data, key) => hmac(HASHES[key.algorithm.hash.name], bytes, data);

/** Compares without revealing where the first difference is. */
function equal(one, other) {
  let differs = one.length ^ other.length;
  for (let at = 0; at < one.length; at += 1) differs |= one[at] ^ (other[at] ?? 0);
  return differs === 0;
}

const HMAC = {
  keyLength: hmacLength,
  importKey: (format, data, params) => hmacKey(secretBytes(format, data), params),
  exportKey: (format, key, bytes) => exportedSecret(format, bytes, `HS${key.algorithm.hash.name.slice(4)}`),
  generateKey: (params) => ({ secret: hmacKey(randomBytes(Math.ceil(hmacLength(params) / 8)), { ...params, length: hmacLength(params) }) }),
  sign: (_, bytes, data, key) => mac(bytes, data, key),
  verify: (_, bytes, signature, data, key) => equal(mac(bytes, data, key), signature),
};

// AES

function aesKey(bytes, { name }) {
  if (![16, 24, 32].includes(bytes.length)) refuse(`a key of AES has 128, 192 or 256 bits, not ${bytes.length * 8}`, 'DataError');
  const wraps = ['wrapKey', 'unwrapKey'];
  return { type: 'secret', algorithm: { name, length: bytes.length * 8 }, material: bytes, allowed: name === 'AES-KW' ? wraps : ['encrypt', 'decrypt', ...wraps] };
}

function aesLength({ length }) {
  if (![128, 192, 256].includes(length)) refuse(`the length of a key of AES is 128, 192 or 256, not ${length}`);
  return length;
}

const aes = (mode, functions) => ({
  keyLength: aesLength,
  importKey: (format, data, params) => aesKey(secretBytes(format, data), params),
  exportKey: (format, key, bytes) => exportedSecret(format, bytes, `A${key.algorithm.length}${mode}`),
  generateKey: (params) => ({ secret: aesKey(randomBytes(aesLength(params) / 8), params) }),
  ...functions,
});

/** Runs a cipher, whose own errors have no name of the standard. */
function cipher(act) {
  try {
    return act();
  } catch (error) {
    throw new DOMException(`the data cannot be decrypted: the key, a parameter or the data is wrong (${error.message})`, { name: 'OperationError', cause: error });
  }
}

function gcmOf(params, key) {
  const { tagLength = 128 } = params;
  if (tagLength !== 128) refuse(`a plugin has AES-GCM with a tag of 128 bits, not ${tagLength}`, 'NotSupportedError');
  const iv = bytesOf(params, 'iv');
  if (iv.length < 8) refuse('a plugin has AES-GCM with an iv of at least 8 bytes', 'NotSupportedError');
  return gcm(key, iv, bytesOf(params, 'additionalData', false));
}

function cbcOf(params, key) {
  const iv = bytesOf(params, 'iv');
  if (iv.length !== 16) refuse(`the iv of AES-CBC has 16 bytes, not ${iv.length}`);
  return cbc(key, iv);
}

/** Encrypts or decrypts. Only the last `length` bits of the counter count. */
function runCtr(params, key, data) {
  const counter = bytesOf(params, 'counter');
  const { length } = params;
  if (counter.length !== 16) refuse(`the counter of AES-CTR has 16 bytes, not ${counter.length}`);
  if (!(Number.isInteger(length) && length >= 1 && length <= 128)) refuse(`the length of the counter of AES-CTR is from 1 to 128, not ${length}`);
  const value = counter.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  const size = 1n << BigInt(length);
  const blocks = BigInt(Math.ceil(data.length / 16));
  if (blocks > size) refuse('the data is longer than the counter allows');
  const left = size - (value % size);
  if (blocks <= left) return ctr(key, counter).encrypt(data);
  const split = Number(left) * 16;
  let first = value - (value % size);
  const wrapped = new Uint8Array(16);
  for (let at = 15; at >= 0; at -= 1, first >>= 8n) wrapped[at] = Number(first & 0xffn);
  return joined([ctr(key, counter).encrypt(data.subarray(0, split)), ctr(key, wrapped).encrypt(data.subarray(split))]);
}

// ECDSA and ECDH

function curveOf({ name, namedCurve }) {
  if (!Object.hasOwn(CURVES, namedCurve)) refuse(`the curve of ${name} is one of ${Object.keys(CURVES).join(', ')}, not ${namedCurve}`, 'NotSupportedError');
  return CURVES[namedCurve];
}

function publicKey({ name, namedCurve }, bytes) {
  let point;
  try {
    point = curveOf({ name, namedCurve }).Point.fromBytes(bytes).toBytes(false);
  } catch (error) {
    throw new DOMException(`the data is not a point of ${namedCurve}`, { name: 'DataError', cause: error });
  }
  return { type: 'public', algorithm: { name, namedCurve }, material: { point }, allowed: name === 'ECDSA' ? ['verify'] : [] };
}

function privateKey({ name, namedCurve }, secret) {
  let point;
  try {
    point = curveOf({ name, namedCurve }).getPublicKey(secret, false);
  } catch (error) {
    throw new DOMException(`the data is not a secret key of ${namedCurve}`, { name: 'DataError', cause: error });
  }
  const allowed = name === 'ECDSA' ? ['sign'] : ['deriveKey', 'deriveBits'];
  return { type: 'private', algorithm: { name, namedCurve }, material: { secret, point }, allowed };
}

function importedCurveKey(format, data, params) {
  curveOf(params);
  const { namedCurve } = params;
  if (format === 'raw') return publicKey(params, data);
  if (format === 'spki') return publicKey(params, fromSpki(namedCurve, data));
  if (format === 'pkcs8') return privateKey(params, fromPkcs8(namedCurve, data));
  if (format !== 'jwk') return refuse(`a key has the formats raw, spki, pkcs8 and jwk, not ${format}`, 'NotSupportedError');
  if (data.kty !== 'EC' || data.crv !== namedCurve) refuse(`the key is not one of ${namedCurve}`, 'DataError');
  const part = (member) => {
    const bytes = fromBase64Url(data[member], member);
    if (bytes.length !== SIZES[namedCurve]) refuse(`the member ${member} of the key has not ${SIZES[namedCurve]} bytes`, 'DataError');
    return bytes;
  };
  const point = joined([Uint8Array.of(4), part('x'), part('y')]);
  if (data.d === undefined) return publicKey(params, point);
  const key = privateKey(params, part('d'));
  if (!equal(key.material.point, point)) refuse('the secret and the public part of the key do not fit', 'DataError');
  return key;
}

function exportedCurveKey(format, { type, algorithm: { namedCurve } }, { secret, point }) {
  const size = SIZES[namedCurve];
  if (format === 'jwk') {
    const [x, y] = [point.subarray(1, size + 1), point.subarray(size + 1)].map(toBase64Url);
    return { kty: 'EC', crv: namedCurve, x, y, ...(type === 'private' && { d: toBase64Url(secret) }) };
  }
  if (type === 'public' && format === 'raw') return point;
  if (type === 'public' && format === 'spki') return toSpki(namedCurve, point);
  if (type === 'private' && format === 'pkcs8') return toPkcs8(namedCurve, secret, point);
  return refuse(`a ${type} key has not the format ${format}`, 'InvalidAccessError');
}

function curvePair(params) {
  const secret = curveOf(params).utils.randomSecretKey();
  const secretKey = privateKey(params, secret);
  return { privateKey: secretKey, publicKey: publicKey(params, secretKey.material.point) };
}

const curveKeys = { importKey: importedCurveKey, exportKey: exportedCurveKey, generateKey: curvePair };

const HASHED = { prehash: false, lowS: false };

const ECDSA = {
  ...curveKeys,
  sign(params, { secret }, data, key) {
    if (key.type !== 'private') refuse('a signature needs the private key', 'InvalidAccessError');
    return CURVES[key.algorithm.namedCurve].sign(digestOf(params.hash)(data), secret, HASHED);
  },
  verify(params, { point }, signature, data, key) {
    if (key.type !== 'public') refuse('a signature is verified with the public key', 'InvalidAccessError');
    if (signature.length !== SIZES[key.algorithm.namedCurve] * 2) return false;
    try {
      return CURVES[key.algorithm.namedCurve].verify(signature, digestOf(params.hash)(data), point, HASHED);
    } catch {
      return false;
    }
  },
};

const ECDH = {
  ...curveKeys,
  deriveBits(params, { secret }, length, key) {
    const other = params.public;
    if (other?.algorithm?.name !== 'ECDH' || other.algorithm.namedCurve !== key.algorithm.namedCurve || other.type !== 'public') {
      refuse('the member public of ECDH is a public key of the same curve', 'InvalidAccessError');
    }
    const shared = CURVES[key.algorithm.namedCurve].getSharedSecret(secret, keyMaterial(other).point).slice(1);
    if (length === null) return shared;
    return truncated(shared, length);
  },
};

function truncated(bytes, length) {
  if (length > bytes.length * 8) refuse(`there are only ${bytes.length * 8} bits`);
  const kept = bytes.slice(0, Math.ceil(length / 8));
  if (length % 8 !== 0) kept[kept.length - 1] &= 0xff << (8 - (length % 8));
  return kept;
}

// PBKDF2 and HKDF

const secretOf = (format, data, { name }) => {
  if (format !== 'raw') refuse(`a key for ${name} has the format raw, not ${format}`, 'NotSupportedError');
  return { type: 'secret', algorithm: { name }, material: data, allowed: ['deriveKey', 'deriveBits'] };
};

function derived(length, bits) {
  if (!Number.isInteger(length) || length % 8 !== 0) refuse(`the length is a number of bits that is a multiple of 8, not ${length}`);
  return length === 0 ? new Uint8Array() : bits(length / 8);
}

const PBKDF2 = {
  importKey: secretOf,
  deriveBits(params, password, length) {
    const [salt, { iterations }] = [bytesOf(params, 'salt'), params];
    if (!(Number.isInteger(iterations) && iterations > 0)) refuse(`the number of iterations is at least 1, not ${iterations}`);
    return derived(length, (dkLen) => pbkdf2(digestOf(params.hash), password, salt, { c: iterations, dkLen }));
  },
};

const HKDF = {
  importKey: secretOf,
  deriveBits(params, secret, length) {
    const hash = digestOf(params.hash);
    const [salt, info] = [bytesOf(params, 'salt'), bytesOf(params, 'info')];
    if (length > 255 * hash.outputLen * 8) refuse('the length is more than 255 times that of the hash');
    return derived(length, (size) => expand(hash, extract(hash, secret, salt), info, size));
  },
};

export const ALGORITHMS = {
  'AES-CBC': aes('CBC', {
    encrypt: (params, key, data) => cipher(() => cbcOf(params, key).encrypt(data)),
    decrypt: (params, key, data) => cipher(() => cbcOf(params, key).decrypt(data)),
  }),
  'AES-CTR': aes('CTR', { encrypt: runCtr, decrypt: runCtr }),
  'AES-GCM': aes('GCM', {
    encrypt: (params, key, data) => gcmOf(params, key).encrypt(data),
    decrypt: (params, key, data) => cipher(() => gcmOf(params, key).decrypt(data)),
  }),
  'AES-KW': aes('KW', {
    wrapKey: (_, key, data) => aeskw(key).encrypt(data),
    unwrapKey: (_, key, data) => cipher(() => aeskw(key).decrypt(data)),
  }),
  ECDH,
  ECDSA,
  HKDF,
  HMAC,
  PBKDF2,
};
