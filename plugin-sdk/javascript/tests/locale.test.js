import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatInteger, formatNumber, formats, formatTime, replaceCompare } from '../sdk/web/locale.js';

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

test('without a locale, numbers are formatted as in en-US', () => {
  const values = [0, -0, 1, 999, 1000, 1234.5, 1234.5678, 0.0005, 0.00049, 1.0005, 1e21, 1.5e-7, 123456789.123, -1e6, NaN, Infinity, -Infinity, 2 ** 53, 2 ** 70];
  for (let at = 0; at < 20_000; at += 1) values.push((Math.random() - 0.5) * 10 ** Math.floor(Math.random() * 18 - 5));
  for (const value of values) assert.equal(formatNumber.call(value), value.toLocaleString('en-US'), String(value));
  for (const value of [0n, 999n, 1000n, -1234567n, 10n ** 30n]) {
    assert.equal(formatInteger.call(value), value.toLocaleString('en-US'));
  }
});

test('without a locale, dates are formatted as in en-US and UTC', () => {
  const utc = { timeZone: 'UTC' };
  const own = (date) => [date.toLocaleDateString('en-US', utc), date.toLocaleTimeString('en-US', utc)];
  const ours = (date) => [formatTime(formats.day).call(date), formatTime(formats.timeOfDay).call(date)];
  for (let at = 0; at < 2_000; at += 1) {
    const date = new Date(Math.floor(Math.random() * 4e12));
    assert.deepEqual(ours(date), own(date), date.toISOString());
  }
  assert.equal(formatTime(formats.day).call(new Date(NaN)), 'Invalid Date');
});
