// The functions that wit/{{name}}.wit declares: each is a tool.

interface Counts {
  characters: number;
  words: number;
  lines: number;
}

export const texts = {
  greet(name: string, excited?: boolean): string {
    // The thrown value is the error of the `result`, so it is not an Error.
    if (name.trim() === '') throw 'name is empty: say who to greet';
    return excited ? `HELLO, ${name.toUpperCase()}!` : `Hello, ${name}.`;
  },

  count(text: string): Counts {
    return {
      characters: [...text].length,
      words: text.split(/\s+/).filter(Boolean).length,
      lines: text === '' ? 0 : text.split('\n').length,
    };
  },
};
