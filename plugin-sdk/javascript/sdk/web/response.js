// `Response`.

import { encode } from '../utf8.js';
import { Body, bodyState } from './body.js';
import { Headers } from './headers.js';

const WITHOUT_BODY = [101, 103, 204, 205, 304];
const REDIRECTS = [301, 302, 303, 307, 308];

// What only the host or a static function sets.
const INTERNAL = Symbol('internal');

export class Response extends Body {
  #fields;

  constructor(body, init = {}, internal = undefined) {
    const options = init ?? {};
    const fields = internal?.[INTERNAL];
    const status = Number(options.status ?? 200);
    if (fields === undefined && !(Number.isInteger(status) && status >= 200 && status <= 599)) {
      throw new RangeError(`the status of a response is from 200 to 599, not ${options.status}`);
    }
    const statusText = String(options.statusText ?? '');
    if (/[^\t\x20-\x7e\x80-\xff]/.test(statusText)) throw new TypeError('the text of a status has no line break and no character beyond U+00FF');
    if (fields === undefined && body !== null && body !== undefined && WITHOUT_BODY.includes(status)) {
      throw new TypeError(`a response with the status ${status} has no body`);
    }
    const headers = new Headers(options.headers);
    super(body, headers);
    this.#fields = { status, statusText, headers, url: '', redirected: false, type: 'default', ...fields };
  }

  static error() {
    return new Response(null, { status: 0 }, { [INTERNAL]: { type: 'error' } });
  }

  static json(data, init = {}) {
    const text = JSON.stringify(data);
    if (text === undefined) throw new TypeError('the data of a response has no form in JSON');
    const headers = new Headers(init?.headers);
    if (!headers.has('content-type')) headers.set('content-type', 'application/json');
    return new Response(encode(text), { ...init, headers });
  }

  static redirect(url, status = 302) {
    if (!REDIRECTS.includes(status)) throw new RangeError(`the status of a redirect is one of ${REDIRECTS.join(', ')}, not ${status}`);
    return new Response(null, { status, headers: { location: String(url) } });
  }

  get status() {
    return this.#fields.status;
  }

  get ok() {
    return this.status >= 200 && this.status <= 299;
  }

  get statusText() {
    return this.#fields.statusText;
  }

  get headers() {
    return this.#fields.headers;
  }

  get url() {
    return this.#fields.url;
  }

  get redirected() {
    return this.#fields.redirected;
  }

  get type() {
    return this.#fields.type;
  }

  clone() {
    const body = bodyState.cloned(this);
    const { status, statusText, headers, url, redirected, type } = this.#fields;
    return new Response(body, { status, statusText, headers }, { [INTERNAL]: { url, redirected, type } });
  }

  get [Symbol.toStringTag]() {
    return 'Response';
  }
}

/** Returns the response that the host received. WASI has no text of the status. */
export function received({ status, headers, source, url, redirected }) {
  const body = WITHOUT_BODY.includes(status) ? null : { source };
  if (body === null) source.cancel();
  return new Response(body, { status, headers }, { [INTERNAL]: { url, redirected, type: 'basic' } });
}
