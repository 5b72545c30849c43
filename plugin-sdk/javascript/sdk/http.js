// `fetch` with `wasi:http`. All operations block, so a promise that is returned here
// is already settled.

import { RequestError, thrownCase } from './failure.js';
import { decode, encode } from './utf8.js';

/** The maximum number of redirects, as in browsers. */
const REDIRECTS = 20;

/** The number of bytes that the host accepts at once, and that are read at once. */
const WRITTEN = 4096;
const READ = 65_536;

const METHODS = ['get', 'head', 'post', 'put', 'delete', 'connect', 'options', 'trace', 'patch'];

/** The messages for WASI error codes, which are the same in every language. */
export function words(code) {
  switch (code.tag) {
    case 'HTTP-request-denied':
      return 'The request is denied.';
    case 'DNS-timeout':
    case 'connection-timeout':
    case 'connection-read-timeout':
    case 'connection-write-timeout':
    case 'HTTP-response-timeout':
      return 'The server did not answer in time.';
    case 'DNS-error':
    case 'destination-not-found':
    case 'destination-unavailable':
    case 'destination-IP-prohibited':
    case 'destination-IP-unroutable':
      return 'The server cannot be found.';
    case 'connection-refused':
    case 'connection-terminated':
    case 'HTTP-response-incomplete':
      return 'The connection to the server failed.';
    case 'TLS-protocol-error':
    case 'TLS-certificate-error':
    case 'TLS-alert-received':
      return 'The connection to the server is not secure.';
    case 'internal-error':
      return `The request failed: ${code.val ?? 'internal error'}.`;
    default:
      return `The request failed: ${code.tag.replaceAll('-', ' ')}.`;
  }
}

/** Headers. Names are not case-sensitive, and the values of a name are joined by commas. */
export class Headers {
  #values = new Map();

  constructor(given = []) {
    const pairs = typeof given[Symbol.iterator] === 'function' ? given : Object.entries(given);
    for (const [name, value] of pairs) this.append(name, value);
  }

  append(name, value) {
    const before = this.get(name);
    this.set(name, before === null ? value : `${before}, ${value}`);
  }

  set(name, value) {
    this.#values.set(String(name).toLowerCase(), String(value).trim());
  }

  get(name) {
    return this.#values.get(String(name).toLowerCase()) ?? null;
  }

  has(name) {
    return this.#values.has(String(name).toLowerCase());
  }

  delete(name) {
    this.#values.delete(String(name).toLowerCase());
  }

  entries() {
    return [...this.#values].sort(([a], [b]) => (a < b ? -1 : 1))[Symbol.iterator]();
  }

  forEach(act) {
    for (const [name, value] of this) act(value, name, this);
  }

  [Symbol.iterator]() {
    return this.entries();
  }
}

/** A response. Its body is read on request, once. */
export class Response {
  #read;

  constructor({ status, headers, url, redirected, read }) {
    Object.assign(this, { status, headers, url, redirected, ok: status >= 200 && status < 300 });
    this.bodyUsed = false;
    this.#read = read;
  }

  async bytes() {
    if (this.bodyUsed) throw new TypeError('the body of a response can be read once');
    this.bodyUsed = true;
    return this.#read();
  }

  async arrayBuffer() {
    return (await this.bytes()).slice().buffer;
  }

  async text() {
    return decode(await this.bytes());
  }

  async json() {
    return JSON.parse(await this.text());
  }
}

/** Returns a `fetch` for these interfaces of `wasi:http`. */
export function client(types, handler) {
  return async function fetch(resource, options = {}) {
    let request = asked(resource, options);
    for (let redirects = 0; ; redirects += 1) {
      const response = once(types, handler, request, redirects > 0);
      const location = response.headers.get('location');
      const moved = [301, 302, 303, 307, 308].includes(response.status) && location !== null;
      if (!moved || options.redirect === 'manual') return response;
      if (options.redirect === 'error' || redirects === REDIRECTS) {
        throw new RequestError(`The request failed: it is redirected to ${location}.`);
      }
      request = redirected(request, response.status, location);
    }
  };
}

/** Returns the request that `fetch` was called with. */
function asked(resource, { method = 'GET', headers, body, timeout }) {
  const given = new Headers(headers);
  let bytes;
  if (typeof body === 'string') {
    bytes = encode(body);
    if (!given.has('content-type')) given.set('content-type', 'text/plain;charset=UTF-8');
  } else if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) {
    const { buffer = body, byteOffset = 0, byteLength } = body;
    bytes = new Uint8Array(buffer, byteOffset, byteLength);
  } else if (body !== undefined && body !== null) {
    throw new TypeError('the body of a request is a string, a typed array or an ArrayBuffer');
  }
  return { url: parse(String(resource)), method: method.toUpperCase(), headers: given, body: bytes, timeout };
}

