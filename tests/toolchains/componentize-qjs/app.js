import { open } from "wasi:keyvalue/store@0.2.0-draft";

export const texts = {
  async greet(name) {
    await Promise.resolve();
    if (!name) throw "the name is empty";
    return `Hello, ${name}.`;
  },
  // It passes 64-bit integers as numbers.
  double: (n) => n * 2,
  find: (text, word) =>
    text.split("\n").flatMap((words, at) =>
      words.split(" ").filter((found) => found === word).map((found) => ({ line: at + 1, word: found }))),
  visits() {
    const bucket = open("");
    const before = bucket.get("visits");
    const visits = before ? before[0] + 1 : 1;
    bucket.set("visits", new Uint8Array([visits]));
    return visits;
  },
};
