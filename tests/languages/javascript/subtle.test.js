import assert from 'node:assert/strict';
import { webcrypto } from 'node:crypto';
import { test } from 'node:test';
import { subtle } from './toolbay/web/subtle.js';

const real = webcrypto.subtle;
const bytes = (length, start = 1) => Uint8Array.from({ length }, (_, at) => (start + at * 7) & 0xff);
const hex = (data) => Buffer.from(data).toString('hex');
const DATA = bytes(1000);

test('known values', async () => {
  assert.equal(hex(await subtle.digest('sha-256', Buffer.from('abc'))), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  assert.equal(hex(await subtle.digest({ name: 'SHA-1' }, Buffer.from('abc'))), 'a9993e364706816aba3e25717850c26c9cd0d89d');
  // RFC 4231, case 2
  const key = await subtle.importKey('raw', Buffer.from('Jefe'), { name: 'HMAC', hash: 'SHA-256' }, true, ['sign']);
  assert.equal(
    hex(await subtle.sign('HMAC', key, Buffer.from('what do ya want for nothing?'))),
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  );
  // RFC 5869, case 1
  const secret = await subtle.importKey('raw', Buffer.alloc(22, 0x0b), 'HKDF', false, ['deriveBits']);
  const [salt, info] = [Buffer.from('000102030405060708090a0b0c', 'hex'), Buffer.from('f0f1f2f3f4f5f6f7f8f9', 'hex')];
  assert.equal(
    hex(await subtle.deriveBits({ name: 'HKDF', hash: 'SHA-256', salt, info }, secret, 42 * 8)),
    '3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865',
  );
});

test('hashes and HMAC are those of Node', async () => {
  for (const hash of ['SHA-1', 'SHA-256', 'SHA-384', 'SHA-512']) {
    for (const length of [0, 1, 63, 64, 65, 127, 128, 1000]) {
      assert.equal(hex(await subtle.digest(hash, DATA.subarray(0, length))), hex(await real.digest(hash, DATA.subarray(0, length))));
    }
    for (const length of [1, 64, 200]) {
      const keys = [subtle, real].map((one) => one.importKey('raw', bytes(length), { name: 'HMAC', hash }, true, ['sign', 'verify']));
      const [own, other] = await Promise.all(keys);
      const mark = await subtle.sign('HMAC', own, DATA);
      assert.equal(hex(mark), hex(await real.sign('HMAC', other, DATA)));
      assert.equal(await subtle.verify('HMAC', own, mark, DATA), true);
      new Uint8Array(mark)[0] ^= 1;
      assert.equal(await subtle.verify('HMAC', own, mark, DATA), false);
      assert.equal(await subtle.verify('HMAC', own, new Uint8Array(), DATA), false);
      assert.deepEqual(own.algorithm, other.algorithm);
      assert.deepEqual(await subtle.exportKey('jwk', own), await real.exportKey('jwk', other));
    }
    const [own, other] = await Promise.all([subtle, real].map((one) => one.generateKey({ name: 'HMAC', hash }, true, ['sign'])));
    assert.deepEqual(own.algorithm, other.algorithm);
    assert.equal((await subtle.exportKey('raw', own)).byteLength, (await real.exportKey('raw', other)).byteLength);
  }
});

test('AES is that of Node', async () => {
  const cases = [
    ['AES-GCM', { iv: bytes(12) }],
    ['AES-GCM', { iv: bytes(16), additionalData: bytes(20) }],
    ['AES-CBC', { iv: bytes(16) }],
    ['AES-CTR', { counter: bytes(16), length: 64 }],
    ['AES-CTR', { counter: bytes(16), length: 128 }],
    // The counter begins again in the data.
    ['AES-CTR', { counter: new Uint8Array(16).fill(0xff), length: 128 }],
    ['AES-CTR', { counter: new Uint8Array(16).fill(0xfe), length: 8 }],
    ['AES-CTR', { counter: new Uint8Array(16).fill(0xff), length: 32 }],
  ];
  for (const [name, params] of cases) {
    for (const size of [16, 32]) {
      const [own, other] = await Promise.all([subtle, real].map((one) => one.importKey('raw', bytes(size), name, true, ['encrypt', 'decrypt'])));
      for (const length of [0, 1, 15, 16, 17, 1000]) {
        const sealed = await subtle.encrypt({ name, ...params }, own, DATA.subarray(0, length));
        assert.equal(hex(sealed), hex(await real.encrypt({ name, ...params }, other, DATA.subarray(0, length))), `${name} ${length}`);
        assert.equal(hex(await subtle.decrypt({ name, ...params }, own, sealed)), hex(DATA.subarray(0, length)));
      }
      assert.deepEqual(await subtle.exportKey('jwk', own), await real.exportKey('jwk', other));
    }
  }
  const key = await subtle.importKey('raw', bytes(32), 'AES-GCM', false, ['encrypt', 'decrypt']);
  const sealed = new Uint8Array(await subtle.encrypt({ name: 'AES-GCM', iv: bytes(12) }, key, DATA));
  sealed[3] ^= 1;
  await assert.rejects(subtle.decrypt({ name: 'AES-GCM', iv: bytes(12) }, key, sealed), { name: 'OperationError' });
  await assert.rejects(subtle.exportKey('raw', key), { name: 'InvalidAccessError' });
  await assert.rejects(subtle.encrypt({ name: 'AES-CBC', iv: bytes(16) }, key, DATA), { name: 'InvalidAccessError' });
});

test('keys and signatures of curves go to Node and back', async () => {
  for (const namedCurve of ['P-256', 'P-384', 'P-521']) {
    const params = { name: 'ECDSA', namedCurve };
    const pair = await subtle.generateKey(params, true, ['sign', 'verify']);
    assert.deepEqual([pair.publicKey.usages, pair.privateKey.usages], [['verify'], ['sign']]);
    const moved = { publicKey: ['spki', 'raw', 'jwk'], privateKey: ['pkcs8', 'jwk'] };
    for (const [part, formats] of Object.entries(moved)) {
      for (const format of formats) {
        const usages = [part === 'publicKey' ? 'verify' : 'sign'];
        const data = await subtle.exportKey(format, pair[part]);
        const theirs = await real.importKey(format, data, params, true, usages);
        assert.deepEqual(await real.exportKey(format, theirs), data, `${namedCurve} ${format}`);
        const again = await subtle.importKey(format, await real.exportKey(format, theirs), params, true, usages);
        for (const hash of ['SHA-256', 'SHA-512']) {
          if (part === 'privateKey') {
            const open = await real.importKey('spki', await subtle.exportKey('spki', pair.publicKey), params, true, ['verify']);
            assert.ok(await real.verify({ name: 'ECDSA', hash }, open, await subtle.sign({ name: 'ECDSA', hash }, again, DATA), DATA));
          } else {
            const secret = await real.importKey('jwk', await subtle.exportKey('jwk', pair.privateKey), params, true, ['sign']);
            const mark = await real.sign({ name: 'ECDSA', hash }, secret, DATA);
            assert.ok(await subtle.verify({ name: 'ECDSA', hash }, again, mark, DATA));
            new Uint8Array(mark)[10] ^= 1;
            assert.equal(await subtle.verify({ name: 'ECDSA', hash }, again, mark, DATA), false);
          }
        }
      }
    }
  }
});

test('secrets of ECDH, PBKDF2 and HKDF are those of Node', async () => {
  const params = { name: 'ECDH', namedCurve: 'P-256' };
  const [own, theirs] = await Promise.all([subtle, real].map((one) => one.generateKey(params, true, ['deriveBits'])));
  const raw = await subtle.exportKey('raw', own.publicKey);
  const expected = await real.deriveBits({ name: 'ECDH', public: await real.importKey('raw', raw, params, true, []) }, theirs.privateKey, 256);
  const other = await subtle.importKey('spki', await real.exportKey('spki', theirs.publicKey), params, true, []);
  assert.equal(hex(await subtle.deriveBits({ name: 'ECDH', public: other }, own.privateKey, 256)), hex(expected));

  for (const hash of ['SHA-1', 'SHA-256', 'SHA-512']) {
    const cases = [
      ['PBKDF2', { salt: bytes(8), iterations: 100, hash }],
      ['HKDF', { salt: bytes(8), info: bytes(5), hash }],
      ['HKDF', { salt: new Uint8Array(), info: new Uint8Array(), hash }],
    ];
    for (const [name, rest] of cases) {
      const results = [subtle, real].map(async (one) => {
        const key = await one.importKey('raw', Buffer.from('secret'), name, false, ['deriveBits', 'deriveKey']);
        const bits = await one.deriveBits({ name, ...rest }, key, 400);
        const derived = [{ name: 'AES-GCM', length: 256 }, { name: 'HMAC', hash }].map((algorithm) =>
          one.deriveKey({ name, ...rest }, key, algorithm, true, algorithm.hash ? ['sign'] : ['encrypt']),
        );
        const keys = await Promise.all(derived.map(async (one_) => one.exportKey('raw', await one_)));
        return [bits, ...keys].map(hex);
      });
      const [mine, nodes] = await Promise.all(results);
      assert.deepEqual(mine, nodes);
    }
  }
});

test('keys are wrapped as in Node', async () => {
  for (const [name, params] of [['AES-GCM', { iv: bytes(12) }], ['AES-KW', {}]]) {
    const wrapped = await Promise.all(
      [subtle, real].map(async (one) => {
        const outer = await one.importKey('raw', bytes(32), name, true, ['wrapKey', 'unwrapKey']);
        const inner = await one.importKey('raw', bytes(16, 5), 'AES-CBC', true, ['encrypt']);
        const data = await one.wrapKey('raw', inner, outer, { name, ...params });
        const again = await one.unwrapKey('raw', data, outer, { name, ...params }, 'AES-CBC', true, ['encrypt']);
        return [hex(data), hex(await one.exportKey('raw', again))];
      }),
    );
    assert.deepEqual(wrapped[0], wrapped[1]);
  }
});

test('what is not supported is an error', async () => {
  const cases = [
    () => subtle.digest('MD5', DATA),
    () => subtle.digest('SHA-256', 'text'),
    () => subtle.generateKey({ name: 'RSA-OAEP', modulusLength: 2048 }, true, ['encrypt']),
    () => subtle.generateKey({ name: 'ECDSA', namedCurve: 'K-256' }, true, ['sign']),
    () => subtle.importKey('raw', bytes(15), 'AES-GCM', true, ['encrypt']),
    () => subtle.importKey('raw', bytes(16), 'AES-GCM', true, ['sign']),
    () => subtle.importKey('raw', bytes(16), 'AES-GCM', true, []),
    () => subtle.importKey('raw', bytes(65), { name: 'ECDSA', namedCurve: 'P-256' }, true, ['verify']),
    () => subtle.importKey('spki', bytes(91), { name: 'ECDSA', namedCurve: 'P-256' }, true, ['verify']),
    () => subtle.importKey('pkcs8', new Uint8Array(), { name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign']),
    () => subtle.importKey('jwk', { kty: 'oct', k: '*' }, 'AES-GCM', true, ['encrypt']),
    () => subtle.encrypt({ name: 'AES-GCM', iv: bytes(12) }, {}, DATA),
  ];
  for (const act of cases) await assert.rejects(act(), (error) => error.message.length > 10, String(act));
  await assert.rejects(cases[2](), /RSA-OAEP is none of those of a plugin: AES-CBC, /);
});
