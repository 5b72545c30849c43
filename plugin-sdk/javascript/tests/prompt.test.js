import assert from 'node:assert/strict';
import { test } from 'node:test';
import { image, prompt, resource, t, text, tool } from '../sdk/index.js';
import { getPrompt } from '../sdk/testing.js';

/** Returns the client's result if a handler returns `answer`. */
const answered = (answer) => getPrompt(prompt({ name: 'a', handler: () => answer }));

/** A prompt that returns its arguments. */
const told = (args) => prompt({ name: 'a', arguments: args, handler: (values) => JSON.stringify(values) });

test('the definition is the contract’s', () => {
  const { definition } = prompt({
    name: 'acme.review_2',
    title: 'Review',
    description: 'Reviews.',
    arguments: {
      code: t.string('The code.', { title: 'Code' }),
      style: t.choice(['short', 'long']).optional(),
      count: t.integer().default(3),
    },
    icons: [{ src: 'data:,' }],
    meta: { 'example.com/a': 1 },
    handler: () => 'Hello',
  });
  assert.deepEqual(definition, {
    name: 'acme.review_2',
    title: 'Review',
    description: 'Reviews.',
    arguments: [
      { name: 'code', title: 'Code', description: 'The code.', required: true },
      { name: 'style', title: undefined, description: undefined, required: false },
      { name: 'count', title: undefined, description: undefined, required: false },
    ],
    icons: [{ src: 'data:,', sizes: [] }],
    meta: '{"example.com/a":1}',
  });
});

test('arguments are read as what they are', async () => {
  const all = told({
    text: t.string(),
    tone: t.choice(['dry', 'warm']).default('dry'),
    level: t.choice([1, 2]).optional(),
    count: t.integer().optional(),
    ratio: t.number().optional(),
    loud: t.boolean().optional(),
  });
  const given = { text: ' a ', level: '2', count: ' 7 ', ratio: '-1e-2', loud: 'True' };
  const read = { text: ' a ', tone: 'dry', level: 2, count: 7, ratio: -0.01, loud: true };
  assert.deepEqual(JSON.parse((await getPrompt(all, given)).text), read);
  assert.equal((await getPrompt(all, { text: '' })).text, '{"text":"","tone":"dry"}');
});

test('an argument that is none is told by name', async () => {
  const all = told({
    n: t.integer().optional(),
    x: t.number().optional(),
    b: t.boolean().optional(),
    c: t.choice(['a', 'b']),
  });
  const cases = [
    [{}, 'the argument `c` is missing'],
    [{ c: 'd' }, '`c` is one of a, b, not "d"'],
    [{ c: 'a', n: '1.5' }, '`n` is a whole number, not "1.5"'],
    [{ c: 'a', n: ' ' }, '`n` is a whole number, not " "'],
    [{ c: 'a', x: 'many' }, '`x` is a number, not "many"'],
    [{ c: 'a', x: 'Infinity' }, '`x` is a number, not "Infinity"'],
    [{ c: 'a', b: 'yes' }, '`b` is `true` or `false`, not "yes"'],
    [{ c: 'a', d: '' }, 'there is no argument `d`'],
  ];
  for (const [given, message] of cases) {
    assert.deepEqual((await getPrompt(all, given)).failure, { kind: 'invalid-arguments', message });
  }
  await assert.rejects(getPrompt(all, { c: 1 }), /clients give `c` as text, not as number/);
});

test('a text or a block is said by the user', async () => {
  const user = (content) => ({ role: 'user', content });
  assert.deepEqual((await answered('Hello \ud800')).messages, [user(text('Hello \ufffd'))]);
  const picture = image(Uint8Array.of(1), 'image/png');
  assert.deepEqual((await answered(picture)).messages, [user(picture)]);
  assert.deepEqual((await answered([])).messages, []);
});

test('messages are of both sides, with any block', async () => {
  const memo = resource('memo:a', 'A.');
  const answer = ['Ask me.', { role: 'assistant', content: 'What?' }, { role: 'user', content: memo }];
  const { messages, text: said } = await answered(answer);
  assert.deepEqual(messages, [
    { role: 'user', content: text('Ask me.') },
    { role: 'assistant', content: text('What?') },
    { role: 'user', content: memo },
  ]);
  assert.equal(said, 'Ask me.\nWhat?');
  assert.equal((await answered({ role: 'assistant', content: 'Yes?' })).messages[0].role, 'assistant');
});

test('an answer can say what it is', async () => {
  const whole = { messages: 'Hello', description: 'A greeting', meta: { 'example.com/a': 1 } };
  const { text: said, description, meta } = await answered(whole);
  assert.deepEqual([said, description, meta], ['Hello', 'A greeting', { 'example.com/a': 1 }]);
});

test('an answer that cannot cross is a failure that says why', async () => {
  const cases = [
    [undefined, /a prompt answers with a text, a block, a message or a list, not with undefined/],
    [5, /not with 5/],
    [[5], /a block is a text, or made by/],
    [{ role: 'system', content: 'a' }, /the role of a message is 'user' or 'assistant', not system/],
    [{ role: 'user', text: 'a' }, /a message: `text` is none of role, content/],
    [{ role: 'user' }, /a block is a text, or made by/],
    [{ messages: [], title: 'a' }, /`title` is none of messages, description, meta/],
    [{ messages: [], description: 5 }, /`description` is a string, not a number/],
  ];
  for (const [answer, expected] of cases) assert.match((await answered(answer)).failure.message, expected);
});

test('the handler has the host', async () => {
  const one = prompt({
    name: 'a',
    async handler(_, host) {
      await null;
      host.log('info', 'working');
      return host.config('units');
    },
  });
  const { text: said, log } = await getPrompt(one, {}, { config: { units: 'metric' } });
  assert.deepEqual([said, log], ['metric', [{ level: 'info', message: 'working' }]]);
});

test('a mistake in a definition is told when the plugin is built', () => {
  const handler = () => 'a';
  const argument = (schema) => ({ name: 'a', arguments: { b: schema }, handler });
  const cases = [
    [undefined, /the name of a prompt is 1 to 128/],
    [{ name: 'a b', handler }, /the name of a prompt is 1 to 128 of A-Z a-z 0-9 _ - \. and not "a b"/],
    [{ name: 'a' }, /prompt a has no handler/],
    [{ name: 'a', input: {}, handler }, /prompt a: `input` is none of name, arguments, complete/],
    [{ name: 'a', arguments: { 'b c': t.string() }, handler }, /the name of an argument of prompt a is .* not "b c"/],
    [argument('string'), /argument b of prompt a is described by `t`/],
    [argument(t.list(t.string())), /clients give it as text/],
    [argument(t.string().nullable()), /clients give it as text/],
    [argument(t.string('', { pattern: 'a' })), /nobody checks `pattern`: check it in the handler/],
    [argument(t.string('', { title: 5 })), /`title` is a string, not a number/],
    [{ name: 'a', complete: { b: [] }, handler }, /prompt a: `b` in `complete` is no argument: there are none/],
    [{ ...argument(t.string()), complete: { c: [] } }, /prompt a: `c` in `complete` is none of b/],
    [{ ...argument(t.string()), complete: { b: [1] } }, /`b` is completed by a list of texts, or by a function/],
  ];
  for (const [options, expected] of cases) assert.throws(() => prompt(options), expected);
  assert.throws(() => tool({ name: 'a', arguments: {}, handler }), /tool a: `arguments` is none of name, input/);
});
