// `structuredClone` of the SDK and that of Node.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Headers } from '../sdk/web/headers.js';
import { structuredClone as clone } from '../sdk/web/structured-clone.js';

const cyclic = { list: [1] };
cyclic.self = cyclic;
cyclic.list.push(cyclic);

class Point {
  x = 1;
  get y() {
    return 2;
  }
}

test('clones what Node clones', () => {
  const values = [
    ...[1, -0, NaN, 'a\ud800', null, undefined, true, 2n ** 70n],
    ...[Object(5), Object('x'), Object(false), Object(3n)],
    ...[[, 1, undefined], { a: { b: [] } }, new Point(), Object.create({ inherited: 1 }), JSON.parse('{"__proto__": 1}')],
    ...[new Date(5), /a(b)/giu, new Map([[{}, new Set([1])]]), new Set(['a', new Map()])],
    ...[new Uint8Array([1, 2]), new Float64Array([NaN, 1.5]), new BigInt64Array([-1n]), new Uint8Array(8).subarray(2, 4), new DataView(new ArrayBuffer(4), 1, 2)],
    ...[new ArrayBuffer(3), cyclic, { [Symbol.iterator]: 1, kept: 2 }, Object.defineProperty({ a: 1 }, 'hidden', { value: 2 })],
    ...[new Error('x'), new TypeError('y'), new RangeError('z', { cause: new Map([[1, 2]]) })],
  ];
  for (const value of values) {
    const [own, other] = [clone(value), structuredClone(value)];
    assert.deepEqual(own, other);
    assert.equal(Object.getPrototypeOf(Object(own)), Object.getPrototypeOf(Object(other)));
    if (typeof value === 'object' && value !== null) assert.notEqual(own, value);
    if (value instanceof Error) assert.deepEqual([own.name, own.message, own.stack, own.cause], [other.name, other.message, other.stack, other.cause]);
  }
  assert.ok(Object.is(clone(-0), -0));
  assert.ok(Number.isNaN(clone(new Date(NaN)).getTime()));
});

test('views of one buffer share their copy', () => {
  const buffer = new ArrayBuffer(4);
  const [one, other] = clone([new Uint8Array(buffer), new Uint16Array(buffer)]);
  assert.equal(one.buffer, other.buffer);
  assert.notEqual(one.buffer, buffer);
});

test('moves what is transferred', { skip: typeof ArrayBuffer.prototype.transfer !== 'function' && 'Node 20 cannot transfer; bundle.test.js does in the engine' }, () => {
  const buffer = new ArrayBuffer(4);
  const { view } = clone({ view: new Uint8Array(buffer) }, { transfer: [buffer] });
  assert.deepEqual([buffer.byteLength, view.length], [0, 4]);
});

test('refuses what Node refuses', () => {
  const values = [() => 1, Symbol('a'), { a: [() => 1] }, new Map([[1, Symbol.iterator]]), new WeakMap(), new WeakSet(), Promise.resolve(), Object(Symbol('a'))];
  for (const value of values) {
    assert.throws(() => structuredClone(value), { name: 'DataCloneError' });
    assert.throws(() => clone(value), { name: 'DataCloneError' });
  }
  assert.throws(() => clone(new Headers()), /a value of the type Headers cannot be cloned/);
  assert.throws(() => clone({}, { transfer: [{}] }), { name: 'DataCloneError' });
  const buffer = new ArrayBuffer(1);
  assert.throws(() => clone(buffer, { transfer: [buffer, buffer] }), { name: 'DataCloneError' });
  assert.throws(() => clone(), TypeError);
});
