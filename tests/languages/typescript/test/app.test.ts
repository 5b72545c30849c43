import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, complete, getPrompt, readResource } from 'toolbay/testing';
import { about, ask, boom, echo, greeting, note, picture, refuse, report, touch } from '../app.ts';

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
  assert.equal(Buffer.from(content[0]?.data ?? []).toString('latin1'), '\x89PNG\r\n\x1a\n');
  assert.equal(text, 'a picture');
});

test('reports', async () => {
  const told = await call(report, {}, { config: { units: 'metric' } });
  assert.deepEqual(told.structured, { units: 'metric', cancelled: false });
  assert.deepEqual(told.log, [{ level: 'info', message: 'working' }]);
  assert.deepEqual(told.progress.map(({ done, total }) => [done, total]), [[1, 2], [2, 2]]);
  assert.deepEqual((await call(report)).structured, { units: null, cancelled: false });
});

test('asks', async () => {
  const cases = [
    [{ action: 'accept', content: { name: 'Ada' } }, 'Hello, Ada.'],
    [{ action: 'decline' }, 'declined'],
    [{ action: 'cancel' }, 'cancelled'],
    ['unsupported', 'nobody to ask'],
  ] as const;
  for (const [name, text] of cases) assert.equal((await call(ask, {}, { answers: { name } })).text, text);
});

test('tells what changed', async () => {
  const { text, updated } = await call(touch);
  assert.deepEqual([text, updated], ['touched', ['typescript://about']]);
});

test('greets by a prompt', async () => {
  assert.equal((await getPrompt(greeting, { name: 'Ada' })).text, 'Greet Ada.');
  assert.equal((await getPrompt(greeting, { name: 'Ada', style: 'formal' })).text, 'Greet Ada in a formal style.');
  assert.deepEqual((await complete(greeting, 'style', 'f')).values, ['formal', 'friendly', 'funny']);
  assert.deepEqual((await complete(greeting, 'style', 'fr')).values, ['friendly']);
});

test('has resources', async () => {
  assert.equal((await readResource(about, 'typescript://about')).text, 'A plugin in typescript.');
  const { contents } = await readResource(note, 'typescript://notes/a%20b');
  assert.deepEqual(contents.map(({ mimeType, text }) => [mimeType, text]), [['text/plain', 'Note a b.']]);
  assert.deepEqual((await readResource(note, 'typescript://notes/none')).contents, []);
});
