// `Request`.

import { AbortSignal } from './abort.js';
import { Body, bodyState } from './body.js';
import { Headers } from './headers.js';

const NORMALIZED = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH'];
const FORBIDDEN = ['CONNECT', 'TRACE', 'TRACK'];

function methodOf(method) {
  const text = String(method);
  if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(text)) throw new TypeError(`the method of a request is not valid: ${JSON.stringify(text)}`);
  const upper = text.toUpperCase();
  if (FORBIDDEN.includes(upper)) throw new TypeError(`fetch does not send the method ${upper}`);
  return NORMALIZED.includes(upper) ? upper : text;
}

function choice(name, value, choices) {
  if (!choices.includes(value)) throw new TypeError(`${name} of a request is one of ${choices.join(', ')}, not ${value}`);
  return value;
}

function timeoutOf(timeout) {
  if (timeout === undefined || timeout === null) return undefined;
  if (!(Number(timeout) > 0 && Number(timeout) < Infinity)) throw new TypeError(`the timeout of a request is a number of milliseconds, not ${timeout}`);
  return Number(timeout);
}

/** Returns the absolute URL with the scheme `http` or `https`. */
function urlOf(input) {
  const url = String(input).replace(/^[\0-\x20]+|[\0-\x20]+$/g, '').replace(/[\t\n\r]/g, '');
  if (!/^https?:\/\/[^/?#]/i.test(url)) throw new TypeError(`a URL begins with https:// or http://, and not as ${url.slice(0, 100)}`);
  if (/^\w+:\/\/[^/?#]*@/.test(url)) throw new TypeError('the URL of a request does not contain a user name or a password: send them in a header');
  return url;
}

export class Request extends Body {
  #fields;

  constructor(input, init = {}) {
    const options = init ?? {};
    const given = input instanceof Request ? input : undefined;
    const headers = new Headers(options.headers ?? given?.headers);
    const method = methodOf(options.method ?? given?.method ?? 'GET');
    const url = given?.url ?? urlOf(input);
    const own = options.body !== undefined && options.body !== null;
    if ((own || (given !== undefined && given.body !== null)) && ['GET', 'HEAD'].includes(method)) {
      throw new TypeError(`a request with the method ${method} has no body`);
    }
    const signal = options.signal === undefined ? given?.signal : options.signal;
    if (signal !== undefined && signal !== null && typeof signal.aborted !== 'boolean') {
      throw new TypeError('the signal of a request is an AbortSignal');
    }
    const redirect = choice('redirect', options.redirect ?? given?.redirect ?? 'follow', ['follow', 'manual', 'error']);
    const timeout = timeoutOf(options.timeout ?? given?.timeout);
    super(own ? options.body : given && bodyState.take(given), headers);
    this.#fields = {
      ...{ method, url, headers, redirect, timeout },
      signal: signal ?? undefined,
      cache: String(options.cache ?? given?.cache ?? 'default'),
      credentials: String(options.credentials ?? given?.credentials ?? 'same-origin'),
      integrity: String(options.integrity ?? given?.integrity ?? ''),
      keepalive: Boolean(options.keepalive ?? given?.keepalive),
      mode: String(options.mode ?? given?.mode ?? 'cors'),
      referrer: String(options.referrer ?? given?.referrer ?? 'about:client'),
      referrerPolicy: String(options.referrerPolicy ?? given?.referrerPolicy ?? ''),
    };
  }

  get method() {
    return this.#fields.method;
  }

  get url() {
    return this.#fields.url;
  }

  get headers() {
    return this.#fields.headers;
  }

  get redirect() {
    return this.#fields.redirect;
  }

  get signal() {
    this.#fields.signal ??= AbortSignal.any([]);
    return this.#fields.signal;
  }

  /** The SDK's own option: the timeout in milliseconds, or `undefined`. */
  get timeout() {
    return this.#fields.timeout;
  }

  get cache() {
    return this.#fields.cache;
  }

  get credentials() {
    return this.#fields.credentials;
  }

  get destination() {
    return '';
  }

  get duplex() {
    return 'half';
  }

  get integrity() {
    return this.#fields.integrity;
  }

  get keepalive() {
    return this.#fields.keepalive;
  }

  get mode() {
    return this.#fields.mode;
  }

  get referrer() {
    return this.#fields.referrer;
  }

  get referrerPolicy() {
    return this.#fields.referrerPolicy;
  }

  clone() {
    const body = bodyState.cloned(this);
    const { method, url, headers, redirect, timeout, signal, ...rest } = this.#fields;
    return new Request(url, { method, headers, redirect, timeout, signal, ...rest, body });
  }

  get [Symbol.toStringTag]() {
    return 'Request';
  }
}
