import assert from 'node:assert/strict';
import { test } from 'node:test';
import { opener } from '../sdk/bucket.js';
import { failure } from '../sdk/failure.js';
import { clear, open } from '../sdk/keyvalue-memory.js';

test('a bucket keeps what it is given', () => {
  clear();
  const bucket = open('notes');
  assert.deepEqual([bucket.get('a'), bucket.getBytes('a'), bucket.has('a')], [undefined, undefined, false]);
  bucket.set('a', 'é');
  bucket.set('b', Uint8Array.of(1, 2));
  assert.deepEqual([bucket.get('a'), bucket.getBytes('b'), bucket.has('a')], ['é', Uint8Array.of(1, 2), true]);
  assert.deepEqual([bucket.increment('n'), bucket.increment('n', 2)], [1, 3]);
  bucket.delete('b');
  assert.deepEqual([...open('notes').keys()], ['a', 'n']);
  assert.deepEqual([...open().keys()], []);
});

test('keys come page by page', () => {
  const pages = { null: { keys: ['a', 'b'], cursor: 7 }, 7: { keys: [], cursor: 9 }, 9: { keys: ['c'], cursor: null } };
  const bucket = opener({ open: () => ({ listKeys: (cursor) => pages[cursor] }) }, {})('x');
  assert.deepEqual([...bucket.keys()], ['a', 'b', 'c']);
});

test('what the host refuses is said in words', () => {
  const refusing = (payload) => {
    try {
      opener({ open: () => { throw Object.assign(new Error('[object Object]'), { payload }); } }, {})();
    } catch (thrown) {
      return failure(thrown).val;
    }
    return undefined;
  };
  assert.equal(refusing({ tag: 'access-denied' }), 'Keeping state is denied.');
  assert.equal(refusing({ tag: 'no-such-store' }), 'There is no such bucket.');
  assert.equal(refusing({ tag: 'other', val: 'it is full' }), 'The state cannot be used: it is full.');
});
