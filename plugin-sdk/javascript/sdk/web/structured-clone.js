// `structuredClone` of the HTML standard, for the types that a plugin has.

import { DOMException } from './dom-exception.js';

const ERRORS = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

/** Types whose contents are not in their members. */
const REFUSED = new Set(
  `AbortController AbortSignal CustomEvent Event EventTarget FinalizationRegistry FormData Generator Headers Promise
  ReadableStream Request Response SharedArrayBuffer Symbol TransformStream URL URLSearchParams WeakMap WeakRef WeakSet
  WritableStream`.split(/\s+/),
);

const tagOf = (value) => Object.prototype.toString.call(value).slice(8, -1);

const refuse = (what) => {
  throw new DOMException(`${what} cannot be cloned`, 'DataCloneError');
};

/** Copies a value with everything that it contains. The buffers in `transfer` are moved instead. */
export function structuredClone(value, options) {
  if (arguments.length === 0) throw new TypeError('structuredClone takes a value');
  const transfer = [...(options?.transfer ?? [])];
  if (new Set(transfer).size < transfer.length) refuse('an object that is transferred twice');
  for (const buffer of transfer) {
    if (!(buffer instanceof ArrayBuffer)) refuse(`a transfer of ${textOf(buffer)}: only an ArrayBuffer can be transferred, and it`);
    if (buffer.detached) refuse('a buffer that was transferred before');
  }
  const copies = new Map();
  const result = clone(value, copies);
  // Only now, so that an error above leaves everything as it was.
  for (const buffer of transfer) buffer.transfer(0);
  return result;
}

const textOf = (value) => (typeof value === 'function' ? `the function ${value.name || '(anonymous)'}` : `a value of the type ${tagOf(value)}`);

function clone(value, copies) {
  if (typeof value === 'symbol' || typeof value === 'function') return refuse(textOf(value));
  if (typeof value !== 'object' || value === null) return value;
  if (copies.has(value)) return copies.get(value);
  const made = (copy) => {
    copies.set(value, copy);
    return copy;
  };
  if (ArrayBuffer.isView(value)) {
    const buffer = clone(value.buffer, copies);
    const isTracking = value.buffer.resizable && isLengthTracking(value);
    const length = value instanceof DataView ? value.byteLength : value.length;
    // A Buffer of the package is a Uint8Array, as in Node.
    const Kind = value instanceof DataView ? DataView : globalThis[value[Symbol.toStringTag]];
    return made(isTracking ? new Kind(buffer, value.byteOffset) : new Kind(buffer, value.byteOffset, length));
  }
  if (value instanceof ArrayBuffer) return made(clonedBuffer(value));
  if ([Boolean, Number, String, BigInt].some((Kind) => value instanceof Kind)) return made(Object(value.valueOf()));
  if (value instanceof Date) return made(new Date(value.getTime()));
  if (value instanceof RegExp) return made(new RegExp(value.source, value.flags));
  if (value instanceof Map) {
    const copy = made(new Map());
    for (const [key, held] of [...value]) copy.set(clone(key, copies), clone(held, copies));
    return copy;
  }
  if (value instanceof Set) {
    const copy = made(new Set());
    for (const held of [...value]) copy.add(clone(held, copies));
    return copy;
  }
  // They cannot be changed.
  if (['Blob', 'File'].includes(tagOf(value))) return made(value);
  if (REFUSED.has(tagOf(value))) return refuse(textOf(value));
  if (value instanceof DOMException) return made(new DOMException(value.message, value.name));
  if (value instanceof Error) return clonedError(value, copies, made);
  return clonedMembers(value, made(Array.isArray(value) ? new Array(value.length) : {}), copies);
}

function clonedBuffer(buffer) {
  if (buffer.detached) return refuse('a buffer that was transferred before');
  const options = buffer.resizable ? { maxByteLength: buffer.maxByteLength } : undefined;
  const copy = new ArrayBuffer(buffer.byteLength, options);
  new Uint8Array(copy).set(new Uint8Array(buffer));
  return copy;
}

/** Returns whether the length of a view follows that of its buffer. */
function isLengthTracking(view) {
  const { buffer } = view;
  const [before, length] = [buffer.byteLength, view.byteLength];
  if (buffer.maxByteLength === before) return false;
  const size = view.BYTES_PER_ELEMENT ?? 1;
  if (before + size > buffer.maxByteLength) return false;
  buffer.resize(before + size);
  const isLonger = view.byteLength > length;
  buffer.resize(before);
  return isLonger;
}

function clonedError(error, copies, made) {
  const Kind = Object.hasOwn(ERRORS, error.name) ? ERRORS[error.name] : Error;
  const copy = made(new Kind(...(Object.hasOwn(error, 'message') ? [String(error.message)] : [])));
  const hidden = (name, value) => Object.defineProperty(copy, name, { configurable: true, writable: true, enumerable: false, value });
  if (typeof error.stack === 'string') hidden('stack', error.stack);
  if (Object.hasOwn(error, 'cause')) hidden('cause', clone(error.cause, copies));
  return copy;
}

function clonedMembers(value, copy, copies) {
  for (const key of Object.keys(value)) {
    // A getter may have removed it.
    if (!Object.hasOwn(value, key)) continue;
    Object.defineProperty(copy, key, { configurable: true, enumerable: true, writable: true, value: clone(value[key], copies) });
  }
  return copy;
}
