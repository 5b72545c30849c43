// The guarantees of the SDK's types. Only the compiler reads this file. If an
// expected error is missing, that is an error.

import { audio, beginningWith, contents, form, image, InvalidArguments, prompt, reply, resource } from 'toolbay';
import { resourceLink, roots, sampling, t, text, tool, visit } from 'toolbay';
import { open } from 'toolbay/keyvalue';
import type { Content, Elicited, Given, Infer, PromptAnswer, ResourceAnswer, Root, Sampled } from 'toolbay';
import { call, complete, getPrompt, readResource } from 'toolbay/testing';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Same<A, B>) => {};

const fields = {
  name: t.string('A name.', { minLength: 1 }),
  count: t.integer().default(3),
  unit: t.choice(['c', 'f']).optional(),
  tags: t.list(t.string()).default([]),
  at: t.object({ x: t.number(), y: t.number().optional() }).nullable(),
  sizes: t.map(t.union([t.string(), t.integer()])),
  raw: t.json<{ a: 1 }>({ const: { a: 1 } }),
};

interface Rest {
  name: string;
  at: { x: number; y?: number } | null;
  sizes: Record<string, string | number>;
  raw: { a: 1 };
}
same<Infer<typeof fields>, Flat<Rest & { count: number; unit?: 'c' | 'f'; tags: string[] }>>(true);
same<Given<typeof fields>, Flat<Rest & { count?: number; unit?: 'c' | 'f'; tags?: string[] }>>(true);
type Flat<T> = { [K in keyof T]: T[K] };

const all = tool({
  name: 'all',
  input: fields,
  output: { sum: t.integer(), note: t.string().nullable() },
  handler({ name, count, unit, tags, at }, host) {
    same<typeof unit, 'c' | 'f' | undefined>(true);
    const length: number = name.length + count;
    // @ts-expect-error: it may be null
    at.x;
    // @ts-expect-error: not a level
    host.log('loud', name);
    const value: string | undefined = host.config('key');
    if (length > 5) throw new InvalidArguments('too long', { cause: value });
    const picture = image(new Uint8Array(), 'image/png');
    if (unit) return reply({ structured: { sum: 1, note: null }, content: ['one', picture] });
    return { sum: tags.length, note: null };
  },
});

const output = { sum: t.integer() };
tool({ name: 'a', output, handler: async () => ({ sum: 1 }) });
// @ts-expect-error: a text
tool({ name: 'a', output, handler: () => ({ sum: '1' }) });
// @ts-expect-error: not a sum
tool({ name: 'a', output, handler: () => ({}) });
// @ts-expect-error: not the declared type
tool({ name: 'a', output, handler: () => 'one' });
// @ts-expect-error: not the declared type
tool({ name: 'a', output, handler: () => reply({ structured: { sum: '1' } }) });
// @ts-expect-error: without the declared output
tool({ name: 'a', output, handler: () => reply({ content: 'one' }) });

const any = tool({ name: 'b', handler: () => 'one' });
tool({ name: 'b', handler: () => {} });
tool({ name: 'b', handler: () => ({ n: 1 }) });
tool({ name: 'b', handler: async () => [text('a'), 'b', audio(new ArrayBuffer(1), 'audio/wav')] });
tool({ name: 'b', handler: () => [resource('memo:a', 'a'), resourceLink('memo:b', 'b', { size: 1 })] });
tool({ name: 'b', input: t.object({ x: t.string() }), handler: ({ x }) => x.trim() });
tool({ name: 'b', handler: () => 5 });
// @ts-expect-error: a symbol is not an answer
tool({ name: 'b', handler: () => Symbol('a') });
// @ts-expect-error: a field is described by `t`
tool({ name: 'b', input: { x: 'string' }, handler: () => 'one' });
// @ts-expect-error: `desc` is not an option
tool({ name: 'b', desc: 'B.', handler: () => 'one' });

// Every kind of block has a case: a missing one is not assignable to `never`.
const shown = (block: Content): string => {
  switch (block.kind) {
    case 'text':
      return block.text;
    case 'image':
    case 'audio':
      return `${block.mimeType}: ${block.data.length}`;
    case 'resource-link':
      return block.title ?? block.name;
    case 'embedded-resource':
      return block.text ?? block.uri;
    default:
      return block satisfies never;
  }
};
// Every kind also has a function that creates it.
type Made = ReturnType<typeof text | typeof image | typeof audio | typeof resource | typeof resourceLink>;
same<Made, Content>(true);
shown(text('a', { lastModified: '2026-01-12T15:00:58Z' }));
// @ts-expect-error: made by hand
shown({ kind: 'text', text: 'a', audience: [] });

