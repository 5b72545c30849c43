import assert from 'node:assert/strict';
import { test } from 'node:test';
import { texts } from './src/app.js';

test('greets', () => {
  assert.equal(texts.greet('Ada'), 'Hello, Ada.');
  assert.equal(texts.greet('Ada', true), 'HELLO, ADA!');
  assert.throws(() => texts.greet(' '), (error) => error === 'name is empty: say who to greet');
});

test('counts', () => {
  assert.deepEqual(texts.count('two words\nand 👋'), { characters: 15, words: 4, lines: 2 });
  assert.deepEqual(texts.count(''), { characters: 0, words: 0, lines: 0 });
});
