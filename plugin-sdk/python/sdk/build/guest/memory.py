"""Makes builds reproducible: overwrites unused memory, where values of the build's machine remain.

Times and inodes of files, for example, stay in freed objects and in the unused
part of the stack, and the component contains all memory.
"""

from __future__ import annotations

import _imp
import contextlib
import gc
import importlib.machinery
import linecache
import sys
from types import CodeType

#: The native library that `toolbay.build` makes.
_LIBRARY = "/1/toolbay_memory.abi3.so"

#: How many objects of each size are made: more than there are unused ones after the start of the interpreter. CPython
#: rounds the sizes of small objects up to multiples of 16.
_COUNTS = {
    **{size: 3000 for size in (16, 32, 48, 64)},
    **{size: 500 for size in range(80, 129, 16)},
    **{size: 100 for size in range(144, 513, 16)},
    **{size: 8 for size in (1024, 2048, 4096, 8192, 16384)},
}
_EMPTY_BYTES = sys.getsizeof(b"")
#: The allocator's blocks: a header, then an object.
_CHUNK_HEADER, _CHUNK_ALIGNMENT = 4, 16
#: The interpreter's own objects are below this address.
_HEAP_START = 0x480000
#: In a `str`, three bytes after the first one of the flags are not used.
_FLAGS_OFFSET, _FLAGS_BYTES = 17, 3


def begin() -> None:
    """Overwrites what the start of the interpreter left, in unused memory and in the gaps after objects."""
    # The objects must not be freed before their gaps are overwritten.
    objects = _objects()
    clear(_gaps(objects))


def end() -> None:
    """Overwrites what the build leaves. Nothing may be imported later."""
    clear()
    _run("toolbay_starts")


def clear(unused: bytes = b"") -> None:
    """Overwrites unused memory, and the parts in `unused`: pairs of an address and a size."""
    sys.path_importer_cache.clear()
    linecache.clearcache()
    gc.collect()
    _clear_heap()
    sys.toolbay_unused = unused  # type: ignore[attr-defined]
    _run("toolbay_memory")


def _gaps(objects: list[object]) -> bytes:
    """Returns the memory of objects that has no meaning.

    That is what is between an object and the next one, and in a `str` between its
    flags and its text.
    """
    pairs = []
    for value in objects:
        # Objects at lower addresses are part of the interpreter, without gaps. The size of a text with other
        # characters includes its UTF-8, which is elsewhere.
        address = id(value)
        if address < _HEAP_START or (isinstance(value, str) and not value.isascii()):
            continue
        size = sys.getsizeof(value)
        # The allocator rounds up, after a header.
        usable = (size + _CHUNK_HEADER + _CHUNK_ALIGNMENT - 1) // _CHUNK_ALIGNMENT * _CHUNK_ALIGNMENT - _CHUNK_HEADER
        if type(value) is str:
            pairs.append((address + _FLAGS_OFFSET, _FLAGS_BYTES))
        if usable > size:
            pairs.append((address + size, usable - size))
    return b"".join(number.to_bytes(4, "little") for pair in pairs for number in pair)


def _objects() -> list[object]:
    """Returns the objects without references that others refer to."""
    found: dict[int, object] = {}
    waiting: list[object] = list(gc.get_objects())
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if type(value) in (str, bytes, float, int):
            found[id(value)] = value
        elif isinstance(value, CodeType):
            waiting.extend((*value.co_consts, *value.co_names, value.co_varnames, value.co_filename, value.co_name))
            waiting.extend((value.co_qualname, value.co_linetable, value.co_exceptiontable))
        else:
            waiting.extend(gc.get_referents(value))
    return list(found.values())


def _clear_heap() -> None:
    blocks = [bytes(max(size - _EMPTY_BYTES, 0)) for size, count in _COUNTS.items() for _ in range(count)]
    floats = [float(number) for number in range(_COUNTS[16])]
    del blocks, floats


def _run(name: str) -> None:
    """Runs a function of the library, as the initialization of a module. It makes no module."""
    with contextlib.suppress(SystemError, ImportError):
        _imp.create_dynamic(importlib.machinery.ModuleSpec(name, None, origin=_LIBRARY))
