import assert from 'node:assert/strict';
import { test } from 'node:test';
import { client } from '../sdk/http.js';
import { failure } from '../sdk/failure.js';
import { endLoop, startLoop, turn, usePoll } from '../sdk/loop.js';
import { AbortController } from '../sdk/web/abort.js';
import { FormData } from '../sdk/web/form-data.js';
import { File } from '../sdk/web/blob.js';
import { ReadableStream } from '../sdk/web/streams.js';

// The events of the host below: all have happened, except for those with `pending`.
usePoll({
  poll(pollables) {
    const ready = pollables.flatMap(({ pending }, index) => (pending ? [] : [index]));
    assert.ok(ready.length > 0, 'the call would hang');
    return ready;
  },
});
startLoop();

/** Runs the event loop next to that of Node until the promise settles. */
async function run(promise) {
  let settled = false;
  promise.then(() => (settled = true), () => (settled = true));
  while (!settled) {
    await new Promise((resolve) => setImmediate(resolve));
    if (!settled) turn();
  }
  return promise;
}

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
      this.sent = { headers: Object.fromEntries(fields.map(([name, value]) => [name, Buffer.from(value).toString('latin1')])), body: '' };
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
      const pieces = [];
      let permitted = 0;
      const members = {
        // The host accepts nothing until it was waited for.
        checkWrite: () => permitted,
        write: (piece) => {
          assert.ok(piece.length <= permitted);
          permitted = 0;
          pieces.push(Buffer.from(piece));
          this.sent.body = Buffer.concat(pieces).toString();
        },
        flush: () => (permitted = 0),
        subscribe: () => {
          permitted = 4096;
          return resource({});
        },
      };
      return resource({ write: () => resource(members) });
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
    OutgoingBody: { finish: (body) => body[Symbol.dispose]() },
    OutgoingRequest,
    RequestOptions,
    httpErrorCode: () => ({ tag: 'HTTP-response-incomplete' }),
  };
  const response = ({ status = 200, headers = [], pieces = [], hangs = false }) => {
    const left = pieces.flatMap((piece) => [new Uint8Array(), piece]);
    const read = () => {
      const piece = left.shift();
      if (piece instanceof Uint8Array) return piece;
      // The form in which the engine throws a case of a variant.
      throw Object.assign(new Error('[object Object]'), { payload: piece ?? { tag: 'closed' } });
    };
    return resource({
      status: () => status,
      headers: () => resource({ entries: () => headers.map(([name, value]) => [name, Buffer.from(value, 'latin1')]) }),
      consume: () => resource({ stream: () => resource({ read, subscribe: () => resource({ pending: hangs }) }) }),
    });
  };
  const handler = {
    handle({ sent: request }, options) {
      sent.push({ ...request, timeout: options?.nanoseconds });
      const answer = answers.shift();
      if (answer.refused) throw Object.assign(new Error('[object Object]'), { payload: answer.refused });
      const val = () => (answer.failed ? { tag: 'err', val: answer.failed } : { tag: 'ok', val: response(answer) });
      // The body is written after this.
      sent[sent.length - 1] = Object.assign(request, { timeout: options?.nanoseconds });
      return resource({ subscribe: () => resource({ pending: answer.never }), get: () => ({ tag: 'ok', val: val() }) });
    },
  };
  const fetch = client(types, handler);
  return { fetch: (...given) => run(fetch(...given)), start: fetch, sent, alive };
}

const bytes = (text) => new Uint8Array(Buffer.from(text));

test('sends a request and reads the response', async () => {
  const { fetch, sent, alive } = host({ status: 201, headers: [['X-A', '1'], ['x-a', 'ü']], pieces: [bytes('{"a"'), bytes(':"é"}')] });
  const response = await fetch('HTTPS://example.com/a?b=c#d', {
    method: 'post',
    headers: { Accept: 'text/plain' },
    body: 'é'.repeat(4000),
    timeout: 5_000,
  });
  assert.deepEqual([response.status, response.ok, response.url], [201, true, 'https://example.com/a?b=c']);
  assert.equal(response.headers.get('X-a'), '1, ü');
  assert.deepEqual(await run(response.json()), { a: 'é' });
  await assert.rejects(response.text(), /read once/);
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
  assert.deepEqual([await run(response.text()), response.redirected, response.url], ['there', true, 'http://other.example/d']);
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
    const error = await host(answer).fetch('http://example.com').then((response) => run(response.text())).catch((thrown) => thrown);
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
  await assert.rejects(fetch('http://example.com', { method: 'POST', body: {} }), /JSON.stringify/);
});