function parse(url) {
  const parts = /^(https?):\/\/([^/?#]+)([^?#]*)(\?[^#]*)?/i.exec(url);
  if (parts === null) throw new TypeError(`a URL begins with https:// or http://, and not as ${url}`);
  const [, scheme, authority, path, query = ''] = parts;
  return { scheme: scheme.toLowerCase(), authority, path: path || '/', query };
}

const origin = ({ scheme, authority }) => `${scheme}://${authority}`;

/** Returns the request to the target of a redirect. */
function redirected(request, status, location) {
  const { url } = request;
  let target = location;
  if (location.startsWith('//')) target = `${url.scheme}:${location}`;
  else if (location.startsWith('/')) target = origin(url) + location;
  else if (location.startsWith('?')) target = origin(url) + url.path + location;
  else if (!/^[a-z][a-z0-9+.-]*:/i.test(location)) target = origin(url) + url.path.replace(/[^/]*$/, '') + location;
  const next = { ...request, url: parse(target), headers: new Headers(request.headers) };
  const changes = status === 303 ? request.method !== 'HEAD' : status <= 302 && request.method === 'POST';
  if (changes) {
    Object.assign(next, { method: 'GET', body: undefined });
    next.headers.delete('content-type');
  }
  if (origin(next.url) !== origin(url)) {
    for (const name of ['authorization', 'cookie', 'proxy-authorization']) next.headers.delete(name);
  }
  return next;
}

/** Sends one request, and waits for its response. */
function once(types, handler, { url, method, headers, body, timeout }, wasRedirected) {
  const fields = [...headers].map(([name, value]) => [name, encode(value)]);
  if (body !== undefined) fields.push(['content-length', encode(body.length)]);
  const known = method.toLowerCase();
  let future;
  try {
    const request = new types.OutgoingRequest(types.Fields.fromList(fields));
    request.setMethod(METHODS.includes(known) ? { tag: known } : { tag: 'other', val: method });
    request.setScheme({ tag: url.scheme.toUpperCase() });
    request.setAuthority(url.authority);
    request.setPathWithQuery(url.path + url.query);
    const outgoing = request.body();
    future = handler.handle(request, timeouts(types, timeout));
    send(types, outgoing, body);
  } catch (thrown) {
    throw failed(thrown);
  }
  const ready = future.subscribe();
  ready.block();
  drop(ready);
  const answer = future.get()?.val;
  drop(future);
  if (answer?.tag !== 'ok') throw failed(answer?.val);
  const response = answer.val;
  const fieldsReceived = response.headers();
  const pairs = fieldsReceived.entries().map(([name, value]) => [name, decode(value)]);
  drop(fieldsReceived);
  return new Response({
    status: response.status(),
    headers: new Headers(pairs),
    url: origin(url) + url.path + url.query,
    redirected: wasRedirected,
    read: () => received(types, response),
  });
}

/**
 * Releases a resource. The host ends the call if a resource is released before its
 * children, and the garbage collector does not preserve that order.
 */
function drop(resource) {
  resource[Symbol.dispose]?.();
}

function timeouts(types, milliseconds) {
  if (milliseconds === undefined) return null;
  const nanoseconds = Math.round(milliseconds * 1e6);
  const options = new types.RequestOptions();
  options.setConnectTimeout(nanoseconds);
  options.setFirstByteTimeout(nanoseconds);
  options.setBetweenBytesTimeout(nanoseconds);
  return options;
}

/** Writes the body. A server that does not need all of it has responded before its end. */
function send(types, outgoing, body = new Uint8Array()) {
  const stream = outgoing.write();
  try {
    for (let at = 0; at < body.length; at += WRITTEN) {
      stream.blockingWriteAndFlush(body.subarray(at, at + WRITTEN));
    }
  } catch {
    // The response, or its error, has more information.
    drop(stream);
    drop(outgoing);
    return;
  }
  drop(stream);
  types.OutgoingBody.finish(outgoing, null);
}

/** Reads the complete body of a response. */
function received(types, response) {
  const body = response.consume();
  const stream = body.stream();
  const pieces = [];
  let length = 0;
  try {
    for (;;) {
      const piece = stream.blockingRead(READ);
      pieces.push(piece);
      length += piece.length;
    }
  } catch (thrown) {
    const why = thrownCase(thrown);
    if (why?.tag !== 'closed') throw failed(reason(types, why));
  } finally {
    drop(stream);
    drop(body);
    drop(response);
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

/** Returns the reason why a stream failed. */
function reason(types, why) {
  if (why?.tag !== 'last-operation-failed') return why;
  return types.httpErrorCode(why.val) ?? { tag: 'internal-error', val: why.val.toDebugString() };
}

/** Returns the error for a value that the host threw. */
function failed(thrown) {
  const why = thrownCase(thrown);
  if (why?.tag === 'forbidden') {
    return new RequestError('The request cannot be sent: one of its headers is not allowed.');
  }
  if (typeof why?.tag !== 'string' || why.tag === 'invalid-syntax') {
    return new RequestError('The request cannot be sent: its URL, its method or a header is invalid.');
  }
  return new RequestError(words(why));
}
