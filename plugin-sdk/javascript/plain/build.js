// node build.js src/app.js my-plugin.wasm
//
// Builds a component from the functions of the main file. Adds what the engine lacks: `console`, which writes
// to standard error, a `Math.random` that differs between calls, and checks of 64-bit integers.

import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { componentize } from 'componentize-qjs';
import { reproducibleRuntime } from './runtime.js';

const [main, wasm] = process.argv.slice(2);

const WASI = {
  io: `package wasi:io@0.2.0;
interface error { resource error { to-debug-string: func() -> string; } }
interface streams {
  use error.{error};
  variant stream-error { last-operation-failed(error), closed }
  resource output-stream { blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>; }
}`,
  cli: `package wasi:cli@0.2.0;
interface stderr { use wasi:io/streams@0.2.0.{output-stream}; get-stderr: func() -> output-stream; }`,
  random: `package wasi:random@0.2.0;
interface random { get-random-bytes: func(len: u64) -> list<u8>; }`,
};

/** What the main file's functions run in. */
const PRELUDE = `
import stderr from 'wasi:cli/stderr@0.2.0';
import random from 'wasi:random/random@0.2.0';

let built = false;
export const start = () => void (built = true);

const utf8 = (text) => Uint8Array.from(unescape(encodeURIComponent(text.toWellFormed())), (byte) => byte.charCodeAt(0));

function shown(value, within = []) {
  if (typeof value === 'string') return within.length === 0 ? value : JSON.stringify(value);
  if (typeof value === 'bigint') return value + 'n';
  if (typeof value === 'function') return '[Function: ' + value.name + ']';
  if (typeof value !== 'object' || value === null) return String(value);
  if (within.includes(value)) return '[Circular]';
  if (value instanceof Error) return (value + '\\n' + (value.stack ?? '')).trimEnd();
  if (value instanceof Date) return String(value);
  const each = (values) => [...values].map((one) => shown(one, [...within, value])).join(', ');
  if (Array.isArray(value) || ArrayBuffer.isView(value)) return '[' + each(value) + ']';
  if (value instanceof Set) return 'Set {' + each(value) + '}';
  const members = value instanceof Map ? [...value] : Object.entries(value);
  return (value instanceof Map ? 'Map ' : '') + '{' + members.map(([key, held]) => String(key) + ': ' + shown(held, [...within, value])).join(', ') + '}';
}

// The engine's own numbers would be the same in every call.
const { random: fixed } = Math;
const state = { words: undefined };
Math.random = () => {
  if (!built) return fixed();
  state.words ??= [];
  if (state.words.length === 0) state.words = [...new Uint32Array(random.getRandomBytes(256).slice().buffer)];
  return (state.words.pop() * 2 ** 21 + (state.words.pop() >>> 11)) / 2 ** 53;
};

function write(...values) {
  if (!built) return;
  const bytes = utf8(values.map((value) => shown(value)).join(' ') + '\\n');
  const stream = stderr.getStderr();
  // The interface accepts 4096 bytes at once.
  for (let at = 0; at < bytes.length; at += 4096) stream.blockingWriteAndFlush(bytes.subarray(at, at + 4096));
  stream[Symbol.dispose]?.();
}
globalThis.console = { trace: write, debug: write, log: write, info: write, warn: write, error: write };

function exact(name, value) {
  if (typeof value === 'bigint') {
    if (BigInt.asIntN(54, value) === value && Number.isSafeInteger(Number(value))) return Number(value);
  } else if (typeof value !== 'number' || !Number.isInteger(value) || Number.isSafeInteger(value)) {
    if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
    if (Array.isArray(value)) return value.map((one) => exact(name, one));
    if (value instanceof Map) return new Map([...value].map(([key, held]) => [exact(name, key), exact(name, held)]));
    const prototype = Object.getPrototypeOf(value);
    if (prototype !== null && prototype !== Object.prototype) {
      for (const held of Object.values(value)) exact(name, held);
      return value;
    }
    return Object.fromEntries(Object.entries(value).map(([key, held]) => [key, exact(name, held)]));
  }
  throw new RangeError('the function ' + name + ' takes or returns an integer beyond 2^53, which is not exact in JavaScript: declare it as a string in the WIT');
}

/** Checks the 64-bit integers of a function, which are JavaScript numbers. */
export const checked = (name, act) => (...args) => exact(name, act(...args.map((arg) => exact(name, arg))));
`;

