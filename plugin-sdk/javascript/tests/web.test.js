import assert from 'node:assert/strict';
import { test } from 'node:test';
import { streamOf, sourceOf, useStreams } from '../sdk/web/body-stream.js';
import * as globals from '../sdk/web/globals.js';
import * as streams from '../sdk/web/stream-globals.js';
import { AbortSignal } from '../sdk/web/abort.js';
import { parseForm } from '../sdk/web/form-data.js';

const own = { ...globals, ...streams };

// The same checks with the classes of Node, which are the reference.
const node = { Blob, CustomEvent, DOMException, Event, EventTarget, File: own.File, FormData, Headers, Request, Response };
const both = (name, check) => {
  for (const [whose, classes] of [['the SDK', { ...own, AbortSignal }], ['Node', { ...node, AbortController, AbortSignal: globalThis.AbortSignal }]]) {
    test(`${name}: ${whose}`, () => check(classes));
  }
};

both('headers', ({ Headers }) => {
  const headers = new Headers([['B', ' 2 '], ['a', '1']]);
  headers.append('b', '3');
  headers.append('Set-Cookie', 'x=1');
  headers.append('set-cookie', 'y=2');
  assert.deepEqual([...headers], [['a', '1'], ['b', '2, 3'], ['set-cookie', 'x=1'], ['set-cookie', 'y=2']]);
  assert.deepEqual(headers.getSetCookie(), ['x=1', 'y=2']);
  headers.delete('A');
  assert.deepEqual([headers.has('a'), headers.get('a'), headers.get('B')], [false, null, '2, 3']);
  assert.deepEqual([...new Headers({ x: 1, Y: 'z' }).keys()], ['x', 'y']);
  assert.deepEqual([...new Headers(headers).values()], ['2, 3', 'x=1', 'y=2']);
  for (const given of [[['a']], { 'a b': '1' }, { a: '1\n2' }, { a: '\u{1f600}' }, null, 'a']) assert.throws(() => new Headers(given), TypeError);
});

both('events', ({ Event, EventTarget, CustomEvent }) => {
  const target = new EventTarget();
  const seen = [];
  const listener = { handleEvent: (event) => seen.push(event.detail) };
  target.addEventListener('a', listener);
  target.addEventListener('a', listener);
  target.addEventListener('a', (event) => event.preventDefault(), { once: true });
  assert.equal(target.dispatchEvent(new CustomEvent('a', { detail: 1, cancelable: true })), false);
  assert.equal(target.dispatchEvent(new CustomEvent('a', { detail: 2, cancelable: true })), true);
  target.removeEventListener('a', listener);
  target.dispatchEvent(new CustomEvent('a', { detail: 3 }));
  assert.deepEqual(seen, [1, 2]);
  target.addEventListener('b', (event) => event.stopImmediatePropagation());
  target.addEventListener('b', () => assert.fail('stopped'));
  target.dispatchEvent(new Event('b'));
  const event = new Event('c');
  let recursion;
  target.addEventListener('c', () => {
    try {
      target.dispatchEvent(event);
    } catch (error) {
      recursion = error;
    }
  });
  target.dispatchEvent(event);
  assert.ok(recursion instanceof Error);
});

both('signals', ({ AbortController, AbortSignal, DOMException }) => {
  const controller = new AbortController();
  const any = AbortSignal.any([controller.signal, new AbortController().signal]);
  const seen = [];
  any.onabort = (event) => seen.push(event.type);
  any.addEventListener('abort', () => seen.push('listener'));
  any.throwIfAborted();
  controller.abort();
  controller.abort(new Error('later'));
  assert.deepEqual(seen, ['abort', 'listener']);
  assert.ok(any.reason instanceof DOMException);
  assert.deepEqual([any.aborted, any.reason, any.reason.name, any.reason.code], [true, controller.signal.reason, 'AbortError', 20]);
  assert.equal(AbortSignal.abort('why').reason, 'why');
  assert.equal(AbortSignal.any([AbortSignal.abort(1)]).reason, 1);
  assert.throws(() => controller.signal.throwIfAborted(), { name: 'AbortError' });
  assert.throws(() => new AbortSignal(), TypeError);
});

