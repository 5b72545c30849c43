import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from '../sdk/failure.js';

class Point {
  x = 1;
}

test('values show their content', () => {
  const cyclic = { a: 1 };
  cyclic.self = cyclic;
  const cases = [
    ['a', 'a'],
    [new Map([['a', { b: [1] }]]), 'Map(1) {"a" => {"b":[1]}}'],
    [new Set([1, 'x']), 'Set(2) {1,"x"}'],
    [new Point(), 'Point {"x":1}'],
    [cyclic, '{"a":1,"self":[Circular]}'],
    [[1n, undefined, null, -0], '[1n,undefined,null,-0]'],
    [Uint8Array.of(1, 2), 'Uint8Array(2) [1,2]'],
    [new Date(0), '1970-01-01T00:00:00.000Z'],
    [Object.create(null), '{}'],
    [
      {
        get a() {
          throw new Error('called');
        },
      },
      '{"a":[Getter]}',
    ],
  ];
  for (const [value, expected] of cases) assert.equal(inspect(value), expected);
  assert.match(inspect(new Error('one', { cause: new Error('two') })), /one[^]*caused by: [^]*two/);
  assert.match(inspect(Array(1000).fill(0)), /0,…\]$/);
});
