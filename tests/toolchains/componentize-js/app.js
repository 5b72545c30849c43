import { open } from "wasi:keyvalue/store@0.2.0-draft";

export const texts = {
  async greet(name) {
    await Promise.resolve();
    if (!name) throw "the name is empty";
    return `Hello, ${name}.`;
  },
  double: (n) => n * 2n,
  find: (text, word) =>
    text.split("\n").flatMap((words, at) =>
      words.split(" ").filter((found) => found === word).map((found) => ({ line: at + 1, word: found }))),
  visits() {
    const bucket = open("");
    const before = bucket.get("visits");
    const visits = before ? BigInt(new TextDecoder().decode(before)) + 1n : 1n;
    bucket.set("visits", new TextEncoder().encode(String(visits)));
    return visits;
  },
  async fetch(url) {
    const response = await fetch(url);
    return response.text();
  },
};
