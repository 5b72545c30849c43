// `fetch` with `wasi:http`. Its requests and their bodies are events of the event loop, so that
// several requests run at the same time.

import { RequestError, thrownCase } from './failure.js';
import { hold, isRunning, waitFor } from './loop.js';
import { bodyState } from './web/body.js';
import { Headers } from './web/headers.js';
import { Request } from './web/request.js';
import { received } from './web/response.js';

/** The maximum number of redirects, as in browsers. */
const REDIRECTS = 20;

/** The number of bytes that are read at once. */
const READ = 65_536;

/** Headers that the host sets. As in browsers, those of a request are ignored. */
const IGNORED = ['accept-encoding', 'connection', 'content-length', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade'];

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


/** Returns a `fetch` for these interfaces of `wasi:http`. */
export function client(types, handler) {
  return async function fetch(resource, options) {
    if (!isRunning()) throw new Error('requests are for handlers: at the top level, the plugin is being built');
    const given = new Request(resource, options);
    const { method, headers, redirect, timeout, signal } = given;
    const body = bodyState.isNull(given) ? undefined : bodyState.take(given);
    let request = { url: parse(given.url), method, headers, body: body?.source ? given.body : body, timeout };
    for (let redirects = 0; ; redirects += 1) {
      signal.throwIfAborted();
      const { status, headers: answered, source } = await new Exchange(types, signal).send(handler, request);
      const location = answered.get('location');
      const moved = [301, 302, 303, 307, 308].includes(status) && location !== null;
      if (!moved || redirect === 'manual') {
        const url = origin(request.url) + request.url.path + request.url.query;
        if (method === 'HEAD') await source.cancel();
        return received({ status, headers: answered, source, url, redirected: redirects > 0 });
      }
      await source.cancel();
      if (redirect === 'error' || redirects === REDIRECTS) {
        throw new RequestError(`The request failed: it is redirected to ${location}.`);
      }
      request = redirected(request, status, location);
    }
  };
}

/** Returns the parts of a URL, without its fragment, and with characters that it cannot contain encoded. */
function parse(url) {
  const parts = /^(https?):\/\/([^/?#\\]+)([^?#]*)(\?[^#]*)?/i.exec(url);
  if (parts === null) throw new TypeError(`a URL begins with https:// or http://, and not as ${url.slice(0, 100)}`);
  const [, given, authority, path, query = ''] = parts;
  const scheme = given.toLowerCase();
  const standard = { http: /:(80)?$/, https: /:(443)?$/ }[scheme];
  return {
    scheme,
    authority: authority.toLowerCase().replace(standard, ''),
    path: encoded(withoutDots(path.replaceAll('\\', '/')), /[^\x21-\x7e]|["<>`{}]/gu),
    query: encoded(query, /[^\x21-\x7e]|["<>]/gu),
  };
}

const encoded = (text, characters) => text.toWellFormed().replace(characters, encodeURIComponent);

/** Removes the segments `.` and `..` of a path, as every URL parser does. */
function withoutDots(path) {
  const segments = path.split('/').slice(1);
  const kept = [];
  for (const [index, segment] of segments.entries()) {
    const isLast = index === segments.length - 1;
    const dots = segment.replace(/%2e/gi, '.');
    if (dots === '..') kept.pop();
    if (dots !== '.' && dots !== '..') kept.push(segment);
    else if (isLast) kept.push('');
  }
  return `/${kept.join('/')}`;
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
  const isStream = request.body !== undefined && !(request.body instanceof Uint8Array);
  if (isStream && status !== 303) throw new RequestError(`The request failed: it is redirected to ${location}, and its body is a stream that was sent already.`);
  if (changes) {
    Object.assign(next, { method: 'GET', body: undefined });
    for (const name of ['content-encoding', 'content-language', 'content-location', 'content-type']) next.headers.delete(name);
  }
  if (origin(next.url) !== origin(url)) {
    for (const name of ['authorization', 'cookie', 'proxy-authorization']) next.headers.delete(name);
  }
  return next;
}

/** The bytes of a header: characters up to U+00FF. */
const toBytes = (value) => Uint8Array.from(value, (character) => character.charCodeAt(0));
const fromBytes = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');

/** One request and its response, and the host's resources for both. */
class Exchange {
  #types;
  #signal;
  #abort = () => this.#end(this.#signal.reason);
  /** The reason why nothing can be read any more. */
  #ended;
  #waits = new Set();
  /** The resources that are open. A child is released before its parent. */
  #open = [];
  #release = () => {};

  constructor(types, signal) {
    this.#types = types;
    this.#signal = signal;
  }

  /** Sends the request, and returns the response's status, headers and source of the body. */
  async send(handler, { url, method, headers, body, timeout }) {
    const types = this.#types;
    const fields = [...headers].filter(([name]) => !IGNORED.includes(name)).map(([name, value]) => [name, toBytes(value)]);
    const length = body === undefined && ['POST', 'PUT'].includes(method) ? 0 : body?.length;
    if (length !== undefined) fields.push(['content-length', toBytes(String(length))]);
    const known = method.toLowerCase();
    let future;
    try {
      const request = new types.OutgoingRequest(types.Fields.fromList(fields));
      request.setMethod(METHODS.includes(known) ? { tag: known } : { tag: 'other', val: method });
      request.setScheme({ tag: url.scheme.toUpperCase() });
      request.setAuthority(url.authority);
      request.setPathWithQuery(url.path + url.query);
      const outgoing = this.#keep(request.body());
      future = this.#keep(handler.handle(request, timeouts(types, timeout)));
      this.#release = hold(() => this.#end(new RequestError('The request was not finished when the handler was.')));
      this.#signal.addEventListener('abort', this.#abort);
      this.#upload(outgoing, body);
    } catch (thrown) {
      const error = failed(thrown);
      this.#end(error);
      throw error;
    }
    await this.#ready(future);
    const answer = future.get()?.val;
    this.#drop(future);
    if (answer?.tag !== 'ok') {
      const error = failed(answer?.val);
      this.#end(error);
      throw error;
    }
    return this.#received(this.#keep(answer.val));
  }

  #received(response) {
    const fields = response.headers();
    const pairs = fields.entries().map(([name, value]) => [name, fromBytes(value)]);
    drop(fields);
    // Until its body is read, the garbage collector may release a response that nobody uses.
    this.#release();
    let stream;
    const read = async () => {
      if (stream === undefined && this.#ended === undefined) {
        this.#release = hold(() => this.#end(new RequestError('The response was not read when the handler was finished.')));
        stream = this.#keep(this.#keep(response.consume()).stream());
      }
      return this.#read(stream);
    };
    const cancel = async () => this.#end(new TypeError('the body was cancelled'));
    return { status: response.status(), headers: new Headers(pairs), source: { read, cancel } };
  }

  /** Returns the next bytes, or `undefined` at the end. */
  async #read(stream) {
    for (;;) {
      if (this.#ended !== undefined) throw this.#ended;
      try {
        const piece = stream.read(READ);
        if (piece.length > 0) return piece;
      } catch (thrown) {
        const why = thrownCase(thrown);
        const error = why?.tag === 'closed' ? new TypeError('the body is at its end') : failed(reason(this.#types, why));
        this.#end(error);
        if (why?.tag === 'closed') return undefined;
        throw error;
      }
      await this.#ready(stream);
    }
  }

  /** Sends the body. A server that does not need all of it has responded before its end. */
  async #upload(outgoing, body) {
    const stream = this.#keep(outgoing.write());
    try {
      if (body instanceof Uint8Array) await this.#write(stream, body);
      else if (body !== undefined) await this.#pipe(stream, body);
      stream.flush();
      await this.#writable(stream);
    } catch (error) {
      // The response, or its error, has more information than a failed write.
      if (thrownCase(error) !== error || error?.tag !== undefined) this.#drop(stream, outgoing);
      else this.#end(error);
      return;
    }
    this.#drop(stream);
    this.#open = this.#open.filter((one) => one !== outgoing);
    try {
      this.#types.OutgoingBody.finish(outgoing, null);
    } catch {
      // As above.
    }
  }

  /** Sends the pieces of a ReadableStream. */
  async #pipe(stream, body) {
    const reader = body.getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        if (this.#ended !== undefined) throw this.#ended;
        if (!(value instanceof Uint8Array)) {
          throw new TypeError(`the stream of a body has pieces of the type Uint8Array, not ${typeof value}`);
        }
        await this.#write(stream, value);
      }
    } catch (error) {
      reader.cancel(error).catch(() => {});
      throw error;
    }
  }

  async #write(stream, bytes) {
    for (let at = 0; at < bytes.length; ) {
      const permitted = await this.#writable(stream);
      stream.write(bytes.subarray(at, at + permitted));
      at += permitted;
    }
  }

  /** Returns how many bytes the stream accepts, which is at least one. */
  async #writable(stream) {
    for (;;) {
      if (this.#ended !== undefined) throw this.#ended;
      const permitted = Number(stream.checkWrite());
      if (permitted > 0) return permitted;
      await this.#ready(stream);
    }
  }

  /** Waits for a stream or a future. */
  #ready(resource) {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => {
      const done = (settle) => () => {
        this.#waits.delete(cancel);
        settle(this.#ended);
      };
      const cancel = waitFor(resource.subscribe(), done(resolve), done(reject));
      this.#waits.add(cancel);
    });
  }

  #keep(resource) {
    this.#open.unshift(resource);
    return resource;
  }

  #drop(...resources) {
    for (const resource of resources) {
      if (!this.#open.includes(resource)) continue;
      this.#open = this.#open.filter((one) => one !== resource);
      drop(resource);
    }
  }

  /** Releases everything. What still waits fails with this reason. */
  #end(why) {
    if (this.#ended !== undefined) return;
    this.#ended = why ?? new TypeError('aborted');
    this.#signal.removeEventListener('abort', this.#abort);
    this.#release();
    for (const cancel of [...this.#waits]) cancel();
    this.#drop(...this.#open);
  }
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
