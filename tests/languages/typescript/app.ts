// The tools that every language's acceptance plugin has.

import { image, InvalidArguments, t, tool } from 'toolbay';

export const echo = tool({
  name: 'typescript_echo',
  description: 'Answers the text unchanged.',
  input: { text: t.string('Text to answer.') },
  // Asynchronous, so that the tests know that this works as well.
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
