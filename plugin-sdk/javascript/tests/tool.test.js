import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InvalidArguments, t, tool } from '../sdk/index.js';
import { call } from '../sdk/testing.js';

const schemaOf = (input) => JSON.parse(tool({ name: 'a', input, handler() {} }).definition.inputSchema);

test('schemas are exact', () => {
  assert.deepEqual(schemaOf({}), { type: 'object', properties: {}, additionalProperties: false });
  assert.deepEqual(
    schemaOf({
      name: t.string('Who.', { minLength: 1 }),
      unit: t.choice(['c', 'f']).optional(),
      days: t.integer().default(3),
      at: t.object({ x: t.number() }, 'Where.').nullable(),
      tags: t.list(t.string(), 'Tags.', { maxItems: 2 }),
      sizes: t.map(t.union([t.boolean(), t.choice([1, 'a'])])),
      raw: t.json({ const: 1 }),
    }),
    {
      type: 'object',
      properties: {
        name: { type: 'string', description: 'Who.', minLength: 1 },
        unit: { type: 'string', enum: ['c', 'f'] },
        days: { type: 'integer', default: 3 },
        at: {
          anyOf: [
            { type: 'object', properties: { x: { type: 'number' } }, required: ['x'], additionalProperties: false },
            { type: 'null' },
          ],
          description: 'Where.',
        },
        tags: { type: 'array', items: { type: 'string' }, description: 'Tags.', maxItems: 2 },
        sizes: { type: 'object', additionalProperties: { anyOf: [{ type: 'boolean' }, { enum: [1, 'a'] }] } },
        raw: { const: 1 },
      },
      required: ['name', 'at', 'tags', 'sizes', 'raw'],
      additionalProperties: false,
    },
  );
});

test('defaults reach the handler, at any depth, each call anew', async () => {
  const point = t.object({ x: t.number().default(1), y: t.number().optional() });
  const seen = [];
  const input = {
    tags: t.list(t.string()).default([]),
    at: point.nullable(),
    path: t.list(point),
    named: t.map(point).optional(),
  };
  const collect = tool({
    name: 'a',
    input,
    handler(args) {
      seen.push(JSON.stringify(args));
      args.tags.push('changed');
    },
  });
  await call(collect, { at: {}, path: [{ x: 2 }], named: { a: {} } });
  await call(collect, { at: null, path: [] });
  assert.deepEqual(seen, [
    '{"at":{"x":1},"path":[{"x":2}],"named":{"a":{"x":1}},"tags":[]}',
    '{"at":null,"path":[],"tags":[]}',
  ]);
});

test('the definition is the contract’s', () => {
  const { definition } = tool({
    name: 'acme.look-up_2',
    title: 'Look up',
    description: 'Looks up.',
    output: { n: t.integer() },
    annotations: { readOnly: true, openWorld: false },
    icons: [{ src: 'data:,', theme: 'dark' }],
    meta: { 'example.com/a': 1 },
    handler: () => ({ n: 1 }),
  });
  assert.deepEqual(definition, {
    name: 'acme.look-up_2',
    title: 'Look up',
    description: 'Looks up.',
    inputSchema: '{"type":"object","properties":{},"additionalProperties":false}',
    outputSchema:
      '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}',
    annotations: { readOnly: true, openWorld: false },
    icons: [{ src: 'data:,', theme: 'dark', sizes: [] }],
    meta: '{"example.com/a":1}',
  });
});

test('a mistake in a definition is told when the plugin is built', () => {
  const handler = () => {};
  const cases = [
    [{ name: 'a b', handler }, /A-Z a-z 0-9 _ - \. and not "a b"/],
    [{ name: 'a' }, /tool a has no handler/],
    [{ name: 'a', desc: 'x', handler }, /tool a: `desc` is none of name, input, output/],
    [{ name: 'a', title: 1, handler }, /`title` is a string, not a number/],
    [{ name: 'a', annotations: { readOnlyHint: true }, handler }, /`readOnlyHint` is none of readOnly/],
    [{ name: 'a', icons: [{ src: 'a', theme: 'blue' }], handler }, /`theme` is 'light' or 'dark'/],
    [{ name: 'a', icons: [{}], handler }, /`src` is missing/],
    [{ name: 'a', input: { x: 'string' }, handler }, /the field `x` is described by `t`/],
  ];
  for (const [options, expected] of cases) assert.throws(() => tool(options), expected);
});

test('what a handler throws is a failure with its message', async () => {
  const cases = [
    [new Error('kaboom: 42'), 'failed', 'kaboom: 42'],
    [new InvalidArguments('not today'), 'invalid-arguments', 'not today'],
    [new RangeError('too far'), 'failed', 'RangeError: too far'],
    [new Error('no answer', { cause: new Error('no line', { cause: 'cut' }) }), 'failed', 'no answer: no line: cut'],
    [new Error(), 'failed', 'it failed without saying why'],
    ['a text', 'failed', 'a text'],
    [{ code: 5 }, 'failed', '{"code":5}'],
    [null, 'failed', 'null'],
    [new Error('half \ud800'), 'failed', 'half \ufffd'],
  ];
  for (const [thrown, kind, message] of cases) {
    const failing = tool({
      name: 'a',
      handler() {
        throw thrown;
      },
    });
    assert.deepEqual((await call(failing)).failure, { kind, message });
  }
});

test('an error that is its own cause is told once', async () => {
  const error = new Error('round');
  error.cause = error;
  assert.equal((await call(tool({ name: 'a', handler: () => Promise.reject(error) }))).failure.message, 'round');
});

test('the host hears what the handler tells it', async () => {
  const asking = tool({
    name: 'a',
    handler(_, host) {
      host.log('notice', 'working');
      host.progress(1, 2);
      host.progress(2, undefined, 'done');
      const { unit } = host.configAll();
      return { unit, same: host.config('unit') === unit, none: host.config('none') ?? null, cancelled: host.cancelled() };
    },
  });
  const told = await call(asking, {}, { config: { unit: 'm' }, cancelled: true });
  assert.deepEqual(told.structured, { unit: 'm', same: true, none: null, cancelled: true });
  assert.deepEqual(told.log, [{ level: 'notice', message: 'working' }]);
  assert.deepEqual(told.progress, [
    { done: 1, total: 2, message: undefined },
    { done: 2, total: undefined, message: 'done' },
  ]);
  const shouting = tool({ name: 'a', handler: (_, host) => host.log('loud', 'x') });
  assert.match((await call(shouting)).failure.message, /one of debug, info, notice/);
});
