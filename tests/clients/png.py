"""Decodes a PNG as far as a check needs it, with only the standard library."""

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"

CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Samples of a pixel, by colour type."""


def size(data: bytes) -> tuple[int, int]:
    """Returns the width and the height of a complete PNG. Raises ValueError if it is invalid."""
    if not data.startswith(SIGNATURE):
        raise ValueError("no PNG signature")
    chunks = list(_chunks(data[len(SIGNATURE) :]))
    kinds = [kind for kind, _ in chunks]
    if kinds[0] != b"IHDR" or kinds[-1] != b"IEND":
        raise ValueError(f"the chunks are {kinds}")
    width, height, depth, colour, compression, filtering, interlace = struct.unpack(">IIBBBBB", chunks[0][1])
    if compression or filtering or interlace:
        raise ValueError("unusual compression, filter or interlacing")
    rows = zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT"))
    stride = 1 + (width * CHANNELS[colour] * depth + 7) // 8
    if len(rows) != stride * height:
        raise ValueError(f"{len(rows)} bytes of pixels, not {stride * height}")
    if any(method > 4 for method in rows[::stride]):
        raise ValueError("an unknown row filter")
    return width, height


def _chunks(data: bytes):
    while data:
        (length,) = struct.unpack_from(">I", data)
        kind, body = data[4:8], data[8 : 8 + length]
        (crc,) = struct.unpack_from(">I", data, 8 + length)
        if crc != zlib.crc32(kind + body):
            raise ValueError(f"the checksum of {kind!r} is wrong")
        yield kind, body
        data = data[12 + length :]
