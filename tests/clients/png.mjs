// Decodes a PNG as far as a check needs it, with only Node itself.

import { inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

// The samples per pixel, by colour type.
const CHANNELS = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };

/** Returns the width and the height of a complete PNG. Throws an error if it is invalid. */
export function size(data) {
  if (!data.subarray(0, SIGNATURE.length).equals(SIGNATURE)) throw new Error('no PNG signature');
  const chunks = [...split(data.subarray(SIGNATURE.length))];
  const kinds = chunks.map(({ kind }) => kind);
  if (kinds.at(0) !== 'IHDR' || kinds.at(-1) !== 'IEND') throw new Error(`the chunks are ${kinds}`);
  const header = chunks[0].body;
  const [width, height, depth, colour] = [header.readUInt32BE(0), header.readUInt32BE(4), header[8], header[9]];
  if (header[10] || header[11] || header[12]) throw new Error('unusual compression, filter or interlacing');
  const pixels = chunks.filter(({ kind }) => kind === 'IDAT').map(({ body }) => body);
  const rows = inflateSync(Buffer.concat(pixels));
  const stride = 1 + Math.ceil((width * CHANNELS[colour] * depth) / 8);
  if (rows.length !== stride * height) throw new Error(`${rows.length} bytes of pixels, not ${stride * height}`);
  for (let at = 0; at < rows.length; at += stride) if (rows[at] > 4) throw new Error('an unknown row filter');
  return { width, height };
}

function* split(data) {
  while (data.length > 0) {
    const length = data.readUInt32BE(0);
    const checked = data.subarray(4, 8 + length);
    const kind = checked.toString('latin1', 0, 4);
    if (data.readUInt32BE(8 + length) !== crc32(checked)) throw new Error(`the checksum of ${kind} is wrong`);
    yield { kind, body: checked.subarray(4) };
    data = data.subarray(12 + length);
  }
}

// zlib.crc32 exists since Node 20.15, but the requirement is only Node 20.
function crc32(data) {
  let crc = ~0;
  for (const byte of data) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}
