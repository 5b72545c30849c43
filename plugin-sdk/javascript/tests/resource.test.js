import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contents, resource, text } from '../sdk/index.js';
import { readResource } from '../sdk/testing.js';

/** Returns the content that a client reads if a handler returns `answer`. */
const answered = (answer) => readResource(resource({ uri: 'a:b', name: 'b', handler: () => answer }), 'a:b');

test('the definition is the contract’s', () => {
  const common = {
    name: 'rules',
    title: 'Rules',
    description: 'The rules.',
    mimeType: 'text/plain',
    audience: 'user',
    priority: 0.5,
    icons: [{ src: 'data:,' }],
    meta: { 'example.com/a': 1 },
    handler: () => 'None.',
  };
  const record = {
    name: 'rules',
    title: 'Rules',
    description: 'The rules.',
    mimeType: 'text/plain',
    audience: ['user'],
    priority: 0.5,
    icons: [{ src: 'data:,', sizes: [] }],
    meta: '{"example.com/a":1}',
  };
  const rules = resource({ uri: 'game://rules', size: 5, lastModified: '2026-01-12T15:00:58Z', ...common });
  assert.deepEqual(rules.definition, { uri: 'game://rules', size: 5, lastModified: '2026-01-12T15:00:58Z', ...record });
  const template = resource({ uri: 'game://{name}/rules', ...common });
  assert.deepEqual(template.definition, { uriTemplate: 'game://{name}/rules', ...record });
});

test('a resource is text, bytes or several items', async () => {
  const nothing = { mimeType: undefined, text: undefined, data: undefined, meta: undefined };
  const item = (own) => ({ uri: 'a:b', ...nothing, ...own });
  assert.deepEqual((await answered('A \ud800')).contents, [item({ text: 'A \ufffd' })]);
  assert.deepEqual((await answered(Uint8Array.of(1))).contents, [item({ data: Uint8Array.of(1) })]);
  assert.deepEqual((await answered(Uint8Array.of(1, 2).buffer)).contents, [item({ data: Uint8Array.of(1, 2) })]);
  const picture = contents(Uint8Array.of(3), { uri: 'a:b/c', mimeType: 'image/png', meta: { 'example.com/a': 1 } });
  const { contents: several, text: said } = await answered(['one', picture, contents('two')]);
  assert.deepEqual(several, [
    item({ text: 'one' }),
    item({ uri: 'a:b/c', mimeType: 'image/png', data: Uint8Array.of(3), meta: { 'example.com/a': 1 } }),
    item({ text: 'two' }),
  ]);
  assert.equal(said, 'one\ntwo');
});

test('items have the MIME type of the resource, or their own', async () => {
  const one = resource({
    uri: 'a:b',
    name: 'b',
    mimeType: 'text/plain',
    handler: async () => ['one', contents('{}', { mimeType: 'application/json' })],
  });
  const types = (await readResource(one, 'a:b')).contents.map(({ mimeType }) => mimeType);
  assert.deepEqual(types, ['text/plain', 'application/json']);
});

test('the values of the variables are decoded', async () => {
  const note = resource({
    uri: 'notes://{folder}/{+path}',
    name: 'note',
    handler: (values) => JSON.stringify(values),
  });
  const { contents: [{ uri, text: said }] } = await readResource(note, 'notes://a%20b/c/%C3%A9');
  assert.deepEqual([uri, said], ['notes://a%20b/c/%C3%A9', '{"folder":"a b","path":"c/%C3%A9"}']);
  await assert.rejects(readResource(note, 'notes://a'), /notes:\/\/a does not fit notes:\/\/\{folder\}/);
});

test('what does not exist is empty', async () => {
  for (const answer of [undefined, null, []]) {
    const { contents: items, text: said, failure } = await answered(answer);
    assert.deepEqual([items, said, failure], [[], undefined, undefined]);
  }
});

test('a failure is told', async () => {
  const failing = resource({ uri: 'a:b', name: 'b', handler: () => Promise.reject(new Error('on fire')) });
  assert.deepEqual((await readResource(failing, 'a:b')).failure, { kind: 'failed', message: 'on fire' });
  const cases = [[5], { a: 1 }, text('a'), true];
  for (const answer of cases) {
    assert.match((await answered(answer)).failure.message, /is read as a text, bytes, `contents\(…\)` or a list/);
  }
});

test('items of wrong parts are refused where they are made', () => {
  assert.throws(() => contents(5), /Uint8Array/);
  assert.throws(() => contents('a', { mime: 'b' }), /contents: `mime` is none of uri, mimeType, meta/);
  assert.throws(() => contents('a', { uri: 5 }), /`uri` is a string, not a number/);
});

test('a resource that changed is told', async () => {
  const one = resource({
    uri: 'a:b',
    name: 'b',
    handler(_, host) {
      host.resourceUpdated('a:c');
      return 'b';
    },
  });
  assert.deepEqual((await readResource(one, 'a:b')).updated, ['a:c']);
});

test('a mistake in a definition is told when the plugin is built', () => {
  const handler = () => 'a';
  const cases = [
    [undefined, /a resource has a URI/],
    [{ name: 'a', handler }, /a resource has a URI/],
    [{ uri: 'a:b', handler }, /resource a:b has no name/],
    [{ uri: 'a:b', name: 'b' }, /resource a:b has no handler/],
    [{ uri: 'a:b', name: 'b', mime: 'text/plain', handler }, /resource a:b: `mime` is none of uri, name, mimeType/],
    [{ uri: 'a:b', name: 'b', size: -1, handler }, /`size` is a number of bytes, not -1/],
    [{ uri: 'a:b', name: 'b', audience: ['model'], handler }, /`audience` is 'user' or 'assistant', not model/],
    [{ uri: 'a:b', name: 'b', priority: 'high', handler }, /`priority` is a number, not a string/],
    [{ uri: 'a:{b}', name: 'b', size: 1, handler }, /a URI with variables has no `size` and no `lastModified`/],
    [{ uri: 'a:{b}', name: 'b', complete: { c: [] }, handler }, /resource a:\{b\}: `c` in `complete` is none of b/],
    [{ uri: 'a:b', name: 'b', complete: { c: [] }, handler }, /`c` in `complete` is no argument: there are none/],
  ];
  for (const [options, expected] of cases) assert.throws(() => resource(options), expected);
});
