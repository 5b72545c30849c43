import assert from 'node:assert/strict';
import { test } from 'node:test';
import { client, Headers } from '../sdk/http.js';
import { failure } from '../sdk/failure.js';

/** Returns the host's interfaces of `wasi:http`, with these responses, and the requests that were sent. */
function host(...answers) {
  const sent = [];
  const alive = new Set();
  const resource = (members) => {
    const made = { ...members, [Symbol.dispose]: () => alive.delete(made) };
    alive.add(made);
    return made;
  };
  class OutgoingRequest {
    constructor(fields) {
      this.sent = { headers: Object.fromEntries(fields.map(([name, value]) => [name, Buffer.from(value).toString()])), body: '' };
    }
    setMethod(method) {
      this.sent.method = method.val ?? method.tag;
    }
    setScheme({ tag }) {
      this.sent.scheme = tag;
    }
    setAuthority(authority) {
      this.sent.authority = authority;
    }
    setPathWithQuery(path) {
      this.sent.path = path;
    }
    body() {
      const blockingWriteAndFlush = (piece) => {
        assert.ok(piece.length <= 4096);
        this.sent.body += Buffer.from(piece).toString();
      };
      return { write: () => resource({ blockingWriteAndFlush }) };
    }
  }
  class RequestOptions {
    setConnectTimeout(nanoseconds) {
      this.nanoseconds = nanoseconds;
    }
    setFirstByteTimeout() {}
    setBetweenBytesTimeout() {}
  }
  const types = {
    Fields: { fromList: (fields) => fields },
    OutgoingBody: { finish() {} },
    OutgoingRequest,
    RequestOptions,
    httpErrorCode: () => ({ tag: 'HTTP-response-incomplete' }),
  };
  const response = ({ status = 200, headers = [], pieces = [] }) => {
    const left = [...pieces];
    const blockingRead = () => {
      const piece = left.shift();
      if (piece instanceof Uint8Array) return piece;
      // The form in which the engine throws a case of a variant.
      throw Object.assign(new Error('[object Object]'), { payload: piece ?? { tag: 'closed' } });
    };
    return resource({
      status: () => status,
      headers: () => resource({ entries: () => headers.map(([name, value]) => [name, Buffer.from(value)]) }),
      consume: () => resource({ stream: () => resource({ blockingRead }) }),
    });
  };
  const handler = {
    handle({ sent: request }, options) {
      sent.push({ ...request, timeout: options?.nanoseconds });
      const answer = answers.shift();
      if (answer.refused) throw Object.assign(new Error('[object Object]'), { payload: answer.refused });
      const val = answer.failed ? { tag: 'err', val: answer.failed } : { tag: 'ok', val: response(answer) };
      // The body is written after this.
      sent[sent.length - 1] = Object.assign(request, { timeout: options?.nanoseconds });
      return resource({ subscribe: () => resource({ block() {} }), get: () => ({ tag: 'ok', val }) });
    },
  };
  return { fetch: client(types, handler), sent, alive };
}

const bytes = (text) => new Uint8Array(Buffer.from(text));

test('sends a request and reads the response', async () => {
  const { fetch, sent, alive } = host({ status: 201, headers: [['X-A', '1'], ['x-a', '2']], pieces: [bytes('{"a"'), bytes(':"é"}')] });
  const response = await fetch('HTTPS://example.com/a?b=c#d', {
    method: 'post',
    headers: { Accept: 'text/plain' },
    body: 'é'.repeat(4000),
    timeout: 5_000,
  });
  assert.deepEqual([response.status, response.ok, response.url], [201, true, 'https://example.com/a?b=c']);
  assert.equal(response.headers.get('X-a'), '1, 2');
  assert.deepEqual(await response.json(), { a: 'é' });
  await assert.rejects(response.text(), /can be read once/);
  const [{ headers, ...request }] = sent;
  assert.deepEqual(request, {
    method: 'post', scheme: 'HTTPS', authority: 'example.com', path: '/a?b=c', body: 'é'.repeat(4000), timeout: 5e9,
  });
  assert.deepEqual(headers, { accept: 'text/plain', 'content-type': 'text/plain;charset=UTF-8', 'content-length': '8000' });
  assert.equal(alive.size, 0, 'every resource is given back');
});

test('follows redirects without what only the first server may see', async () => {
  const moved = (status, location) => ({ status, headers: [['location', location]] });
  const { fetch, sent } = host(moved(307, 'b?c'), moved(303, '//other.example/d'), { pieces: [bytes('there')] });
  const options = { method: 'PUT', body: 'x', headers: { authorization: 'secret', 'x-own': '1' } };
  const response = await fetch('http://example.com/a/a', options);
  assert.deepEqual([await response.text(), response.redirected, response.url], ['there', true, 'http://other.example/d']);
  const heads = sent.map(({ method, authority, path, body }) => `${method} ${authority}${path} ${body}`);
  assert.deepEqual(heads, ['put example.com/a/a x', 'put example.com/a/b?c x', 'get other.example/d ']);
  assert.equal(sent[1].headers.authorization, 'secret');
  assert.deepEqual(sent[2].headers, { 'x-own': '1' });
  const manual = host(moved(302, '/b'));
  assert.equal((await manual.fetch('http://example.com', { redirect: 'manual' })).status, 302);
  const endless = host(...Array(30).fill(moved(302, '/')));
  await assert.rejects(endless.fetch('http://example.com'), /redirected/);
  assert.equal(endless.sent.length, 21);
});

test('says why there is no response', async () => {
  const rejects = async (answer, words) => {
    const error = await host(answer).fetch('http://example.com').then((response) => response.text()).catch((thrown) => thrown);
    assert.ok(error instanceof TypeError);
    assert.deepEqual(failure(error), { tag: 'failed', val: words });
  };
  await rejects({ refused: { tag: 'HTTP-request-denied' } }, 'The request is denied.');
  await rejects({ failed: { tag: 'DNS-error', val: {} } }, 'The server cannot be found.');
  await rejects({ failed: { tag: 'internal-error', val: 'too much' } }, 'The request failed: too much.');
  await rejects({ failed: { tag: 'loop-detected' } }, 'The request failed: loop detected.');
  const cut = { pieces: [bytes('a'), { tag: 'last-operation-failed', val: {} }] };
  await rejects(cut, 'The connection to the server failed.');
});

test('what is no request fails before it is sent', async () => {
  const { fetch } = host();
  await assert.rejects(fetch('ftp://example.com'), /begins with https:\/\//);
  await assert.rejects(fetch('http://example.com', { body: {} }), /the body of a request is/);
});

test('headers are found in any case', () => {
  const headers = new Headers([['B', ' 2 '], ['a', '1']]);
  headers.append('b', '3');
  assert.deepEqual([...headers], [['a', '1'], ['b', '2, 3']]);
  headers.delete('A');
  assert.deepEqual([headers.has('a'), headers.get('a')], [false, null]);
});
