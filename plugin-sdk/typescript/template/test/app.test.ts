import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call } from 'toolbay/testing';
import { count, greet } from '../src/app.ts';

test('greets', async () => {
  assert.equal((await call(greet, { name: 'Ada' })).text, 'Hello, Ada.');
  assert.equal((await call(greet, { name: 'Ada', excited: true })).text, 'HELLO, ADA!');
});

test('greets nobody', async () => {
  const { failure } = await call(greet, { name: ' ' });
  assert.deepEqual(failure, { kind: 'invalid-arguments', message: 'name is empty: say who to greet' });
});

test('counts', async () => {
  const { structured } = await call(count, { text: 'two words\nand 👋' });
  assert.deepEqual(structured, { characters: 15, words: 4, lines: 2 });
  assert.deepEqual((await call(count, { text: '' })).structured, { characters: 0, words: 0, lines: 0 });
});