const outcome = await call(all, { name: 'a', at: null, sizes: {}, raw: { a: 1 } });
outcome.structured?.sum.toFixed();
// @ts-expect-error: not described
outcome.structured?.total;
// @ts-expect-error: without `name`
await call(all, { at: null, sizes: {}, raw: { a: 1 } });
(await call(any)).structured.anything;

console.log(crypto.randomUUID(), performance.now(), new Set([1]).union(new Set([2])));
setTimeout(() => {}, 1);
// @ts-expect-error: nor pages
document;

export const requested = tool({
  name: 'typescript_requested',
  input: { url: t.string() },
  output: { status: t.integer(), text: t.string() },
  async handler({ url }) {
    const response: Response = await fetch(url, { method: 'POST', body: 'x', headers: { a: 'b' }, timeout: 5 });
    const bytes: Uint8Array = await (await fetch(url)).bytes();
    for (const [name, value] of response.headers) console.log(name, value, bytes.length);
    // @ts-expect-error
    await fetch(url, { methd: 'POST' });
    // @ts-expect-error
    await fetch(url, { redirect: 'never' });
    return { status: response.status, text: await response.text() };
  },
});

export const keptState = tool({
  name: 'typescript_kept',
  output: { keys: t.list(t.string()) },
  handler() {
    const bucket = open('notes');
    const before: string | undefined = bucket.get('a');
    bucket.set('a', before === undefined ? 'x' : Uint8Array.of(bucket.increment('n')));
    // @ts-expect-error
    bucket.set('a', 5);
    return { keys: [...bucket.keys()] };
  },
});

export const review = prompt({
  name: 'review',
  arguments: {
    code: t.string('The code.', { title: 'Code' }),
    tone: t.choice(['dry', 'warm']).optional(),
    count: t.integer().default(3),
    loud: t.boolean().optional(),
  },
  complete: {
    code: (typed, given, host) => {
      same<typeof typed, string>(true);
      same<typeof given, { code?: string; tone?: string; count?: string; loud?: string }>(true);
      return beginningWith(typed, [given.tone ?? '', host.config('a') ?? '']);
    },
    tone: ['dry'],
    count: async () => ({ values: ['3'], total: 1, hasMore: false }),
  },
  handler(args, host) {
    same<typeof args, { code: string; tone?: 'dry' | 'warm'; count: number; loud?: boolean }>(true);
    host.log('info', args.code);
    return [args.code, { role: 'assistant', content: image(new Uint8Array(), 'image/png') }, text('a')];
  },
});
const handler = (): PromptAnswer => 'a';
prompt({ name: 'a', handler });
prompt({ name: 'a', handler: async () => ({ messages: 'a', description: 'A', meta: { a: 1 } }) });
prompt({ name: 'a', handler: () => ({ role: 'user', content: resource('memo:a', 'a') }) });
// @ts-expect-error: not an author
prompt({ name: 'a', handler: () => ({ role: 'system', content: 'a' }) });
// @ts-expect-error: a number is not a message
prompt({ name: 'a', handler: () => 5 });
// @ts-expect-error: `undefined` is not a message
prompt({ name: 'a', handler: () => {} });
// @ts-expect-error: `input` is for tools
prompt({ name: 'a', input: {}, handler });
// @ts-expect-error: clients send texts
prompt({ name: 'a', arguments: { b: t.list(t.string()) }, handler });
// @ts-expect-error: no argument `c`
prompt({ name: 'a', arguments: { b: t.string() }, complete: { c: ['d'] }, handler });
// @ts-expect-error: no arguments at all
prompt({ name: 'a', complete: { c: ['d'] }, handler });
// @ts-expect-error: a completion is a text
prompt({ name: 'a', arguments: { b: t.string() }, complete: { b: [1] }, handler });
// @ts-expect-error: no argument `c`
prompt({ name: 'a', arguments: { b: t.string() }, handler: ({ c }) => c });