test('requests overlap, and are answered in any order', async () => {
  const { start, sent } = host({ never: true }, { pieces: [bytes('two')] });
  let first;
  start('http://example.com/1').then((response) => (first = response), (error) => (first = error));
  const second = await run(start('http://example.com/2'));
  assert.equal(await run(second.text()), 'two');
  assert.equal(sent.length, 2);
  assert.equal(first, undefined);
  endLoop();
  await new Promise((resolve) => setImmediate(resolve));
  assert.match(first.message, /not finished/);
});

test('a signal ends a request, and gives everything back', async () => {
  const aborted = new AbortController();
  const { start, alive } = host({ never: true });
  const promise = start('http://example.com', { method: 'POST', body: 'x'.repeat(10_000), signal: aborted.signal });
  aborted.abort(new Error('enough'));
  await assert.rejects(promise, { message: 'enough' });
  assert.equal(alive.size, 0);
  const none = host();
  await assert.rejects(none.start('http://example.com', { signal: aborted.signal }), { message: 'enough' });
});

test('a signal ends the body of a response', async () => {
  const aborted = new AbortController();
  const { fetch, alive } = host({ pieces: [bytes('a')], hangs: true });
  const response = await fetch('http://example.com', { signal: aborted.signal });
  const text = response.text();
  aborted.abort();
  await assert.rejects(text, { name: 'AbortError' });
  assert.equal(alive.size, 0);
});

test('a body is a stream in pieces, and can be cancelled', async () => {
  const { fetch, alive } = host({ pieces: [bytes('a'), bytes('b')] }, { pieces: [bytes('a'), bytes('b')] });
  const response = await fetch('http://example.com');
  assert.equal(response.bodyUsed, false);
  const reader = response.body.getReader();
  assert.deepEqual((await run(reader.read())).value, bytes('a'));
  assert.equal(response.bodyUsed, true);
  assert.deepEqual((await run(reader.read())).value, bytes('b'));
  assert.equal((await run(reader.read())).done, true);
  const other = (await fetch('http://example.com')).body.getReader();
  await run(other.read());
  await run(other.cancel());
  assert.equal(alive.size, 0);
});

test('a clone has the same body', async () => {
  const { fetch } = host({ pieces: [bytes('a'), bytes('b')] });
  const response = await fetch('http://example.com');
  const other = response.clone();
  assert.deepEqual([await run(response.text()), await run(other.text())], ['ab', 'ab']);
});

test('sends a form, and the pieces of a stream', async () => {
  const { fetch, sent } = host({}, {});
  const form = new FormData();
  form.append('a"', 'b\n');
  form.append('file', new File(['c'], 'd.txt', { type: 'text/x' }));
  await fetch('http://example.com', { method: 'POST', body: form });
  const boundary = /boundary=(.*)/.exec(sent[0].headers['content-type'])[1];
  assert.equal(sent[0].body, [
    `--${boundary}`, 'Content-Disposition: form-data; name="a%22"', '', 'b\r\n',
    `--${boundary}`, 'Content-Disposition: form-data; name="file"; filename="d.txt"', 'Content-Type: text/x', '', 'c',
    `--${boundary}--`, '',
  ].join('\r\n'));
  const body = ReadableStream.from([bytes('x'.repeat(5000)), bytes('y')]);
  await fetch('http://example.com', { method: 'POST', body, duplex: 'half' });
  assert.equal(sent[1].headers['content-length'], undefined);
});

test('a stream that fails or has no bytes ends the request', async () => {
  for (const [body, words] of [
    [ReadableStream.from(['text']), /Uint8Array/],
    [new ReadableStream({ start: (controller) => controller.error(new Error('broken')) }), /broken/],
  ]) {
    const { fetch, alive } = host({ never: true });
    await assert.rejects(fetch('http://example.com', { method: 'POST', body }), words);
    assert.equal(alive.size, 0);
  }
});

test('a URL is sent as a URL parser writes it', async () => {
  const { fetch, sent } = host({}, {});
  await fetch(' http://EXAMPLE.com:80/a/./b/../ü c?d=é&e="#f');
  assert.deepEqual([sent[0].authority, sent[0].path], ['example.com', '/a/%C3%BC%20c?d=%C3%A9&e=%22']);
  await assert.rejects(fetch('http://user:word@example.com'), /user name/);
});

test('a compressed body is not text', async () => {
  const compressed = { headers: [['content-encoding', 'gzip']], pieces: [bytes('\x1f')] };
  const { fetch } = host(compressed, compressed);
  await assert.rejects(run((await fetch('http://example.com')).text()), /compressed body \(gzip\)/);
  assert.deepEqual(await run((await fetch('http://example.com')).bytes()), bytes('\x1f'));
});