for (const [whose, { Blob, FormData, Headers, Request, Response }] of [['the SDK', own], ['Node', node]]) {
  test(`bodies: ${whose}`, async () => {
    const response = new Response('é', { status: 201, statusText: 'Made', headers: { a: '1' } });
    const copy = response.clone();
    assert.deepEqual([response.status, response.statusText, response.ok, response.type, response.headers.get('content-type')], [201, 'Made', true, 'default', 'text/plain;charset=UTF-8']);
    assert.equal(await response.text(), 'é');
    assert.deepEqual([response.bodyUsed, copy.bodyUsed], [true, false]);
    await assert.rejects(response.text(), TypeError);
    assert.deepEqual(new Uint8Array(await copy.arrayBuffer()), new Uint8Array([0xc3, 0xa9]));
    const blob = await new Response(new Blob(['a', new Uint8Array([98]), new Blob(['c'])], { type: 'X/Y' })).blob();
    assert.deepEqual([blob.size, blob.type, await blob.text(), await blob.slice(-2, -1).text()], [3, 'x/y', 'abc', 'b']);
    let all = '';
    for await (const piece of blob.stream()) all += Buffer.from(piece);
    assert.equal(all, 'abc');
    assert.deepEqual(await Response.json({ a: 1 }).json(), { a: 1 });
    assert.deepEqual([Response.error().type, Response.redirect('http://a/', 307).headers.get('location')], ['error', 'http://a/']);
    assert.equal(new Response().body, null);
    assert.equal(await new Response().text(), '');
    assert.throws(() => new Response('x', { status: 204 }), TypeError);
    assert.throws(() => new Response('x', { status: 99 }), RangeError);
    const form = new FormData();
    form.append('a', 'b"\n');
    form.append('f', new Blob(['\r\n--x'], { type: 'a/b' }), 'né.txt');
    form.append('a', '2');
    const back = await new Response(form).formData();
    assert.deepEqual([back.getAll('a'), back.get('f').name, back.get('f').type, await back.get('f').text()], [['b"\r\n', '2'], 'né.txt', 'a/b', '\r\n--x']);
    const encoded = await new Response('a=1+2&a=%C3%A9&b', { headers: { 'content-type': 'application/x-www-form-urlencoded' } }).formData();
    assert.deepEqual([...encoded], [['a', '1 2'], ['a', 'é'], ['b', '']]);
    const request = new Request('http://a/b', { method: 'post', body: new URLSearchParams({ a: 'b c' }), headers: new Headers({ x: 'y' }) });
    const other = new Request(request, { headers: { z: '1' } });
    assert.deepEqual([request.bodyUsed, other.method, other.headers.get('x'), other.headers.get('z'), await other.text()], [true, 'POST', null, '1', 'a=b+c']);
    assert.equal(request.headers.get('content-type'), 'application/x-www-form-urlencoded;charset=UTF-8');
    assert.throws(() => new Request('http://a/', { body: 'x' }), TypeError);
  });
}

for (const [whose, Complete] of [['small', undefined], ['complete', own.ReadableStream]]) {
  test(`the streams of bodies: ${whose}`, async () => {
    useStreams(Complete);
    try {
      const bytes = new Uint8Array(100_000).map((_, at) => at);
      const response = () => new own.Response(bytes);
      const reader = response().body.getReader();
      const [first, second, third] = await Promise.all([reader.read(), reader.read(), reader.read()]);
      assert.deepEqual([first.value.length, second.value.length, third], [65_536, 34_464, { done: true, value: undefined }]);
      await reader.closed;
      const all = [];
      for await (const piece of response().body) all.push(piece);
      assert.deepEqual(Buffer.concat(all), Buffer.from(bytes));
      const [one, two] = response().body.tee();
      assert.deepEqual([(await new own.Response(one).bytes()).length, (await new own.Response(two).bytes()).length], [100_000, 100_000]);
      const locked = response();
      const lock = locked.body.getReader();
      assert.throws(() => locked.body.getReader(), TypeError);
      assert.throws(() => locked.clone(), TypeError);
      await assert.rejects(locked.text(), /being read/);
      lock.releaseLock();
      await assert.rejects(lock.read(), TypeError);
      assert.equal((await locked.bytes()).length, 100_000);
      let cancelled;
      const source = { ...sourceOf(bytes), cancel: async (reason) => (cancelled = reason) };
      for await (const _ of streamOf(source)) break;
      assert.equal(cancelled, undefined);
      await streamOf(source).cancel('why');
      assert.equal(cancelled, 'why');
      const broken = streamOf({ read: async () => assert.fail('broken') });
      await assert.rejects(broken.getReader().read(), { message: 'broken' });
      await assert.rejects(new own.Response(streamOf({ read: async () => assert.fail('broken') })).text(), { message: 'broken' });
      const read = response();
      const part = read.body.getReader();
      await part.read();
      part.releaseLock();
      assert.equal(read.bodyUsed, true);
      await assert.rejects(read.text(), /read before/);
      async function* pieces() {
        yield new Uint8Array([97]);
        yield new Uint8Array([98]);
      }
      assert.equal(await new own.Response(pieces()).text(), 'ab');
    } finally {
      useStreams(own.ReadableStream);
    }
  });
}

test('text goes through streams in any pieces', async () => {
  const { ReadableStream, TextDecoderStream, TextEncoderStream } = own;
  const text = 'aé👋\ufeff\u{10ffff}z';
  const bytes = Buffer.from(text);
  for (let size = 1; size <= bytes.length; size += 1) {
    const pieces = [];
    for (let at = 0; at < bytes.length; at += size) pieces.push(new Uint8Array(bytes.subarray(at, at + size)));
    let read = '';
    for await (const piece of ReadableStream.from(pieces).pipeThrough(new TextDecoderStream())) read += piece;
    assert.equal(read, text, String(size));
  }
  const halves = [];
  for await (const piece of ReadableStream.from([...'a👋'].join('').split('')).pipeThrough(new TextEncoderStream())) halves.push(...piece);
  assert.deepEqual(halves, [...Buffer.from('a👋')]);
  const invalid = ReadableStream.from([new Uint8Array([0x61, 0xff])]).pipeThrough(new TextDecoderStream('utf-8', { fatal: true }));
  await assert.rejects(invalid.getReader().read(), TypeError);
});

test('a damaged form is an error', () => {
  const type = 'multipart/form-data; boundary=x';
  for (const text of ['', '--x', '--x\r\n', '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb', '--x\r\n\r\nb\r\n--x--']) {
    assert.throws(() => parseForm(new Uint8Array(Buffer.from(text)), type), /not valid/);
  }
  assert.throws(() => parseForm(new Uint8Array(), 'text/plain'), /is not a form/);
});
