export const texts = {
  greet(name) {
    if (!name) throw "the name is empty";
    return `Hello, ${name}.`;
  },
  // It passes 64-bit integers as numbers.
  double: (n) => n * 2,
  find: (text, word) =>
    text.split("\n").flatMap((words, at) =>
      words.split(" ").filter((found) => found === word).map((found) => ({ line: at + 1, word: found }))),
};
