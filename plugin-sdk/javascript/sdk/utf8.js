// Converts text to bytes and back: the engine has no TextEncoder and no TextDecoder.

/** Returns the bytes of a text in UTF-8. A lone surrogate becomes U+FFFD. */
export function encode(text) {
  const escaped = encodeURIComponent(String(text).toWellFormed());
  const bytes = new Uint8Array(escaped.length);
  let length = 0;
  for (let at = 0; at < escaped.length; at += 1) {
    let byte = escaped.charCodeAt(at);
    if (byte === 0x25) {
      byte = parseInt(escaped.slice(at + 1, at + 3), 16);
      at += 2;
    }
    bytes[length] = byte;
    length += 1;
  }
  return bytes.slice(0, length);
}

// The bytes that may follow a first byte: their number, and the range of the next one,
// which excludes overlong encodings, surrogates, and values beyond Unicode.
function following(first) {
  if (first >= 0xc2 && first <= 0xdf) return [1, 0x80, 0xbf];
  if (first >= 0xe0 && first <= 0xef) return [2, first === 0xe0 ? 0xa0 : 0x80, first === 0xed ? 0x9f : 0xbf];
  if (first >= 0xf0 && first <= 0xf4) return [3, first === 0xf0 ? 0x90 : 0x80, first === 0xf4 ? 0x8f : 0xbf];
  return [0, 0, 0];
}

/** Returns the text of bytes in UTF-8, without a byte order mark. Invalid UTF-8 becomes U+FFFD. */
export function decode(bytes) {
  const parts = [];
  let units = [];
  let at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  while (at < bytes.length) {
    const first = bytes[at];
    at += 1;
    if (first < 0x80) {
      units.push(first);
    } else {
      let [count, low, high] = following(first);
      let point = count === 0 ? 0xfffd : first & (0x3f >> count);
      for (; count > 0; count -= 1) {
        const next = bytes[at];
        if (!(next >= low && next <= high)) {
          point = 0xfffd;
          break;
        }
        point = (point << 6) | (next & 0x3f);
        [low, high] = [0x80, 0xbf];
        at += 1;
      }
      if (point > 0xffff) units.push(0xd7c0 + (point >> 10), 0xdc00 | (point & 0x3ff));
      else units.push(point);
    }
    if (units.length >= 4096) {
      parts.push(String.fromCharCode(...units));
      units = [];
    }
  }
  parts.push(String.fromCharCode(...units));
  return parts.join('');
}
