import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, complete, getPrompt, readResource } from 'toolbay/testing';
import { about, ask, boom, echo, greeting, keep, note, picture, refuse, report, send, touch, wait } from './app.js';

test('echoes', async () => {
  const text = '\u0001 "quoted" \\ é 👋\u{10ffff}\n'.repeat(5000);
  assert.equal((await call(echo, { text })).text, text);
});

test('fails', async () => {
  assert.deepEqual((await call(boom)).failure, { kind: 'failed', message: 'kaboom: 42' });
  assert.deepEqual((await call(refuse)).failure, { kind: 'invalid-arguments', message: 'not today' });
});

test('shows a picture', async () => {
  const { content, text } = await call(picture);
  assert.deepEqual(
    content.map(({ kind, mimeType }) => [kind, mimeType]),
    [
      ['image', 'image/png'],
      ['text', undefined],
    ],
  );
  assert.equal(Buffer.from(content[0].data).toString('latin1'), '\x89PNG\r\n\x1a\n');
  assert.equal(text, 'a picture');
});

test('reports', async () => {
  const told = await call(report, {}, { config: { units: 'metric' } });
  assert.deepEqual(told.structured, { units: 'metric', cancelled: false });
  assert.deepEqual(told.log, [{ level: 'info', message: 'working' }]);
  assert.deepEqual(told.progress.map(({ done, total }) => [done, total]), [[1, 2], [2, 2]]);
  assert.deepEqual((await call(report)).structured, { units: null, cancelled: false });
});

test('sends a request with the `fetch` of Node', async () => {
  globalThis.fetch = async (url, { method }) => new Response(`${method} ${url}`, { status: 201, headers: { 'x-got': 'a' } });
  const { structured } = await call(send, { url: 'http://example.com/' });
  assert.deepEqual(structured, { status: 201, header: 'a', text: 'GET http://example.com/' });
});

test('timers interleave', async () => {
  const { structured } = await call(wait);
  assert.deepEqual(structured.order, ['a 1', 'b 1', 'a 2', 'b 2', 'ticks 3', 'job', 'nested']);
});

test('keeps state in memory', async () => {
  await call(keep, { key: 'a', value: 'one' });
  const { structured } = await call(keep, { key: 'a', value: 'two' });
  assert.deepEqual(structured, { before: 'one', count: 4, keys: ['a', 'count'] });
});

test('asks', async () => {
  const cases = [
    [{ action: 'accept', content: { name: 'Ada' } }, 'Hello, Ada.'],
    [{ action: 'decline' }, 'declined'],
    [{ action: 'cancel' }, 'cancelled'],
    ['unsupported', 'nobody to ask'],
  ];
  for (const [name, text] of cases) assert.equal((await call(ask, {}, { answers: { name } })).text, text);
});

test('tells what changed', async () => {
  const { text, updated } = await call(touch);
  assert.deepEqual([text, updated], ['touched', ['javascript://about']]);
});

test('greets by a prompt', async () => {
  assert.equal((await getPrompt(greeting, { name: 'Ada' })).text, 'Greet Ada.');
  assert.equal((await getPrompt(greeting, { name: 'Ada', style: 'formal' })).text, 'Greet Ada in a formal style.');
  assert.deepEqual((await complete(greeting, 'style', 'f')).values, ['formal', 'friendly', 'funny']);
  assert.deepEqual((await complete(greeting, 'style', 'fr')).values, ['friendly']);
});

test('has resources', async () => {
  assert.equal((await readResource(about, 'javascript://about')).text, 'A plugin in javascript.');
  const { contents } = await readResource(note, 'javascript://notes/a%20b');
  assert.deepEqual(contents.map(({ mimeType, text }) => [mimeType, text]), [['text/plain', 'Note a b.']]);
  assert.deepEqual((await readResource(note, 'javascript://notes/none')).contents, []);
});
