// The offers of every language's acceptance plugin.

import { form, image, InvalidArguments, prompt, resource, t, tool } from 'toolbay';
import { open } from 'toolbay/keyvalue';

export const echo = tool({
  name: 'javascript_echo',
  description: 'Answers the text unchanged.',
  input: { text: t.string('Text to answer.') },
  // Asynchronous, so that the tests also cover this.
  handler: async ({ text }) => {
    await null;
    return text;
  },
});

export const boom = tool({
  name: 'javascript_boom',
  description: 'Fails by an exception that nobody catches.',
  handler() {
    throw new Error('kaboom: 42');
  },
});

export const refuse = tool({
  name: 'javascript_refuse',
  description: 'Says that its arguments make no sense.',
  handler() {
    throw new InvalidArguments('not today');
  },
});

const PNG_SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);

export const picture = tool({
  name: 'javascript_image',
  description: 'Answers a picture and a text.',
  handler: () => [image(PNG_SIGNATURE, 'image/png'), 'a picture'],
});

export const report = tool({
  name: 'javascript_report',
  description: 'Logs, reports progress, reads the configuration and asks whether it is cancelled.',
  output: { units: t.string('`config.units`.').nullable(), cancelled: t.boolean('Whether nobody waits any more.') },
  handler(_, host) {
    host.log('info', 'working');
    host.progress(1, 2);
    host.progress(2, 2);
    return { units: host.config('units') ?? null, cancelled: host.cancelled() };
  },
});

export const send = tool({
  name: 'javascript_send',
  description: 'Sends an HTTP request.',
  input: { url: t.string(), method: t.string().default('GET'), body: t.string().optional() },
  output: { status: t.integer(), header: t.string(), text: t.string() },
  async handler({ url, method, body }) {
    const response = await fetch(url, { method, body, headers: { 'x-own': 'value' } });
    return { status: response.status, header: response.headers.get('x-got') ?? '', text: await response.text() };
  },
});

export const together = tool({
  name: 'javascript_together',
  description: 'Sends three requests at once.',
  input: { url: t.string() },
  output: { texts: t.list(t.string()) },
  async handler({ url }) {
    const paths = ['a', 'b', 'c'];
    return { texts: await Promise.all(paths.map(async (path) => (await fetch(`${url}?${path}`)).text())) };
  },
});

export const abort = tool({
  name: 'javascript_abort',
  description: 'Ends a request before its response, and one before the end of its response.',
  input: { silent: t.string(), endless: t.string() },
  output: { names: t.list(t.string()), read: t.string() },
  async handler({ silent, endless }) {
    const expired = await fetch(silent, { signal: AbortSignal.timeout(20) }).catch((error) => error);
    const aborted = new AbortController();
    const response = await fetch(endless, { signal: aborted.signal });
    const reader = response.body.getReader();
    const { value } = await reader.read();
    setTimeout(() => aborted.abort(), 20);
    const ended = await reader.read().catch((error) => error);
    return { names: [expired.name, ended.name], read: String.fromCharCode(...value) };
  },
});

export const wait = tool({
  name: 'javascript_wait',
  description: 'Uses timers of all kinds.',
  output: { order: t.list(t.string()) },
  async handler() {
    const order = [];
    const add = (...words) => order.push(words.join(' '));
    const pause = (delay) => new Promise((resolve) => setTimeout(resolve, delay));
    const one = async (name) => {
      for (const step of [1, 2]) {
        add(name, step);
        await pause(20);
      }
    };
    clearTimeout(setTimeout(add, 0, 'cleared'));
    await Promise.all([one('a'), one('b')]);
    let ticks = 0;
    await new Promise((resolve) => {
      const tick = setInterval(() => {
        ticks += 1;
        if (ticks < 3) return;
        clearInterval(tick);
        resolve();
      }, 1);
    });
    add('ticks', ticks);
    setTimeout(() => setImmediate(add, 'nested'), 0);
    queueMicrotask(() => add('job'));
    await pause(5);
    return { order };
  },
});

export const never = tool({
  name: 'javascript_never',
  description: 'Awaits what never happens.',
  handler: () => new Promise(() => {}),
});

export const keep = tool({
  name: 'javascript_keep',
  description: 'Keeps a value, and returns what was there before.',
  input: { key: t.string(), value: t.string() },
  output: { before: t.string(), count: t.integer(), keys: t.list(t.string()) },
  handler({ key, value }) {
    const bucket = open();
    const before = bucket.get(key) ?? '';
    bucket.set(key, value);
    bucket.set('gone', '');
    bucket.delete('gone');
    if (bucket.has('gone')) throw new Error('a deleted key is there');
    return { before, count: bucket.increment('count', 2), keys: [...bucket.keys()].sort() };
  },
});

const ABOUT = 'javascript://about';

export const ask = tool({
  name: 'javascript_ask',
  description: 'Asks for a name.',
  handler(_, host) {
    const answer = host.ask('name', form('Which name?', { name: t.string() }).optional());
    switch (answer?.action) {
      case 'accept':
        return `Hello, ${answer.content.name}.`;
      case 'decline':
        return 'declined';
      case 'cancel':
        return 'cancelled';
      default:
        return 'nobody to ask';
    }
  },
});

export const touch = tool({
  name: 'javascript_touch',
  description: 'Says that a resource changed.',
  handler(_, host) {
    host.resourceUpdated(ABOUT);
    return 'touched';
  },
});

export const greeting = prompt({
  name: 'javascript_greeting',
  description: 'Greets somebody.',
  arguments: {
    name: t.string('Who to greet.'),
    style: t.string('How to greet.').optional(),
  },
  complete: { style: ['formal', 'friendly', 'funny'] },
  handler: ({ name, style }) => (style === undefined ? `Greet ${name}.` : `Greet ${name} in a ${style} style.`),
});

export const about = resource({
  uri: ABOUT,
  name: 'about',
  mimeType: 'text/plain',
  handler: () => 'A plugin in javascript.',
});

export const note = resource({
  uri: 'javascript://notes/{id}',
  name: 'note',
  mimeType: 'text/plain',
  handler: ({ id }) => (id === 'none' ? undefined : `Note ${id}.`),
});
