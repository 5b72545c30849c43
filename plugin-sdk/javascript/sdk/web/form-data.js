// `FormData`, and its two forms as the body of a request.

import { decode, encode } from '../utf8.js';
import { Blob, blobBytes, File } from './blob.js';
import { joined } from './bytes.js';

export class FormData {
  #entries = [];

  constructor(form) {
    if (form !== undefined) throw new TypeError('a FormData is made without a form: there is no document');
  }

  append(name, value, filename) {
    this.#entries.push(entry(name, value, filename));
  }

  set(name, value, filename) {
    const added = entry(name, value, filename);
    const index = this.#entries.findIndex(([key]) => key === added[0]);
    if (index < 0) {
      this.#entries.push(added);
      return;
    }
    this.#entries[index] = added;
    this.#entries = this.#entries.filter(([key], at) => at <= index || key !== added[0]);
  }

  get(name) {
    return this.#entries.find(([key]) => key === String(name))?.[1] ?? null;
  }

  getAll(name) {
    return this.#entries.filter(([key]) => key === String(name)).map(([, value]) => value);
  }

  has(name) {
    return this.#entries.some(([key]) => key === String(name));
  }

  delete(name) {
    this.#entries = this.#entries.filter(([key]) => key !== String(name));
  }

  *entries() {
    for (let index = 0; index < this.#entries.length; index += 1) yield [...this.#entries[index]];
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
    return 'FormData';
  }
}

Object.defineProperty(FormData.prototype, Symbol.iterator, { value: FormData.prototype.entries, writable: true, configurable: true });

function entry(name, value, filename) {
  const key = String(name).toWellFormed();
  if (!(value instanceof Blob)) {
    if (filename !== undefined) throw new TypeError('only a Blob of a FormData has the name of a file');
    return [key, String(value).toWellFormed()];
  }
  if (value instanceof File && filename === undefined) return [key, value];
  return [key, new File([value], filename ?? 'blob', { type: value.type })];
}

const escaped = (name) => name.replace(/\r\n?|\n/g, '%0D%0A').replaceAll('"', '%22');

/** Returns the form as `multipart/form-data`: its bytes and its MIME type. */
export function multipart(form) {
  const boundary = `----formdata-${crypto.randomUUID()}`;
  const pieces = [];
  for (const [name, value] of form) {
    const isFile = typeof value !== 'string';
    const file = isFile ? `; filename="${escaped(value.name)}"\r\nContent-Type: ${value.type || 'application/octet-stream'}` : '';
    pieces.push(encode(`--${boundary}\r\nContent-Disposition: form-data; name="${escaped(name)}"${file}\r\n\r\n`));
    pieces.push(isFile ? blobBytes(value) : encode(value.replace(/\r\n?|\n/g, '\r\n')), encode('\r\n'));
  }
  pieces.push(encode(`--${boundary}--\r\n`));
  return { bytes: joined(pieces), type: `multipart/form-data; boundary=${boundary}` };
}

/** Returns the form in a body of this MIME type. */
export function parseForm(bytes, type) {
  if (/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type)) return urlEncoded(decode(bytes));
  const boundary = /^multipart\/form-data\s*;(?:.*;)?\s*boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(type);
  if (boundary === null) throw new TypeError(`a body of the type ${type || 'unknown'} is not a form`);
  return parts(bytes, boundary[1] ?? boundary[2]);
}

function urlEncoded(text) {
  const form = new FormData();
  for (const pair of text.split('&').filter(Boolean)) {
    const at = pair.indexOf('=');
    form.append(...(at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)]).map(unescapedPlus));
  }
  return form;
}

function unescapedPlus(text) {
  const bytes = encode(text.replaceAll('+', ' '));
  const found = [];
  for (let at = 0; at < bytes.length; at += 1) {
    const code = bytes[at] === 0x25 ? String.fromCharCode(...bytes.subarray(at + 1, at + 3)) : '';
    const isCode = /^[0-9a-f]{2}$/i.test(code);
    found.push(isCode ? parseInt(code, 16) : bytes[at]);
    if (isCode) at += 2;
  }
  return decode(Uint8Array.from(found));
}

/** Returns the position of `wanted` in `bytes`, or -1. */
function find(bytes, wanted, from) {
  for (let at = bytes.indexOf(wanted[0], from); at >= 0; at = bytes.indexOf(wanted[0], at + 1)) {
    if (wanted.every((byte, offset) => bytes[at + offset] === byte)) return at;
  }
  return -1;
}

function parts(bytes, boundary) {
  const form = new FormData();
  const damaged = () => new TypeError('the body is not valid multipart/form-data');
  const all = joined([encode('\r\n'), bytes]);
  const delimiter = encode(`\r\n--${boundary}`);
  let at = find(all, delimiter, 0);
  for (;;) {
    if (at < 0) throw damaged();
    at += delimiter.length;
    if (all[at] === 0x2d && all[at + 1] === 0x2d) return form;
    const head = find(all, encode('\r\n'), at);
    const body = head < 0 ? -1 : find(all, encode('\r\n\r\n'), head);
    const end = body < 0 ? -1 : find(all, delimiter, body + 2);
    if (end < 0) throw damaged();
    const lines = decode(all.subarray(head, body)).split('\r\n');
    const field = (name) => lines.find((line) => line.toLowerCase().startsWith(`${name}:`))?.slice(name.length + 1).trim();
    const disposition = field('content-disposition') ?? '';
    const parameter = (name) => new RegExp(`;\\s*${name}="([^"]*)"`, 'i').exec(disposition)?.[1].replace(/%0A|%0D|%22/gi, decodeURIComponent);
    const name = parameter('name');
    if (name === undefined) throw damaged();
    const content = all.subarray(Math.min(body + 4, end), end);
    const filename = parameter('filename');
    if (filename === undefined) form.append(name, decode(content));
    else form.append(name, new File([content], filename, { type: field('content-type') ?? 'text/plain' }));
    at = end;
  }
}
