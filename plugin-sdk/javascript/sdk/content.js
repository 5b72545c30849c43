// The blocks of a result, and their conversion to the contract's records.

import { audienceOf, checkSize } from './check.js';
import { inspect } from './failure.js';

/**
 * The kinds of blocks, and the members of each; `?` marks optional members. To
 * add a kind, begin with a line here. The tests then fail until there is also a
 * function that creates it (below, and in index.js), and until `Kinds` in
 * index.d.ts has it.
 */
export const KINDS = {
  text: { text: 'string' },
  image: { data: 'bytes', mimeType: 'string' },
  audio: { data: 'bytes', mimeType: 'string' },
  'resource-link': {
    uri: 'string',
    name: 'string',
    title: 'string?',
    description: 'string?',
    mimeType: 'string?',
    size: 'number?',
  },
  'embedded-resource': { uri: 'string', text: 'string?', data: 'bytes?', mimeType: 'string?' },
};

/** The members that a block of any kind can have. */
const OPTIONS = { priority: 'number?', lastModified: 'string?' };

/**
 * One block, in the form of the contract's record `content`. The runtime would
 * end the instance because of a member of another type. This class reports it
 * to the author with a message.
 */
export class Content {
  constructor(kind, members, { audience, priority, lastModified } = {}) {
    this.kind = kind;
    const given = { ...members, priority, lastModified };
    for (const [key, type] of Object.entries({ ...KINDS[kind], ...OPTIONS })) {
      const value = member(key, type, given[key]);
      if (value !== undefined) this[key] = value;
    }
    this.audience = audienceOf(audience);
  }
}

/** Returns `value` in the form of the contract, if it has the type of the member. */
function member(key, type, value) {
  if (value === undefined && type.endsWith('?')) return undefined;
  const expected = type.replace('?', '');
  if (expected === 'bytes') return bytes(value);
  if (typeof value !== expected) throw new TypeError(`\`${key}\` of a block is a ${expected}, not ${typeof value}`);
  return expected === 'string' ? value.toWellFormed() : value;
}

/** The result of `reply`: an answer with several parts. */
export class Reply {
  constructor({ structured, content = [], meta }) {
    this.structured = structured;
    this.content = [content].flat();
    this.meta = meta;
  }
}

export const text = (value, options) => new Content('text', { text: value }, options);

export const image = (data, mimeType, options) => new Content('image', { data, mimeType }, options);

export const audio = (data, mimeType, options) => new Content('audio', { data, mimeType }, options);

export function resourceLink(uri, name, options = {}) {
  const { title, description, mimeType, size } = options;
  checkSize(size);
  return new Content('resource-link', { uri, name, title, description, mimeType, size }, options);
}

export function embedded(uri, body, options = {}) {
  const held = typeof body === 'string' ? { text: body } : { data: bytes(body) };
  return new Content('embedded-resource', { uri, mimeType: options.mimeType, ...held }, options);
}

export const reply = (parts) => new Reply(parts);

/** Returns the bytes that `data` represents. */
export function bytes(data) {
  if (data instanceof Uint8Array) return data;
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  throw new TypeError('bytes are a Uint8Array or an ArrayBuffer');
}

/**
 * Returns a handler's answer as the contract's record `output`. `promised` is
 * true if the tool has an output schema.
 */
export function output(answer, promised) {
  const parts = parse(answer, promised);
  if (promised && parts.structured === undefined) {
    throw new TypeError('the tool has an `output` and answered without the object that it promises');
  }
  const result = { content: parts.content.map(block) };
  if (parts.structured !== undefined) result.structured = json(parts.structured);
  if (parts.meta !== undefined) result.meta = json(parts.meta);
  return result;
}

function parse(answer, promised) {
  if (answer instanceof Reply) return answer;
  if (answer === undefined) return new Reply({});
  if (typeof answer === 'string' || answer instanceof Content) return new Reply({ content: answer });
  if (Array.isArray(answer) && !promised && answer.every(isBlock)) return new Reply({ content: answer });
  if (typeof answer === 'object' && answer !== null && !Array.isArray(answer)) return new Reply({ structured: answer });
  const isValue = ['number', 'boolean'].includes(typeof answer) || Array.isArray(answer);
  if (isValue && !promised) return new Reply({ structured: { result: value(answer) } });
  throw new TypeError(`a tool answers with a text, a block, a number, a list or an object, not with ${inspect(answer)}`);
}

const isBlock = (item) => typeof item === 'string' || item instanceof Content;

/** Returns a number, a boolean or a list, unless JSON would replace it by `null`. */
function value(answer) {
  if (Array.isArray(answer)) {
    if (answer.some((item) => item instanceof Content)) {
      throw new TypeError('a list has either blocks and texts, or values: `reply` returns both');
    }
    if (answer.some((item) => item === undefined || typeof item === 'function')) {
      throw new TypeError('a list has a member that cannot be written as JSON');
    }
  } else if (typeof answer === 'number' && !Number.isFinite(answer)) {
    throw new TypeError(`${answer} cannot be written as JSON`);
  }
  return answer;
}

/** Returns `item` if it is a block, or a block with `item` as its text. */
export function block(item) {
  if (item instanceof Content) return item;
  if (typeof item === 'string') return text(item);
  throw new TypeError('a block is a text, or made by `text`, `image`, `audio`, `resource` or `resourceLink`');
}

/**
 * Returns `value` as JSON. A lone surrogate is legal only in a JavaScript
 * string: it becomes U+FFFD, as in `toWellFormed`.
 */
export function json(value) {
  const written = JSON.stringify(value);
  if (written === undefined) throw new TypeError(`a ${typeof value} cannot be written as JSON`);
  // `JSON.stringify` escapes only lone surrogates as `\ud…`. The lookbehind and
  // the pairs of backslashes exclude a text that literally contains `\ud…`.
  return written.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, '$1\ufffd');
}
