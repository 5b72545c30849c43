// The JavaScript engine, with a fixed clock and fixed randomness while a plugin is built.
//
// componentize-qjs runs the engine during the build and stores its memory in the component. The
// engine seeds its hash tables and its `Math.random` as it starts, and reads the clock. So two builds
// of the same source would differ. componentize-qjs has no option against this, but accepts another
// engine: this module takes its own engine from its native module, and puts functions before these
// imports of the host. During the build, they return constants. In a call, they call the host.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MAGIC = Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
const [TYPES, IMPORTS, FUNCTIONS, GLOBALS, EXPORTS, CODE] = [1, 2, 3, 6, 7, 10];

/** The names of sections that tools of WebAssembly add. */
const CUSTOM = /^(?:dylink\.0|component-type\b.*|name|producers|target_features)$/;

/** The number of bytes or of LEB128 numbers that follow an instruction. */
const BYTES = { 0x43: 4, 0x44: 8 };
const NUMBERS = new Map([
  ...[0x02, 0x03, 0x04, 0x0c, 0x0d, 0x10, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x3f, 0x40, 0x41, 0x42].map((op) => [op, 1]),
  ...Array.from({ length: 0x3e - 0x28 + 1 }, (_, at) => [0x28 + at, 2]),
  [0x11, 2],
]);
/** Those after the prefix 0xfc. */
const MORE_NUMBERS = [0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 2, 1];

class Reader {
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  byte() {
    if (this.at >= this.bytes.length) throw new RangeError('the module ends too early');
    this.at += 1;
    return this.bytes[this.at - 1];
  }

  /** Reads an unsigned number. */
  number() {
    let [value, factor, byte] = [0, 1, 0x80];
    while (byte >= 0x80) {
      byte = this.byte();
      value += (byte & 0x7f) * factor;
      factor *= 0x80;
    }
    return value;
  }

  /** Skips a number of any sign. */
  skip() {
    while (this.byte() >= 0x80);
  }

