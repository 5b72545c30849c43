// `Headers`: names are not case-sensitive, and the values of a name are joined by commas,
// except for those of `Set-Cookie`.

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

function normalName(name) {
  const text = String(name);
  if (!NAME.test(text)) throw new TypeError(`the name of a header is not valid: ${JSON.stringify(text)}`);
  return text.toLowerCase();
}

function normalValue(name, value) {
  const text = String(value).replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, '');
  if (/[\0\n\r]/.test(text)) throw new TypeError(`the value of the header ${name} contains a line break or a NUL character`);
  if (/[^\0-\xff]/.test(text)) throw new TypeError(`the value of the header ${name} contains a character beyond U+00FF`);
  return text;
}

export class Headers {
  /** The values of each name, in the order in which they were added. */
  #values = new Map();

  constructor(init) {
    if (init === undefined) return;
    if (init === null || (typeof init !== 'object' && typeof init !== 'function')) {
      throw new TypeError('headers are an object or a list of pairs');
    }
    if (typeof init[Symbol.iterator] !== 'function') {
      for (const name of Reflect.ownKeys(init)) {
        if (Object.getOwnPropertyDescriptor(init, name)?.enumerable) this.append(name, init[name]);
      }
      return;
    }
    for (const pair of init) {
      const both = [...pair];
      if (both.length !== 2) throw new TypeError('each header of a list is a pair of its name and its value');
      this.append(...both);
    }
  }

  append(name, value) {
    const key = normalName(name);
    const text = normalValue(key, value);
    const values = this.#values.get(key);
    if (values === undefined) this.#values.set(key, [text]);
    else values.push(text);
  }

  set(name, value) {
    const key = normalName(name);
    this.#values.set(key, [normalValue(key, value)]);
  }

  get(name) {
    return this.#values.get(normalName(name))?.join(', ') ?? null;
  }

  getSetCookie() {
    return [...(this.#values.get('set-cookie') ?? [])];
  }

  has(name) {
    return this.#values.has(normalName(name));
  }

  delete(name) {
    this.#values.delete(normalName(name));
  }

  *entries() {
    // Changes during an iteration are visible in it.
    for (let index = 0; ; index += 1) {
      const pair = this.#pairs()[index];
      if (pair === undefined) return;
      yield pair;
    }
  }

  #pairs() {
    const names = [...this.#values.keys()].sort();
    return names.flatMap((name) => {
      const values = this.#values.get(name);
      return name === 'set-cookie' ? values.map((value) => [name, value]) : [[name, values.join(', ')]];
    });
  }

  *keys() {
    for (const [name] of this.entries()) yield name;
  }

  *values() {
    for (const [, value] of this.entries()) yield value;
  }

  forEach(act, self) {
    for (const [name, value] of this.entries()) act.call(self, value, name, this);
  }

  get [Symbol.toStringTag]() {
    return 'Headers';
  }
}

Object.defineProperty(Headers.prototype, Symbol.iterator, { value: Headers.prototype.entries, writable: true, configurable: true });
