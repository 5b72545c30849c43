import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TextDecoder as Decoder, TextEncoder as Encoder } from '../sdk/web/encoding.js';

const random = (length) => Uint8Array.from({ length }, () => Math.floor(Math.random() * 256));

test('bytes are decoded as in Node, in pieces too', () => {
  for (const label of ['utf-8', 'utf-16le', 'latin1']) {
    for (let turn = 0; turn < 500; turn += 1) {
      const bytes = turn % 2 ? random(turn % 17) : new TextEncoder().encode('ü€𝒳\ufeffa'.slice(turn % 3));
      // Node 20 decodes 0x80 to 0x9f of windows-1252 as ISO 8859-1.
      if (label === 'latin1' && bytes.some((byte) => byte >= 0x80 && byte < 0xa0)) continue;
      assert.equal(new Decoder(label).decode(bytes), new TextDecoder(label).decode(bytes), `${label} ${bytes}`);
      if (turn % 2) continue;
      const whole = new Decoder(label);
      let text = '';
      for (const byte of bytes) text += whole.decode(Uint8Array.of(byte), { stream: true });
      assert.equal(text + whole.decode(), new TextDecoder(label).decode(bytes));
    }
  }
});

test('invalid bytes and unknown encodings are errors', () => {
  assert.throws(() => new Decoder('utf-8', { fatal: true }).decode(Uint8Array.of(0xff)), /not valid UTF-8/);
  assert.throws(() => new Decoder('shift_jis'), /not shift_jis/);
  assert.equal(new Decoder('latin1').decode(Uint8Array.of(0x80)), '€');
});

test('text is encoded as in Node', () => {
  const target = [new Uint8Array(5), new Uint8Array(5)];
  assert.deepEqual(new Encoder().encodeInto('ab€𝒳', target[0]), new TextEncoder().encodeInto('ab€𝒳', target[1]));
  assert.deepEqual(target[0], target[1]);
});
