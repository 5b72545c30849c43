import { InvalidArguments, t, tool } from 'toolbay';

export const greet = tool({
  name: '{{ident}}_greet',
  description: 'Greets somebody by name.',
  annotations: { readOnly: true },
  input: {
    name: t.string('Who to greet.'),
    excited: t.boolean('Whether to shout.').default(false),
  },
  handler({ name, excited }) {
    if (name.trim() === '') throw new InvalidArguments('name is empty: say who to greet');
    return excited ? `HELLO, ${name.toUpperCase()}!` : `Hello, ${name}.`;
  },
});

export const count = tool({
  name: '{{ident}}_count',
  description: 'Counts the characters, words and lines of a text.',
  annotations: { readOnly: true },
  input: { text: t.string('Text to count.') },
  output: {
    characters: t.integer('Unicode code points.'),
    words: t.integer('What white space separates.'),
    lines: t.integer('What line feeds separate.'),
  },
  handler({ text }) {
    return {
      characters: [...text].length,
      words: text.split(/\s+/).filter(Boolean).length,
      lines: text === '' ? 0 : text.split('\n').length,
    };
  },
});
