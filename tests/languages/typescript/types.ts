// What the SDK's types promise. Only the compiler reads this file; an expected
// error that does not come is an error.

import { audio, image, InvalidArguments, reply, resource, resourceLink, t, text, tool } from 'toolbay';
import { open } from 'toolbay/keyvalue';
import type { Content, Given, Infer } from 'toolbay';
import { call } from 'toolbay/testing';

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
    // @ts-expect-error: no level
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
// @ts-expect-error: no sum
tool({ name: 'a', output, handler: () => ({}) });
// @ts-expect-error: not what is promised
tool({ name: 'a', output, handler: () => 'one' });
// @ts-expect-error: not what is promised
tool({ name: 'a', output, handler: () => reply({ structured: { sum: '1' } }) });
// @ts-expect-error: without what is promised
tool({ name: 'a', output, handler: () => reply({ content: 'one' }) });

const any = tool({ name: 'b', handler: () => 'one' });
tool({ name: 'b', handler: () => {} });
tool({ name: 'b', handler: () => ({ n: 1 }) });
tool({ name: 'b', handler: async () => [text('a'), 'b', audio(new ArrayBuffer(1), 'audio/wav')] });
tool({ name: 'b', handler: () => [resource('memo:a', 'a'), resourceLink('memo:b', 'b', { size: 1 })] });
tool({ name: 'b', input: t.object({ x: t.string() }), handler: ({ x }) => x.trim() });
// @ts-expect-error: a number is no answer
tool({ name: 'b', handler: () => 5 });
// @ts-expect-error: a field is described by `t`
tool({ name: 'b', input: { x: 'string' }, handler: () => 'one' });
// @ts-expect-error: `desc` is no option
tool({ name: 'b', desc: 'B.', handler: () => 'one' });

// Every kind of block has a case: a forgotten one reaches `never`.
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
// And every kind has a function that makes it.
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
// @ts-expect-error: a plugin has no timers
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
