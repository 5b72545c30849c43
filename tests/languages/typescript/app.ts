// The offers of every language's acceptance plugin.

import { form, image, InvalidArguments, prompt, resource, t, tool } from 'toolbay';

export const echo = tool({
  name: 'typescript_echo',
  description: 'Answers the text unchanged.',
  input: { text: t.string('Text to answer.') },
  // Asynchronous, so that the tests also cover this.
  handler: async ({ text }) => {
    await null;
    return text;
  },
});

export const boom = tool({
  name: 'typescript_boom',
  description: 'Fails by an exception that nobody catches.',
  handler() {
    throw new Error('kaboom: 42');
  },
});

export const refuse = tool({
  name: 'typescript_refuse',
  description: 'Says that its arguments make no sense.',
  handler() {
    throw new InvalidArguments('not today');
  },
});

const PNG_SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);

export const picture = tool({
  name: 'typescript_image',
  description: 'Answers a picture and a text.',
  handler: () => [image(PNG_SIGNATURE, 'image/png'), 'a picture'],
});

export const report = tool({
  name: 'typescript_report',
  description: 'Logs, reports progress, reads the configuration and asks whether it is cancelled.',
  output: { units: t.string('`config.units`.').nullable(), cancelled: t.boolean('Whether nobody waits any more.') },
  handler(_, host) {
    host.log('info', 'working');
    host.progress(1, 2);
    host.progress(2, 2);
    return { units: host.config('units') ?? null, cancelled: host.cancelled() };
  },
});

const ABOUT = 'typescript://about';

export const ask = tool({
  name: 'typescript_ask',
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
  name: 'typescript_touch',
  description: 'Says that a resource changed.',
  handler(_, host) {
    host.resourceUpdated(ABOUT);
    return 'touched';
  },
});

export const greeting = prompt({
  name: 'typescript_greeting',
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
  handler: () => 'A plugin in typescript.',
});

export const note = resource({
  uri: 'typescript://notes/{id}',
  name: 'note',
  mimeType: 'text/plain',
  handler: ({ id }) => (id === 'none' ? undefined : `Note ${id}.`),
});