  take(length) {
    if (this.at + length > this.bytes.length) throw new RangeError('the module ends too early');
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  name() {
    return this.take(this.number()).toString('utf8');
  }
}

function number(value) {
  const bytes = [];
  for (let rest = value; ; rest = Math.floor(rest / 0x80)) {
    if (rest < 0x80) return [...bytes, rest];
    bytes.push((rest % 0x80) | 0x80);
  }
}

const sized = (bytes) => Buffer.concat([Buffer.from(number(bytes.length)), bytes]);

/** Returns the sections of the module at the beginning of `bytes`. */
function sectionsOf(bytes) {
  const reader = new Reader(bytes, MAGIC.length);
  const sections = [];
  const seen = new Set();
  try {
    while (reader.at < bytes.length) {
      const id = reader.byte();
      // The next data of the native module follows.
      if (id > 13 || (id !== 0 && seen.has(id))) break;
      seen.add(id);
      const content = reader.take(reader.number());
      if (id === 0 && !CUSTOM.test(new Reader(content).name())) break;
      sections.push({ id, content });
    }
  } catch {
    // What follows is not a section.
  }
  return sections;
}

const contentOf = (sections, id) => sections.find((section) => section.id === id)?.content;

/** Returns the imported functions of a module. */
function importsOf(sections) {
  const reader = new Reader(contentOf(sections, IMPORTS));
  const functions = [];
  let globals = 0;
  for (let left = reader.number(); left > 0; left -= 1) {
    const [module, name, kind] = [reader.name(), reader.name(), reader.byte()];
    if (kind === 0) functions.push({ module, name, type: reader.number() });
    else if (kind === 3) {
      globals += 1;
      reader.take(2);
    } else {
      if (kind === 1) reader.byte();
      const flags = reader.byte();
      reader.skip();
      if (flags & 1) reader.skip();
    }
  }
  return { functions, globals };
}

/** Returns the engine of the native module: the largest one without asynchronous calls. */
function engineOf(native) {
  let engine;
  for (let at = native.indexOf(MAGIC); at >= 0; at = native.indexOf(MAGIC, at + 1)) {
    const sections = sectionsOf(native.subarray(at));
    const size = sections.reduce((sum, { content }) => sum + content.length, 0);
    if (size < 500_000 || (engine !== undefined && size <= engine.size)) continue;
    if (contentOf(sections, EXPORTS)?.includes('wit_dylib_initialize') !== true) continue;
    const { functions } = importsOf(sections);
    if (functions.some(({ name }) => /^\[(?:waitable|context|task|subtask|async)/.test(name))) continue;
    engine = { size, sections };
  }
  return engine?.sections;
}

/** Returns where each function's body calls one of `targets`: the position of the index, and its end. */
function callsOf(body, targets) {
  const reader = new Reader(body);
  for (let left = reader.number(); left > 0; left -= 1) {
    reader.skip();
    reader.skip();
  }
  const calls = [];
  while (reader.at < body.length) {
    const op = reader.byte();
    if (op === 0x10) {
      const start = reader.at;
      const target = reader.number();
      if (targets.has(target)) calls.push({ start, end: reader.at, target });
    } else if (op === 0x0e) {
      for (let left = reader.number() + 1; left > 0; left -= 1) reader.skip();
    } else if (op === 0xfc) {
      for (let left = MORE_NUMBERS[reader.number()] ?? unknown(op); left > 0; left -= 1) reader.skip();
    } else if (op in BYTES) {
      reader.take(BYTES[op]);
    } else {
      if (op > 0xc4 || isBetween(op, 0x06, 0x0a) || isBetween(op, 0x12, 0x19) || isBetween(op, 0x1c, 0x1f) || op === 0x27) unknown(op);
      for (let left = NUMBERS.get(op) ?? 0; left > 0; left -= 1) reader.skip();
    }
  }
  return calls;
}

const isBetween = (op, from, to) => op >= from && op <= to;

function unknown(op) {
  throw new RangeError(`the engine has the instruction 0x${op.toString(16)}`);
}

/** Returns the body of a function that calls `target` in a call, and runs `constant` during the build. */
function choice(flag, target, result, params, constant) {
  const call = [...params, 0x10, ...number(target)];
  const code = [0, 0x23, ...number(flag), 0x04, result, ...call, 0x05, ...constant, 0x0b, 0x0b];
  return sized(Buffer.from(code));
}

const I64 = 0x7e;
const EMPTY = 0x40;
/** Stores a constant at the address in the first parameter. */
const store = (op, constant, offset) => [0x20, 0, ...constant, op, 0, offset];

/**
 * Returns the engine of the native module `native` with fixed values during the build. Keeps it in the folder
 * `cache` for the next build.
 */
export function reproducibleRuntime(native, cache) {
  const { size, mtimeMs } = statSync(native);
  const key = createHash('sha256').update(`${native} ${size} ${mtimeMs} `).update(readFileSync(fileURLToPath(import.meta.url))).digest('hex');
  const file = join(cache, `engine-${key.slice(0, 16)}.wasm`);
  if (existsSync(file)) return readFileSync(file);
  const engine = patched(native);
  mkdirSync(cache, { recursive: true });
  // A build at the same time may read it.
  writeFileSync(`${file}.${process.pid}`, engine);
  renameSync(`${file}.${process.pid}`, file);
  return engine;
}

function patched(native) {
  const sections = engineOf(readFileSync(native));
  if (sections === undefined) throw new RangeError('there is no engine in it');
  const { functions, globals } = importsOf(sections);

  const globalSection = new Reader(contentOf(sections, GLOBALS));
  const flag = globals + globalSection.number();
  const types = new Reader(contentOf(sections, FUNCTIONS));
  const typeOf = Array.from({ length: types.number() }, () => types.number());
  const first = functions.length + typeOf.length;

  // Any other value would do. That of a hash table must differ from that of no table.
  const seed = [...store(0x37, [0x42, 1], 0), ...store(0x37, [0x42, 2], 8)];
  const epoch = [...store(0x37, [0x42, 0], 0), ...store(0x36, [0x41, 0], 8)];
  const added = [
    ['wasi:random/insecure-seed', 'insecure-seed', EMPTY, [0x20, 0], seed],
    ['wasi:clocks/wall-clock', 'now', EMPTY, [0x20, 0], epoch],
    ['wasi:clocks/monotonic-clock', 'now', I64, [], [0x42, 0]],
  ].map(([module, name, result, params, constant], index) => {
    const target = functions.findIndex((one) => one.module.split('@')[0] === module && one.name === name);
    if (target < 0) throw new RangeError(`the engine does not import ${module}`);
    return { target, index: first + index, type: functions[target].type, body: choice(flag, target, result, params, constant) };
  });
  const targets = new Map(added.map(({ target, index }) => [target, index]));

  const exported = new Reader(contentOf(sections, EXPORTS));
  const names = Array.from({ length: exported.number() }, () => {
    const [name, kind] = [exported.name(), exported.byte()];
    return { name, kind, index: exported.number() };
  });
  const init = names.find(({ name, kind }) => name === 'init' && kind === 0);
  if (init === undefined) throw new RangeError('the engine has no function `init`');
  const initType = typeOf[init.index - functions.length];
  const params = Array.from({ length: paramsOf(sections, initType) }, (_, at) => [0x20, ...number(at)]).flat();
  const body = [0, ...params, 0x10, ...number(init.index), 0x41, 1, 0x24, ...number(flag), 0x0b];
  added.push({ index: first + added.length, type: initType, body: sized(Buffer.from(body)) });
  init.index = added.at(-1).index;

  const changed = {
    [FUNCTIONS]: list([...typeOf, ...added.map(({ type }) => type)].map((type) => Buffer.from(number(type)))),
    [GLOBALS]: Buffer.concat([Buffer.from(number(flag - globals + 1)), globalSection.bytes.subarray(globalSection.at), Buffer.from([0x7f, 1, 0x41, 0, 0x0b])]),
    [EXPORTS]: list(names.map(({ name, kind, index }) => Buffer.concat([sized(Buffer.from(name)), Buffer.from([kind, ...number(index)])]))),
    [CODE]: list([...bodies(sections, targets), ...added.map((one) => one.body)]),
  };
  return Buffer.concat([MAGIC, ...sections.map(({ id, content }) => Buffer.concat([Buffer.from([id]), sized(changed[id] ?? content)]))]);
}

const list = (items) => Buffer.concat([Buffer.from(number(items.length)), ...items]);

/** Returns the number of parameters of a function type. */
function paramsOf(sections, wanted) {
  const reader = new Reader(contentOf(sections, TYPES));
  for (let left = reader.number(), at = 0; left > 0; left -= 1, at += 1) {
    if (reader.byte() !== 0x60) throw new RangeError('the engine has a type that is not a function');
    const params = reader.number();
    reader.take(params);
    reader.take(reader.number());
    if (at === wanted) return params;
  }
  throw new RangeError('the engine has no such type');
}

/** Returns the bodies of all functions, with their sizes, that call the new functions in place of `targets`. */
function bodies(sections, targets) {
  const code = new Reader(contentOf(sections, CODE));
  return Array.from({ length: code.number() }, () => {
    const body = code.take(code.number());
    const pieces = [];
    let at = 0;
    for (const { start, end, target } of callsOf(body, targets)) {
      pieces.push(body.subarray(at, start), Buffer.from(number(targets.get(target))));
      at = end;
    }
    return sized(Buffer.concat([...pieces, body.subarray(at)]));
  });
}