const sources = await readWit('wit');
const text = sources.map(({ text: one }) => one.replace(/\/\*[^]*?\*\/|\/\/.*/g, '')).join('\n');
await writeWit();
const native = Object.keys(createRequire(import.meta.url).cache).find((file) => file.endsWith('.node') && file.includes('componentize-qjs'));
try {
  const { component } = await componentize({
    ...engine(),
    witPath: join('build', 'wit'),
    world: 'built',
    jsPath: join('build', 'entry.js'),
    moduleRoot: '.',
    jsSource: await entry(),
  });
  await writeFile(wasm, component);
  console.log(`${wasm}: ${Math.round(component.length / 1024)} KiB`);
} catch (error) {
  console.error(`build: ${error.message}`);
  process.exitCode = 1;
}

/** Returns the option for the engine that makes two builds of the same source equal. */
function engine() {
  try {
    return { runtimeBytes: reproducibleRuntime(native, 'build') };
  } catch (error) {
    console.error(`note: two builds of this source will differ: the engine of componentize-qjs is not known (${error.message})`);
    return { sync: true };
  }
}

async function readWit(folder) {
  const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith('.wit'));
  return Promise.all(files.map(async (file) => ({ file, text: await readFile(join(folder, file), 'utf8') })));
}

/** Copies the WIT, with a world that also imports what the prelude needs. */
async function writeWit() {
  const folder = join('build', 'wit');
  await rm(folder, { recursive: true, force: true });
  await cp('wit', folder, { recursive: true, dereference: true });
  await mkdir(join(folder, 'deps'), { recursive: true });
  for (const [name, wit] of Object.entries(WASI)) {
    if (!text.includes(`package wasi:${name}@`)) await writeFile(join(folder, 'deps', `built-${name}.wit`), wit);
  }
  const own = sources.find(({ file }) => !file.includes('/'))?.text ?? '';
  const [declaration] = /^\s*package [^;]+;/m.exec(own) ?? ['package local:plugin;'];
  const world = 'world built { include plugin; import wasi:cli/stderr@0.2.0; import wasi:random/random@0.2.0; }';
  await writeFile(join(folder, 'built.wit'), `${declaration.trim()}\n${world}\n`);
}

/** Returns the names of the functions whose signatures contain 64-bit integers. */
function wideFunctions() {
  const wide = new Set(['u64', 's64']);
  const isWide = (type) => (type.match(/[\w-]+/g) ?? []).some((name) => wide.has(name));
  const types = [
    ...[...text.matchAll(/\b(?:record|variant)\s+([\w-]+)\s*\{([^}]*)\}/g)],
    ...[...text.matchAll(/\btype\s+([\w-]+)\s*=\s*([^;]+);/g)],
    ...[...text.matchAll(/([\w-]+)\s+as\s+([\w-]+)/g)].map(([all, from, to]) => [all, to, from]),
  ];
  for (let size = 0; size !== wide.size; ) {
    size = wide.size;
    for (const [, name, content] of types) if (isWide(content)) wide.add(name);
  }
  const functions = [...text.matchAll(/([\w-]+)\s*:\s*(?:static\s+)?func\s*\(([^)]*)\)([^;]*);/g)];
  return new Set(functions.filter(([, , params, result]) => isWide(params) || isWide(result)).map(([, name]) => camelCase(name)));
}

/** Returns the module with the exports of the world. */
async function entry() {
  await writeFile(join('build', 'prelude.js'), PRELUDE);
  const wide = JSON.stringify([...wideFunctions()]);
  const names = [...text.matchAll(/\bexport\s+(?:[\w:-]+\/)?([\w-]+)/g)].map(([, name]) => camelCase(name));
  const exports = [...new Set(names)].map((name) => `export const ${name} = provided(${JSON.stringify(name)}, app.${name});`);
  const source = `import { checked, start } from './prelude.js';
import * as app from ${JSON.stringify(`./${relative('build', main)}`.replaceAll('\\', '/'))};
const wide = ${wide};
const one = (name, act) => (wide.includes(name) && typeof act === 'function' ? checked(name, act) : act);
const provided = (name, value) => {
  if (typeof value !== 'object' || value === null) return one(name, value);
  const all = Object.keys(value).map((key) => [key, wide.includes(key) ? one(key, value[key].bind?.(value) ?? value[key]) : value[key]]);
  return Object.assign(Object.create(value), Object.fromEntries(all));
};
${exports.join('\n')}
start();
`;
  await writeFile(join('build', 'entry.js'), source);
  return source;
}

function camelCase(name) {
  return name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase());
}
