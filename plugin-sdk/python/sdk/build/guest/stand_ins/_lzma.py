"""`_lzma`, without the compression."""

from toolbay_guest import missing

_INSTEAD = "compress with `zlib`, `gzip` or `zipfile`"

FORMAT_AUTO, FORMAT_XZ, FORMAT_ALONE, FORMAT_RAW = range(4)
CHECK_NONE, CHECK_CRC32, CHECK_CRC64, CHECK_SHA256 = 0, 1, 4, 10
CHECK_ID_MAX, CHECK_UNKNOWN = 15, 16
FILTER_LZMA1, FILTER_LZMA2 = 0x4000000000000001, 0x21
FILTER_DELTA, FILTER_X86, FILTER_POWERPC, FILTER_IA64, FILTER_ARM, FILTER_ARMTHUMB, FILTER_SPARC = range(3, 10)
MF_HC3, MF_HC4, MF_BT2, MF_BT3, MF_BT4 = 0x03, 0x04, 0x12, 0x13, 0x14
MODE_FAST, MODE_NORMAL = 1, 2
PRESET_DEFAULT, PRESET_EXTREME = 6, 0x80000000


class LZMAError(Exception):
    """An error of the compression."""


LZMACompressor = missing.kind("lzma.LZMACompressor", _INSTEAD)
LZMADecompressor = missing.kind("lzma.LZMADecompressor", _INSTEAD)
is_check_supported = missing.function("lzma.is_check_supported", _INSTEAD)
_encode_filter_properties = missing.function("lzma.encode_filter_properties", _INSTEAD)
_decode_filter_properties = missing.function("lzma.decode_filter_properties", _INSTEAD)
