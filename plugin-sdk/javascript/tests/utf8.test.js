import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decode, encode } from '../sdk/utf8.js';

const TEXTS = ['', 'a', 'é', '日本', '👩‍🚀 \u{10ffff}', '\u0000\u007f\u0080\u07ff\u0800\uffff', '100% %41', 'x'.repeat(10_000) + '👋'];

test('text is encoded and decoded as Node does', () => {
  for (const text of TEXTS) {
    const bytes = new Uint8Array(Buffer.from(text));
    assert.deepEqual(encode(text), bytes, text.slice(0, 20));
    assert.equal(decode(bytes), text);
  }
  assert.deepEqual(encode('a\ud800b'), new Uint8Array(Buffer.from('a\ufffdb')));
});

test('what is no UTF-8 becomes U+FFFD as the standard has it', () => {
  const decoder = new TextDecoder();
  const heads = [0x41, 0x80, 0xc0, 0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff, 0xbb, 0xbf, 0x9f, 0xa0, 0x90, 0x8f];
  for (const a of heads) {
    for (const b of heads) {
      for (const c of heads) {
        for (const d of heads) {
          const bytes = Uint8Array.of(a, b, c, d);
          assert.equal(decode(bytes), decoder.decode(bytes), `${bytes}`);
        }
      }
    }
  }
  assert.equal(decode(Uint8Array.of(0xef, 0xbb, 0xbf, 0x41)), 'A');
});
