// `node:crypto`, as far as it needs no host: randomness, hashes and HMAC.

const { hmac } = require('@noble/hashes/hmac.js');
const { md5, sha1 } = require('@noble/hashes/legacy.js');
const { sha224, sha256, sha384, sha512 } = require('@noble/hashes/sha2.js');
const { Buffer } = require('buffer/index.js');

const HASHES = { md5, sha1, sha224, sha256, sha384, sha512 };

function hashOf(name) {
  const hash = HASHES[String(name).toLowerCase().replace('sha-', 'sha')];
  if (hash === undefined) throw new Error(`the hash ${name} is none of ${Object.keys(HASHES).join(', ')}`);
  return hash;
}

const wrap = (state) => ({
  update(data, encoding) {
    state.update(typeof data === 'string' ? Buffer.from(data, encoding) : data);
    return this;
  },
  digest(encoding) {
    const bytes = Buffer.from(state.digest());
    return encoding === undefined || encoding === 'buffer' ? bytes : bytes.toString(encoding);
  },
});

const known = {
  createHash: (name) => wrap(hashOf(name).create()),
  createHmac: (name, key) => wrap(hmac.create(hashOf(name), typeof key === 'string' ? Buffer.from(key) : key)),
  getHashes: () => Object.keys(HASHES),
  getRandomValues: (array) => crypto.getRandomValues(array),
  randomBytes(size, callback) {
    const bytes = Buffer.alloc(size);
    for (let at = 0; at < size; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
    return callback ? queueMicrotask(() => callback(null, bytes)) : bytes;
  },
  randomUUID: () => crypto.randomUUID(),
  timingSafeEqual(one, other) {
    if (one.length !== other.length) throw new RangeError('the inputs have different lengths');
    let differs = 0;
    for (let at = 0; at < one.length; at += 1) differs |= one[at] ^ other[at];
    return differs === 0;
  },
  get subtle() {
    return crypto.subtle;
  },
  get webcrypto() {
    return crypto;
  },
};

module.exports = require('./missing.cjs')('crypto', 'take a package such as @noble/ciphers or @noble/curves', known);
