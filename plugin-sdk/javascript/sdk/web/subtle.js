// `crypto.subtle`, on the libraries of @noble. The build includes it only in a plugin that names it.

import { decode, encode } from '../utf8.js';
import { algorithmOf, ALGORITHMS, digestOf, named } from './subtle-algorithms.js';
import { isBuffer, view } from './bytes.js';
import { keyMaterial, makeKey } from './crypto-key.js';
import { DOMException } from './dom-exception.js';

const bufferOf = (bytes) => bytes.slice().buffer;
const copyOf = (data) => {
  if (!isBuffer(data)) throw new TypeError('the data is an ArrayBuffer or a view of one: convert text with TextEncoder');
  return view(data).slice();
};

const refuse = (text, name = 'InvalidAccessError') => {
  throw new DOMException(text, name);
};

/** Returns the functions of the key's algorithm, if the key may be used so. */
function implementation(given, key, usage) {
  const material = keyMaterial(key);
  const { name } = named(given);
  if (name !== key.algorithm.name) refuse(`the key is for ${key.algorithm.name}, not for ${name}`);
  if (!key.usages.includes(usage)) refuse(`the usages of the key do not include ${usage}`);
  const act = ALGORITHMS[name][usage === 'deriveKey' ? 'deriveBits' : usage];
  if (act === undefined) refuse(`${name} has no operation ${usage}`, 'NotSupportedError');
  return { act, material };
}

function usagesOf(keyUsages, allowed) {
  const usages = [...keyUsages];
  const wrong = usages.find((usage) => !allowed.includes(usage));
  if (wrong !== undefined) refuse(`a key of this kind cannot be used for ${wrong}: its usages are ${allowed.join(', ') || 'empty'}`, 'SyntaxError');
  return [...new Set(usages)];
}

function made({ type, algorithm, material, allowed }, extractable, keyUsages) {
  const usages = usagesOf(keyUsages, allowed);
  if (usages.length === 0 && type !== 'public') refuse(`a ${type} key has at least one usage`, 'SyntaxError');
  return makeKey({ type, algorithm, usages, extractable: Boolean(extractable) }, material);
}

function checkJwk(jwk, extractable, keyUsages) {
  if (typeof jwk !== 'object' || jwk === null || isBuffer(jwk)) throw new TypeError('a key in the format jwk is an object');
  if (jwk.ext === false && extractable) refuse('the key is not extractable', 'DataError');
  if (Array.isArray(jwk.key_ops) && [...keyUsages].some((usage) => !jwk.key_ops.includes(usage))) refuse('the key does not allow these usages', 'DataError');
}

function importedKey(format, data, algorithm, extractable, keyUsages) {
  const { name, functions, params } = algorithmOf(algorithm, 'importKey');
  if (format === 'jwk') checkJwk(data, extractable, keyUsages);
  const given = format === 'jwk' ? data : copyOf(data);
  return made(functions.importKey(format, given, { ...params, name }), extractable, keyUsages);
}

function exportedKey(format, key) {
  const material = keyMaterial(key);
  if (!key.extractable) refuse('the key is not extractable');
  const { exportKey } = ALGORITHMS[key.algorithm.name];
  if (exportKey === undefined) refuse(`a key for ${key.algorithm.name} cannot be exported`, 'NotSupportedError');
  const data = exportKey(format, key, material);
  return format === 'jwk' ? { key_ops: key.usages, ext: key.extractable, ...data } : bufferOf(data);
}

/** Returns the length in bits of a key that is derived. */
function lengthOf(algorithm) {
  const { name, functions, params } = algorithmOf(algorithm, 'importKey');
  if (functions.keyLength === undefined) refuse(`a key for ${name} cannot be derived`, 'NotSupportedError');
  return functions.keyLength(params);
}

class SubtleCrypto {
  async digest(algorithm, data) {
    const bytes = copyOf(data);
    return bufferOf(digestOf(algorithm)(bytes));
  }

  async importKey(format, data, algorithm, extractable, keyUsages) {
    return importedKey(format, data, algorithm, extractable, keyUsages);
  }

  async exportKey(format, key) {
    return exportedKey(format, key);
  }

  async generateKey(algorithm, extractable, keyUsages) {
    const { name, functions, params } = algorithmOf(algorithm, 'generateKey');
    const { secret, publicKey, privateKey } = functions.generateKey({ ...params, name });
    if (secret !== undefined) return made(secret, extractable, keyUsages);
    usagesOf(keyUsages, [...publicKey.allowed, ...privateKey.allowed]);
    const within = (key) => [...keyUsages].filter((usage) => key.allowed.includes(usage));
    return {
      publicKey: made(publicKey, true, within(publicKey)),
      privateKey: made(privateKey, extractable, within(privateKey)),
    };
  }

  async encrypt(algorithm, key, data) {
    const bytes = copyOf(data);
    const { act, material } = implementation(algorithm, key, 'encrypt');
    return bufferOf(act(named(algorithm), material, bytes));
  }

  async decrypt(algorithm, key, data) {
    const bytes = copyOf(data);
    const { act, material } = implementation(algorithm, key, 'decrypt');
    return bufferOf(act(named(algorithm), material, bytes));
  }

  async sign(algorithm, key, data) {
    const bytes = copyOf(data);
    const { act, material } = implementation(algorithm, key, 'sign');
    return bufferOf(act(named(algorithm), material, bytes, key));
  }

  async verify(algorithm, key, signature, data) {
    const [mark, bytes] = [copyOf(signature), copyOf(data)];
    const { act, material } = implementation(algorithm, key, 'verify');
    return act(named(algorithm), material, mark, bytes, key);
  }

  async deriveBits(algorithm, key, length) {
    const { act, material } = implementation(algorithm, key, 'deriveBits');
    return bufferOf(act(named(algorithm), material, length ?? null, key));
  }

  async deriveKey(algorithm, key, derivedAlgorithm, extractable, keyUsages) {
    const { act, material } = implementation(algorithm, key, 'deriveKey');
    const bits = act(named(algorithm), material, lengthOf(derivedAlgorithm), key);
    return importedKey('raw', bits, derivedAlgorithm, extractable, keyUsages);
  }

  async wrapKey(format, key, wrappingKey, algorithm) {
    const { act, material } = wrapping(algorithm, wrappingKey, 'wrapKey', 'encrypt');
    const data = exportedKey(format, key);
    return bufferOf(act(named(algorithm), material, format === 'jwk' ? encode(JSON.stringify(data)) : new Uint8Array(data)));
  }

  async unwrapKey(format, wrapped, unwrappingKey, algorithm, keyAlgorithm, extractable, keyUsages) {
    const bytes = copyOf(wrapped);
    const { act, material } = wrapping(algorithm, unwrappingKey, 'unwrapKey', 'decrypt');
    const data = act(named(algorithm), material, bytes);
    return importedKey(format, format === 'jwk' ? JSON.parse(decode(data)) : data, keyAlgorithm, extractable, keyUsages);
  }

  get [Symbol.toStringTag]() {
    return 'SubtleCrypto';
  }
}

function wrapping(algorithm, key, usage, operation) {
  const material = keyMaterial(key);
  const { name } = named(algorithm);
  if (name !== key.algorithm.name) refuse(`the key is for ${key.algorithm.name}, not for ${name}`);
  if (!key.usages.includes(usage)) refuse(`the usages of the key do not include ${usage}`);
  const act = ALGORITHMS[name][operation] ?? ALGORITHMS[name][usage];
  if (act === undefined) refuse(`${name} has no operation ${usage}`, 'NotSupportedError');
  return { act, material };
}

export const subtle = new SubtleCrypto();
