import assert from 'node:assert/strict';
import { test } from 'node:test';
import { replaceCompare } from '../sdk/web/locale.js';

const own = String.prototype.localeCompare;
const replaced = {};
replaceCompare(replaced);

test('ASCII is compared as in Node', () => {
  const letters = Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at));
  const word = () => Array.from({ length: Math.floor(Math.random() * 5) }, () => letters[Math.floor(Math.random() * 95)]).join('');
  const pairs = Array.from({ length: 20_000 }, (_, at) => {
    const one = word();
    return [one, at % 2 ? word() : one.replace(/[a-z]/gi, (letter) => (Math.random() < 0.5 ? letter.toUpperCase() : letter.toLowerCase()))];
  });
  for (const [one, two] of pairs) {
    assert.equal(replaced.localeCompare.call(one, two), Math.sign(own.call(one, two)), `${one} ${two}`);
  }
});

test('anything else is refused', () => {
  assert.throws(() => replaced.localeCompare.call('ä', 'z'), /outside ASCII/);
  assert.throws(() => replaced.localeCompare.call('a', 'z', 'de'), /with a locale/);
  assert.throws(() => replaced.localeCompare.call('a', 'z', undefined, { numeric: true }), /options/);
});
