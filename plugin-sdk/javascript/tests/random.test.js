import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { cryptoOf, generator } from '../sdk/random.js';

const counted = (start) => (length) => Uint8Array.from({ length }, (_, index) => start + index);

test('numbers are in [0, 1), spread evenly, and follow from the seed', () => {
  const random = generator(randomBytes);
  const buckets = new Array(10).fill(0);
  for (let n = 0; n < 100_000; n += 1) buckets[Math.floor(random() * 10)] += 1;
  for (const bucket of buckets) assert.ok(Math.abs(bucket - 10_000) < 700, `${buckets}`);
  assert.equal(generator(counted(1))(), generator(counted(1))());
  assert.notEqual(generator(counted(1))(), generator(counted(2))());
});

test('the seed is asked for at the first number', () => {
  let asked = 0;
  const random = generator((length) => {
    asked += 1;
    return randomBytes(length);
  });
  assert.equal(asked, 0);
  random();
  random();
  assert.equal(asked, 1);
});

test('crypto fills typed arrays and makes UUIDs', () => {
  const crypto = cryptoOf(counted(0));
  const held = new Uint8Array(8);
  crypto.getRandomValues(new Uint16Array(held.buffer, 2, 2));
  assert.deepEqual([...held], [0, 0, 0, 1, 2, 3, 0, 0]);
  assert.equal(crypto.randomUUID(), '00010203-0405-4607-8809-0a0b0c0d0e0f');
  assert.throws(() => crypto.getRandomValues(new Uint8Array(65_537)), /at most 65536/);
  assert.throws(() => crypto.getRandomValues([1]), /typed array/);
});
