import assert from 'node:assert/strict';
import { test } from 'node:test';
import { audio, form, image, prompt, resource, roots, sampling, t, text, tool, visit } from '../sdk/index.js';
import { call, getPrompt, readResource } from '../sdk/testing.js';

/** Returns the result of `host.ask` for a question, if the client's result is `answer`. */
const answer = async (question, result) => {
  const asking = tool({ name: 'a', handler: (_, host) => ({ got: host.ask('key', question) ?? 'nothing' }) });
  const { structured, failure, asked } = await call(asking, {}, { answers: { key: result } });
  return { got: structured?.got, failure: failure?.message, asked };
};

test('a form asks for what clients can show', async () => {
  const question = form('Who?', {
    name: t.string('A name.', { title: 'Name', minLength: 1, format: 'email' }),
    age: t.integer('', { minimum: 0 }).optional(),
    score: t.number().default(1.5),
    sure: t.boolean(),
    colour: t.choice(['red', 'blue']),
    sizes: t.list(t.choice(['s', 'm']), 'Sizes.', { minItems: 1 }),
    named: t.json({ type: 'string', oneOf: [{ const: 'a', title: 'A' }] }),
  });
  const { asked } = await answer(question, { action: 'decline' });
  assert.deepEqual(asked, [
    {
      key: 'key',
      kind: 'form',
      required: true,
      params: {
        message: 'Who?',
        requestedSchema: {
          type: 'object',
          properties: {
            name: { type: 'string', description: 'A name.', title: 'Name', minLength: 1, format: 'email' },
            age: { type: 'integer', description: '', minimum: 0 },
            score: { type: 'number', default: 1.5 },
            sure: { type: 'boolean' },
            colour: { type: 'string', enum: ['red', 'blue'] },
            sizes: { type: 'array', items: { type: 'string', enum: ['s', 'm'] }, description: 'Sizes.', minItems: 1 },
            named: { type: 'string', oneOf: [{ const: 'a', title: 'A' }] },
          },
          required: ['name', 'sure', 'colour', 'sizes', 'named'],
        },
      },
    },
  ]);
});

test('a form is accepted, declined or cancelled', async () => {
  const question = form('Who?', { name: t.string(), count: t.integer().default(3) });
  const accepted = await answer(question, { action: 'accept', content: { name: 'Ada' } });
  assert.deepEqual(accepted.got, { action: 'accept', content: { name: 'Ada', count: 3 } });
  for (const action of ['decline', 'cancel']) assert.deepEqual((await answer(question, { action })).got, { action });
  assert.match((await answer(question, { action: 'shrug' })).failure, /an unknown action: shrug/);
});

test('a page is visited or not', async () => {
  const { got, asked } = await answer(visit('Sign in.', 'https://example.com'), { action: 'accept' });
  assert.deepEqual(got, { action: 'accept' });
  assert.deepEqual([asked[0].kind, asked[0].params], ['url', { message: 'Sign in.', url: 'https://example.com' }]);
});

test('the client’s model writes', async () => {
  const tool_use = { type: 'tool_use', id: '1', name: 'a', input: {} };
  const messages = [
    'One.',
    image(Uint8Array.of(0, 255), 'image/png'),
    { role: 'assistant', content: [tool_use, audio(Uint8Array.of(1), 'audio/wav')] },
    { role: 'user', content: text('Two.') },
  ];
  const content = [
    { type: 'text', text: 'x' },
    { type: 'image', data: '', mimeType: 'image/png' },
    { type: 'text', text: 'y' },
  ];
  const result = { role: 'assistant', model: 'm', stopReason: 'endTurn', content };
  const { got, asked } = await answer(sampling(messages, { maxTokens: 5, systemPrompt: 'Brief.' }), result);
  assert.deepEqual(got, { ...result, text: 'x\ny' });
  assert.equal(asked[0].kind, 'sampling');
  assert.deepEqual(asked[0].params, {
    maxTokens: 5,
    systemPrompt: 'Brief.',
    messages: [
      { role: 'user', content: { type: 'text', text: 'One.' } },
      { role: 'user', content: { type: 'image', data: 'AP8=', mimeType: 'image/png' } },
      { role: 'assistant', content: [tool_use, { type: 'audio', data: 'AQ==', mimeType: 'audio/wav' }] },
      { role: 'user', content: { type: 'text', text: 'Two.' } },
    ],
  });
  const one = { role: 'assistant', model: 'm', content: { type: 'text', text: 'z' } };
  assert.equal((await answer(sampling('One.', { maxTokens: 5 }), one)).got.text, 'z');
});

