import assert from 'node:assert/strict';
import { test } from 'node:test';
import { enqueue, settle, SyncPromise } from '../sdk/promise.js';

const never = new SyncPromise(() => {});

test('an answer that is no promise is the answer', () => {
  for (const value of [undefined, null, 0, 'a', { then: 1 }]) assert.equal(settle(value), value);
});

test('a chain settles before `settle` returns', () => {
  const order = [];
  const promise = SyncPromise.resolve(1)
    .then((n) => new SyncPromise((resolve) => enqueue(() => resolve(n + 1))))
    .then((n) => {
      order.push(n);
      throw new Error('stop');
    })
    .catch(({ message }) => order.push(message))
    .finally(() => order.push('end'))
    .then(() => ({ then: (resolve) => resolve('thenable') }));
  order.push('before');
  assert.equal(settle(promise), 'thenable');
  assert.deepEqual(order, ['before', 2, 'stop', 'end']);
});

test('a rejection is thrown', () => {
  assert.throws(() => settle(SyncPromise.reject(new Error('no'))), { message: 'no' });
  assert.throws(() => settle(new SyncPromise(() => assert.fail('thrown'))), { message: 'thrown' });
});

test('jobs run in the order in which they were added', () => {
  const order = [];
  enqueue(() => {
    order.push(1);
    enqueue(() => order.push(3));
  });
  enqueue(() => order.push(2));
  settle();
  assert.deepEqual(order, [1, 2, 3]);
});

test('what never happens is told', () => {
  assert.throws(() => settle(never), /never settles/);
});

test('a promise settles once, and not by itself', () => {
  const twice = new SyncPromise((resolve, reject) => {
    resolve(1);
    resolve(2);
    reject(3);
  });
  assert.equal(settle(twice), 1);
  const own = SyncPromise.resolve().then(() => own);
  assert.throws(() => settle(own), TypeError);
});

test('the combinators are the engine’s', () => {
  const no = SyncPromise.reject(new Error('no'));
  assert.deepEqual(settle(SyncPromise.all([1, SyncPromise.resolve(2)])), [1, 2]);
  assert.equal(settle(SyncPromise.race([never, 3])), 3);
  assert.equal(settle(SyncPromise.any([no, 4])), 4);
  assert.deepEqual(settle(SyncPromise.allSettled([no, 5])).map(({ status }) => status), ['rejected', 'fulfilled']);
});

test('a subclass makes its own kind', () => {
  class Sub extends SyncPromise {}
  assert.ok(Sub.resolve(1).then() instanceof Sub);
  assert.ok(Sub.resolve(SyncPromise.resolve(1)) instanceof Sub);
  assert.equal(settle(Sub.resolve(1)), 1);
});
