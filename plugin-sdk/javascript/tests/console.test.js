import assert from 'node:assert/strict';
import { test } from 'node:test';
import { format } from 'node:util';
import { consoleOf, formatted } from '../sdk/console.js';
import { performanceOf } from '../sdk/performance.js';

function recorded(now) {
  const lines = [];
  return { lines, console: consoleOf({ log: (level, text) => lines.push([level, text]) }, now) };
}

test('each function has its level', () => {
  const { lines, console } = recorded();
  for (const name of ['debug', 'log', 'info', 'warn', 'error']) console[name](name, 1);
  assert.deepEqual(lines, [['debug', 'debug 1'], ['info', 'log 1'], ['info', 'info 1'], ['warning', 'warn 1'], ['error', 'error 1']]);
});

test('places of a text are filled in as in Node', () => {
  const cases = [
    ['%s and %s', 'a', 1],
    ['%d %i %f', '1.5', '2.7', '3.25'],
    ['%d', 5n],
    ['%j', { a: 1 }],
    ['100%', 'x'],
    ['%% %s', 'x'],
    ['%s'],
    ['%c styled', 'color: red'],
    ['a', 'b', 3],
    ['%x', 1],
  ];
  for (const values of cases) assert.equal(formatted(values), format(...values), values[0]);
});

test('groups are indented, and counts and times have labels', () => {
  let time = 0;
  const { lines, console } = recorded(() => time);
  console.group('outer');
  console.log('a\nb');
  console.groupEnd();
  console.groupEnd();
  console.count();
  console.count();
  console.countReset();
  console.count();
  console.time('t');
  time = 1.5;
  console.timeLog('t', 'so far');
  console.timeEnd('t');
  console.timeEnd('t');
  console.assert(true, 'no');
  console.assert(false, 'broken %s', 'x');
  console.assert(false);
  console.table([{ a: 1 }]);
  console.dir({ b: 2 });
  assert.deepEqual(lines.map(([, text]) => text), [
    ...['outer', '  a\n  b', 'default: 1', 'default: 2', 'default: 1'],
    ...['t: 1.500ms so far', 't: 1.500ms', "No such label 't' for console.time()"],
    ...['Assertion failed: broken x', 'Assertion failed', '0: {"a":1}', '{"b":2}'],
  ]);
});

test('time is that since the beginning of the call', () => {
  let now = 1000;
  const { performance, begin } = performanceOf({ now: () => now });
  assert.deepEqual([performance.now(), performance.timeOrigin], [0, 0]);
  begin();
  now = 1002.5;
  assert.equal(performance.now(), 2.5);
  assert.ok(Math.abs(performance.timeOrigin - Date.now()) < 60_000);
});
