// Bytes of buffers and of their views.

/** Returns whether a value is an ArrayBuffer or a view of one. */
export const isBuffer = (value) =>
  ArrayBuffer.isView(value) || ['[object ArrayBuffer]', '[object SharedArrayBuffer]'].includes(Object.prototype.toString.call(value));

/** Returns a view of the bytes of an ArrayBuffer or of a view, without copying them. */
export function view(buffer) {
  if (!isBuffer(buffer)) throw new TypeError(`bytes are a typed array or an ArrayBuffer, not ${typeof buffer}`);
  return ArrayBuffer.isView(buffer) ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength) : new Uint8Array(buffer);
}

/** Returns all these bytes in one new array. */
export function joined(pieces) {
  const all = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