export const cards = resource({
  uri: 'game://players/{name}/{+path}.txt',
  name: 'cards',
  audience: ['user'],
  complete: { name: ['Ada'], path: (typed, given) => [typed, given.name ?? ''] },
  handler(values, host) {
    same<typeof values, { name: string; path: string }>(true);
    host.resourceUpdated('game://rules');
    if (values.name === 'Ada') return undefined;
    const json = contents('{}', { mimeType: 'application/json', uri: 'game://a' });
    return ['a', new Uint8Array(), new ArrayBuffer(1), json];
  },
});
const read = (): ResourceAnswer => null;
const rules = resource({ uri: 'game://rules', name: 'rules', size: 5, handler: read });
resource({ uri: 'game://rules', name: 'rules', handler: async () => 'None.' });
resource({ uri: `game://${rules.name}` as string, name: 'any', handler: (values) => values.anything });
// @ts-expect-error: no variable `id`
resource({ uri: 'game://rules', name: 'rules', handler: ({ id }) => id });
// @ts-expect-error: no variable `id`
resource({ uri: 'game://{name}', name: 'rules', handler: ({ id }) => id });
// @ts-expect-error: no variable `id`
resource({ uri: 'game://{name}', name: 'rules', complete: { id: ['a'] }, handler: read });
// @ts-expect-error: without a name
resource({ uri: 'game://rules', handler: read });
// @ts-expect-error: an object is not a text
resource({ uri: 'game://rules', name: 'rules', handler: () => ({ a: 1 }) });
// @ts-expect-error: no variables at all
resource({ uri: 'game://rules', name: 'rules', complete: { id: ['a'] }, handler: read });
// @ts-expect-error: a block has a body
resource('game://rules');

export const asked = tool({
  name: 'asked',
  handler(_, host) {
    const fields = { name: t.string(), age: t.integer().optional(), tags: t.list(t.choice(['a', 'b'])).default([]) };
    interface Filled {
      name: string;
      age?: number;
      tags: ('a' | 'b')[];
    }
    const required = host.ask('a', form('Who?', fields));
    same<typeof required, Elicited<Flat<Filled>>>(true);
    // @ts-expect-error: it may have been declined
    required.content;
    if (required.action === 'accept') same<typeof required.content, Flat<Filled>>(true);
    const optional = host.ask('b', form('Who?', fields).optional());
    same<typeof optional, Elicited<Flat<Filled>> | undefined>(true);
    // @ts-expect-error: the client may have no forms
    optional.action;
    const visited = host.ask('c', visit('Sign in.', 'https://example.com'));
    same<typeof visited, { action: 'accept' | 'decline' | 'cancel' }>(true);
    const messages = ['a', image(new Uint8Array(), 'image/png'), { role: 'assistant', content: ['b'] } as const];
    const written = host.ask('d', sampling('Write.', { maxTokens: 5, temperature: 0.5 }));
    same<typeof written, Sampled>(true);
    const several = host.askAll({ r: roots(), v: visit('', '') });
    same<typeof several, { r: Root[]; v: typeof visited }>(true);
    const perhaps = host.askAll({ r: roots().optional(), v: visit('', '') });
    same<typeof perhaps, { r: Root[]; v: typeof visited } | undefined>(true);
    // @ts-expect-error: clients cannot show an object
    form('Who?', { a: t.object({ b: t.string() }) });
    // @ts-expect-error: nor numbers in a list
    form('Who?', { a: t.list(t.integer()) });
    // @ts-expect-error: without a maximum
    sampling('Write.', { temperature: 0.5 });
    // @ts-expect-error: not a question
    host.ask('e', { message: 'Who?' });
    return `${written.text} ${messages.length}`;
  },
});

(await getPrompt(review, { code: 'a', count: '5' })).messages[0]?.content.kind;
// @ts-expect-error: without `code`
await getPrompt(review, { tone: 'dry' });
// @ts-expect-error: clients send texts
await getPrompt(review, { code: 'a', count: 5 });
await complete(review, 'tone', 'd', { code: 'a' });
// @ts-expect-error: no argument
await complete(review, 'style', 'd');
await complete(cards, 'path', 'd', { name: 'Ada' });
// @ts-expect-error: no variable
await complete(cards, 'id', 'd');
const answers = { a: 'unsupported', b: { roots: [] } } as const;
(await readResource(cards, 'game://players/a/b.txt', { answers })).contents[0]?.data;
