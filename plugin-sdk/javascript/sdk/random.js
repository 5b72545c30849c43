// Randomness that differs between calls. The engine seeds its `Math.random`
// while the component is built, so it would return the same numbers in every
// call.

/** Returns a `Math.random` that is seeded when it is first called (xoshiro128**). */
export function generator(entropy) {
  let state;
  const next = () => {
    state ??= new Uint32Array(entropy(16).slice().buffer);
    const mixed = Math.imul(rotate(Math.imul(state[1], 5), 7), 9);
    const shifted = state[1] << 9;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate(state[3], 11);
    return mixed >>> 0;
  };
  return () => (next() * 2 ** 21 + (next() >>> 11)) / 2 ** 53;
}

const rotate = (word, by) => (word << by) | (word >>> (32 - by));

/** Returns the two functions of `crypto` that need only randomness. */
export function cryptoOf(entropy) {
  return {
    getRandomValues(array) {
      if (!ArrayBuffer.isView(array)) throw new TypeError('getRandomValues fills a typed array');
      const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
      if (bytes.length > 65_536) throw new RangeError('getRandomValues fills at most 65536 bytes');
      bytes.set(entropy(bytes.length));
      return array;
    },

    randomUUID() {
      const bytes = entropy(16);
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
      return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    },
  };
}