test('the folders of the user are listed', async () => {
  const { got, asked } = await answer(roots(), { roots: [{ uri: 'file:///w', name: 'w' }] });
  assert.deepEqual(got, [{ uri: 'file:///w', name: 'w' }]);
  assert.deepEqual([asked[0].kind, asked[0].params], ['roots', {}]);
});

test('an optional question can be without an answer', async () => {
  const { got, asked } = await answer(roots().optional(), 'unsupported');
  assert.deepEqual([got, asked[0].required], ['nothing', false]);
  assert.match((await answer(roots(), 'unsupported')).failure, /does not support the question `key`.*ends the call/);
});

test('several questions are asked at once', async () => {
  const asking = tool({
    name: 'a',
    handler: (_, host) => ({
      got: host.askAll({ name: form('Who?', { name: t.string() }), folders: roots().optional() }) ?? 'nothing',
    }),
  });
  const name = { action: 'accept', content: { name: 'Ada' } };
  const answers = { name, folders: { roots: [] } };
  const { structured, asked } = await call(asking, {}, { answers });
  assert.deepEqual(structured.got, { name, folders: [] });
  assert.deepEqual(asked.map(({ key }) => key), ['name', 'folders']);
  const without = await call(asking, {}, { answers: { name, folders: 'unsupported' } });
  assert.equal(without.structured.got, 'nothing');
});

test('prompts and resources ask as well', async () => {
  const ask = (_, host) => host.ask('name', form('Who?', { name: t.string() })).content.name;
  const answers = { name: { action: 'accept', content: { name: 'Ada' } } };
  assert.equal((await getPrompt(prompt({ name: 'a', handler: ask }), {}, { answers })).text, 'Ada');
  const who = resource({ uri: 'a:b', name: 'b', handler: ask });
  assert.equal((await readResource(who, 'a:b', { answers })).text, 'Ada');
});

test('a question without an answer fails in a test', async () => {
  assert.match((await answer(roots(), undefined)).failure, /the test has no answer to the question `key`/);
  const asking = tool({ name: 'a', handler: (_, host) => host.ask('key', { message: 'Who?' }) });
  assert.match((await call(asking)).failure.message, /`key` is made by `form`, `visit`, `sampling` or `roots`/);
});

test('a question that no client can show is refused where it is made', () => {
  const cases = [
    [() => form('Who?', {}), /a form has fields/],
    [() => form('Who?', { a: 'string' }), /the field `a` is described by `t`/],
    [() => form(5, { a: t.string() }), /the message of a form is a string, not number/],
    [() => form('Who?', { a: t.object({}) }), /the field `a` of a form is a t\.string, .*nothing else/],
    [() => form('Who?', { a: t.string().nullable() }), /clients can show nothing else/],
    [() => form('Who?', { a: t.choice(['a', 1]) }), /clients can show nothing else/],
    [() => form('Who?', { a: t.choice([1, 2]) }), /clients cannot show `enum`/],
    [() => form('Who?', { a: t.string('', { pattern: 'a' }) }), /field `a` of a form: clients cannot show `pattern`/],
    [() => form('Who?', { a: t.string('', { format: 'ipv4' }) }), /`format` is one of date, date-time, email, uri/],
    [() => form('Who?', { a: t.list(t.string()) }), /the field `a` of a form is a list of a t\.choice/],
    [() => visit('Sign in.'), /the URL of a page is a string, not undefined/],
    [() => sampling('Write.'), /maxTokens: 200/],
    [() => sampling('Write.', { maxTokens: 0 }), /maxTokens: 200/],
    [() => sampling(resource('memo:a', 'a'), { maxTokens: 5 }), /a model is asked by texts, `image`, `audio`/],
    [() => sampling({ role: 'system', content: 'a' }, { maxTokens: 5 }), /the role of a message is/],
  ];
  for (const [make, expected] of cases) assert.throws(make, expected);
});
