"""`_bz2`, without the compression."""

from toolbay_guest import missing

_INSTEAD = "compress with `zlib`, `gzip` or `zipfile`"

BZ2Compressor = missing.kind("bz2.BZ2Compressor", _INSTEAD)
BZ2Decompressor = missing.kind("bz2.BZ2Decompressor", _INSTEAD)
