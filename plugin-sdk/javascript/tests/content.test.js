import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { KINDS } from '../sdk/content.js';
import { call } from '../sdk/testing.js';
import { audio, image, reply, resource, resourceLink, t, text, tool } from '../sdk/index.js';

/** Returns the client's result if a handler returns `answer`. */
const answered = (answer, output) => call(tool({ name: 'a', output, handler: () => answer }));

test('a tool answers with nothing, a text, blocks or an object', async () => {
  assert.deepEqual((await answered(undefined)).content, []);
  assert.equal((await answered('')).text, '');
  assert.equal((await answered(['one', text('two', { audience: 'user', priority: 0.5 })])).text, 'one\ntwo');
  assert.deepEqual((await answered({ a: [1] })).structured, { a: [1] });
});

/** A block of each kind, with every member that it may have. */
const BLOCKS = {
  text: [text('a')],
  image: [image(Uint8Array.of(1), 'image/png')],
  audio: [audio(Uint8Array.of(1), 'audio/wav')],
  'resource-link': [
    resourceLink('memo:a', 'a', { title: 'A', description: 'The a.', mimeType: 'text/plain', size: 1 }),
  ],
  'embedded-resource': [
    resource('memo:a', 'b', { mimeType: 'text/plain' }),
    resource('memo:a', Uint8Array.of(1), { mimeType: 'text/plain' }),
  ],
};

test('every kind has a function that makes it, and that takes every member of the kind', () => {
  assert.deepEqual(Object.keys(BLOCKS), Object.keys(KINDS));
  for (const [kind, blocks] of Object.entries(BLOCKS)) {
    for (const block of blocks) assert.equal(block.kind, kind);
    const members = new Set(['kind', 'audience', ...Object.keys(KINDS[kind])]);
    assert.deepEqual(new Set(blocks.flatMap(Object.keys)), members);
  }
});

test('the types have every kind, with the same members', async () => {
  const types = await readFile(new URL('../sdk/index.d.ts', import.meta.url), 'utf8');
  const [, body] = /^interface Kinds \{\n(.*?)^\}/ms.exec(types);
  const declared = {};
  for (const [, kind, members] of body.matchAll(/^  '?([\w-]+)'?: \{(.*?)\};$/gms)) {
    const named = [...members.matchAll(/readonly (\w+)(\??): (\w+)/g)];
    const type = { Uint8Array: 'bytes' };
    declared[kind] = Object.fromEntries(named.map(([, key, may, of]) => [key, (type[of] ?? of) + may]));
  }
  assert.deepEqual(declared, KINDS);
});

test('every kind of block crosses with the members of its kind', async () => {
  const { content } = await answered([
    text('a', { audience: 'assistant', priority: 1, lastModified: '2026-01-12T15:00:58Z' }),
    image(Uint8Array.of(0, 1, 2, 3).subarray(1, 3), 'image/png'),
    audio(Uint8Array.of(4).buffer, 'audio/wav'),
    resource('memo:a', 'b', { mimeType: 'text/plain' }),
    resource('memo:c', new DataView(Uint8Array.of(5, 6).buffer, 1)),
    resourceLink('https://example.com/', 'd', { title: 'D', size: 2 ** 40 }),
  ]);
  assert.deepEqual(
    content.map((block) => ({ ...block, data: block.data && [...block.data] })),
    [
      {
        kind: 'text',
        text: 'a',
        priority: 1,
        lastModified: '2026-01-12T15:00:58Z',
        audience: ['assistant'],
        data: undefined,
      },
      { kind: 'image', data: [1, 2], mimeType: 'image/png', audience: [] },
      { kind: 'audio', data: [4], mimeType: 'audio/wav', audience: [] },
      { kind: 'embedded-resource', uri: 'memo:a', text: 'b', mimeType: 'text/plain', audience: [], data: undefined },
      { kind: 'embedded-resource', uri: 'memo:c', data: [6], audience: [] },
      {
        kind: 'resource-link',
        uri: 'https://example.com/',
        name: 'd',
        title: 'D',
        size: 2 ** 40,
        audience: [],
        data: undefined,
      },
    ],
  );
});

test('a reply has structured content, blocks and further members', async () => {
  const answer = reply({ structured: { n: 1 }, content: 'one', meta: { 'example.com/a': true } });
  const { structured, text, meta } = await answered(answer, { n: t.integer() });
  assert.deepEqual([structured, text, meta], [{ n: 1 }, 'one', { 'example.com/a': true }]);
});

test('half a surrogate pair becomes U+FFFD, and nothing else changes', async () => {
  const { content, structured } = await answered(
    reply({ content: 'a\ud800b', structured: { '\udfff': '\ud83d\ude00\ude00\\ud800\\\ud800' } }),
  );
  assert.equal(content[0].text, 'a\ufffdb');
  assert.deepEqual(structured, { '\ufffd': '\u{1f600}\ufffd\\ud800\\\ufffd' });
});

test('an answer that cannot cross is a failure that says why', async () => {
  const cases = [
    [5n, /answers with a text, a block, a number, a list or an object, not with 5n/],
    [NaN, /NaN cannot be written as JSON/],
    [[1, undefined], /cannot be written as JSON/],
    [[text('a'), 1], /either blocks and texts, or values/],
    [null, /not with null/],
    [{ n: 1n }, /BigInt/],
    [reply({ structured: () => {} }), /a function cannot be written as JSON/],
  ];
  for (const [answer, expected] of cases) assert.match((await answered(answer)).failure.message, expected);
  assert.match((await answered('text', { n: t.integer() })).failure.message, /without the object that it promises/);
});

test('a number, a boolean or a list of values is the member `result`', async () => {
  for (const value of [5, false, [1, 2], [{ a: 1 }, { a: 2 }], [null]]) {
    assert.deepEqual((await answered(value)).structured, { result: value });
  }
  assert.deepEqual((await answered([])).content, []);
});

test('a block of wrong parts is refused where it is made', () => {
  assert.throws(() => text(5), /`text` of a block is a string, not number/);
  assert.throws(() => text('a', { audience: 'model' }), /'user' or 'assistant'/);
  assert.throws(() => image('iVBOR', 'image/png'), /Uint8Array/);
  assert.throws(() => image(Uint8Array.of(1)), /`mimeType` of a block is a string, not undefined/);
  assert.throws(() => resource('memo:a'), /Uint8Array/);
  assert.throws(() => text('a', { lastModified: new Date() }), /`lastModified` of a block is a string, not object/);
  assert.throws(() => resourceLink('a:b', 'c', { size: 1.5 }), /a number of bytes, not 1.5/);
});
