"""Makes a small library in WebAssembly that prepares the memory of a component for its snapshot.

`componentize-py` links each library that it finds in the folders of the build, and
the library's constructor runs before Python starts. It does two things, without
which two builds of the same source would differ nearly everywhere:

- It sets environment variables, such as `PYTHONHASHSEED`.
- It makes Python's allocators clear each block before and after its use. Otherwise,
  the unused ends of blocks contain what was there before, such as the times of
  files. They are cleared only while the component is built: `restore` of
  `toolbay_guest.memory` gives Python its own allocators again, by "importing" the
  library as a module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

#: The name of the library. `componentize-py` finds libraries by the end of the name.
FILE_NAME = "toolbay_startup.abi3.so"
#: Called when the library is imported as a module.
_RESTORE = "PyInit_toolbay_startup"

#: Python's allocators: for raw memory, for memory, and for objects.
_DOMAINS = (0, 1, 2)
#: The size of `PyMemAllocatorEx`: a context and four functions.
_ALLOCATOR_BYTES = 20
#: The size of a block's header, and the alignment of blocks, in the C library.
_HEADER_BYTES, _ALIGNMENT = 4, 16

# Types of values, and instructions.
_I32 = 0x7F
_NO_RESULT = 0x40
_END, _IF, _RETURN, _DROP = b"\x0b", bytes([0x04, _NO_RESULT]), b"\x0f", b"\x1a"
_EQZ, _NOT_GREATER, _ADD, _SUBTRACT, _MULTIPLY, _AND = b"\x45", b"\x4d", b"\x6a", b"\x6b", b"\x6c", b"\x71"
_STORE = bytes([0x36, 2, 0])
_COPY, _FILL = bytes([0xFC, 10, 0, 0]), bytes([0xFC, 11, 0])

#: The functions that the library imports: their parameters, and whether they have a result.
_IMPORTS = {
    "setenv": (3, True),
    "calloc": (2, True),
    "realloc": (2, True),
    "free": (1, False),
    "malloc_usable_size": (1, True),
    "PyMem_GetAllocator": (2, False),
    "PyMem_SetAllocator": (2, False),
}
#: The functions of the library, of which the first four are those of an allocator.
_FUNCTIONS = {
    "malloc": (2, True),
    "calloc": (3, True),
    "realloc": (3, True),
    "free": (2, False),
    "__wasm_call_ctors": (0, False),
    _RESTORE: (0, True),
}
_ALLOCATOR_FUNCTIONS = 4
_MEMORY_BASE, _TABLE_BASE = 0, 1


def library(variables: Mapping[str, str]) -> bytes:
    """Returns the library, which sets these environment variables."""
    data = bytearray()
    addresses: list[tuple[int, int]] = []
    for name, value in variables.items():
        places = []
        for text in (name, value):
            places.append(len(data))
            data += text.encode() + b"\0"
        addresses.append((places[0], places[1]))
    data += bytes(-len(data) % 4)
    own = len(data)
    data += bytes(_ALLOCATOR_BYTES * (1 + len(_DOMAINS)))
    bodies = [
        _allocate(),
        _allocate_array(),
        _reallocate(),
        _release(),
        _construct(addresses, own),
        _restore(own),
    ]
    signatures = list(dict.fromkeys([*_IMPORTS.values(), *_FUNCTIONS.values()]))
    first = len(_IMPORTS)
    exports = [_text(name) + b"\0" + _unsigned(first + list(_FUNCTIONS).index(name)) for name in _exported()]
    imports = [
        _text("env") + _text("memory") + bytes([2, 0, 0]),
        _text("env") + _text("__memory_base") + bytes([3, _I32, 0]),
        _text("env") + _text("__table_base") + bytes([3, _I32, 0]),
        _text("env") + _text("__indirect_function_table") + bytes([1, 0x70, 0, 0]),
        *(_text("env") + _text(name) + b"\0" + _unsigned(signatures.index(of)) for name, of in _IMPORTS.items()),
    ]
    table = bytes([0x23, _TABLE_BASE]) + _END
    elements = b"\0" + table + _vector(_unsigned(first + at) for at in range(_ALLOCATOR_FUNCTIONS))
    memory = bytes([0x23, _MEMORY_BASE]) + _END
    return b"".join(
        [
            b"\0asm\1\0\0\0",
            _section(0, _text("dylink.0") + b"\1" + _sized(_memory_info(len(data)))),
            _section(1, _vector(map(_signature, signatures))),
            _section(2, _vector(imports)),
            _section(3, _vector(_unsigned(signatures.index(of)) for of in _FUNCTIONS.values())),
            _section(7, _vector(exports)),
            _section(9, _vector([elements])),
            _section(10, _vector(map(_sized, bodies))),
            _section(11, _vector([b"\0" + memory + _sized(bytes(data))])),
        ]
    )


def _exported() -> list[str]:
    return ["__wasm_call_ctors", _RESTORE]


def _memory_info(data_bytes: int) -> bytes:
    """Returns the sizes and the alignments, as exponents of two, of the library's memory and its part of the table."""
    return _unsigned(data_bytes) + _unsigned(2) + _unsigned(_ALLOCATOR_FUNCTIONS) + _unsigned(0)


# The functions. The first parameter of an allocator's function is its context, which is not used.


def _allocate() -> bytes:
    return _code(0, _const(1), _whole_block(1), _call("calloc"))


def _allocate_array() -> bytes:
    # Python has checked that the product is a size.
    return _code(0, _const(0), _get(1), _get(2), _MULTIPLY, _call_own("malloc"))


def _reallocate() -> bytes:
    # The C library's `realloc` would leave the old block, or its end, as it is.
    block, size, before, needed, moved = 1, 2, 3, 4, 5
    return _code(
        3,
        *(_get(block), _EQZ, _IF, _const(0), _get(size), _call_own("malloc"), _RETURN, _END),
        *(_get(block), _call("malloc_usable_size"), _set(before)),
        *(_whole_block(size), _set(needed)),
        *(_get(needed), _get(before), _NOT_GREATER, _IF),
        *(_get(block), _get(needed), _ADD, _const(0), _get(before), _get(needed), _SUBTRACT, _FILL),
        *(_get(block), _get(needed), _call("realloc"), _RETURN, _END),
        *(_const(0), _get(size), _call_own("malloc"), _set(moved)),
        *(_get(moved), _EQZ, _IF, _const(0), _RETURN, _END),
        *(_get(moved), _get(block), _get(before), _COPY),
        *(_const(0), _get(block), _call_own("free")),
        _get(moved),
    )


def _release() -> bytes:
    block = 1
    return _code(
        0,
        *(_get(block), _IF),
        *(_get(block), _const(0), _get(block), _call("malloc_usable_size"), _FILL),
        *(_get(block), _call("free"), _END),
    )


def _construct(variables: Iterable[tuple[int, int]], own: int) -> bytes:
    parts = []
    for name, value in variables:
        parts += [_address(name), _address(value), _const(1), _call("setenv"), _DROP]
    for at in range(_ALLOCATOR_FUNCTIONS):
        parts += [_address(own + 4 * (1 + at)), bytes([0x23, _TABLE_BASE]), _const(at), _ADD, _STORE]
    for domain in _DOMAINS:
        parts += [_const(domain), _address(_saved(own, domain)), _call("PyMem_GetAllocator")]
        parts += [_const(domain), _address(own), _call("PyMem_SetAllocator")]
    return _code(0, *parts)


def _restore(own: int) -> bytes:
    parts = []
    for domain in _DOMAINS:
        parts += [_const(domain), _address(_saved(own, domain)), _call("PyMem_SetAllocator")]
    # No module.
    return _code(0, *parts, _const(0))


def _saved(own: int, domain: int) -> int:
    return own + _ALLOCATOR_BYTES * (1 + domain)


def _whole_block(size: int) -> bytes:
    """Returns instructions for the size of the block that the C library finds for a size."""
    rounded = [_get(size), _const(_HEADER_BYTES + _ALIGNMENT - 1), _ADD, _const(-_ALIGNMENT), _AND]
    return b"".join([*rounded, _const(_HEADER_BYTES), _SUBTRACT])


# The binary format of WebAssembly.


def _code(locals_: int, *instructions: bytes) -> bytes:
    declared = [_unsigned(locals_) + bytes([_I32])] if locals_ else []
    return _vector(declared) + b"".join(instructions) + _END


def _get(local: int) -> bytes:
    return b"\x20" + _unsigned(local)


def _set(local: int) -> bytes:
    return b"\x21" + _unsigned(local)


def _const(value: int) -> bytes:
    return b"\x41" + _signed(value)


def _address(offset: int) -> bytes:
    return bytes([0x23, _MEMORY_BASE]) + _const(offset) + _ADD


def _call(name: str) -> bytes:
    return b"\x10" + _unsigned(list(_IMPORTS).index(name))


def _call_own(name: str) -> bytes:
    return b"\x10" + _unsigned(len(_IMPORTS) + list(_FUNCTIONS).index(name))


def _signature(of: tuple[int, bool]) -> bytes:
    parameters, has_result = of
    return b"\x60" + _vector([bytes([_I32])] * parameters) + _vector([bytes([_I32])] * has_result)


def _section(kind: int, content: bytes) -> bytes:
    return bytes([kind]) + _sized(content)


def _vector(items: Iterable[bytes]) -> bytes:
    parts = list(items)
    return _unsigned(len(parts)) + b"".join(parts)


def _sized(content: bytes) -> bytes:
    return _unsigned(len(content)) + content


def _text(text: str) -> bytes:
    return _sized(text.encode())


def _unsigned(value: int) -> bytes:
    """Returns a number in LEB128."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _signed(value: int) -> bytes:
    encoded = bytearray()
    while not -0x40 <= value < 0x40:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value & 0x7F)
    return bytes(encoded)
