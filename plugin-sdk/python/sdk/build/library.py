"""The native library that makes builds reproducible, as WebAssembly.

`componentize-py` links it with the interpreter. It is written here, instruction by
instruction, because authors have no compiler for C, and because it is short:

- Its constructor runs before the interpreter starts. It sets environment variables
  that `componentize-py` does not pass on: the seed of Python's hashes, and that no
  compiled files are written.
- `PyInit_toolbay_memory` clears the unused part of the stack, random numbers that
  nothing uses, and the memory in `sys.toolbay_unused`, which are pairs of an address
  and a size.
- `PyInit_toolbay_starts` sets the times at which libraries started to zero.
"""

from __future__ import annotations

from collections.abc import Iterable

#: The environment of the interpreter while it builds. The component does not keep it.
ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
#: Variables that note when libraries started: one of the C library, in seconds and nanoseconds, and one of mimalloc, which
#: CPython does not use here, in milliseconds. They have no names, so these are their distances from `__stack_chk_guard`
#: and `PyUnicode_Type` in componentize-py 0.25.1. They are only changed if they have the same value.
_CLOCK_DISTANCE, _MILLISECONDS_DISTANCE = 0x43EEE0 - 0x43DB34, 0x400338 - 0x3810E0
#: mimalloc's generator of random numbers contains this text. The numbers that it has drawn are before and after it.
_GENERATOR = b"expand 32-byte k"
_BEFORE, _AFTER = 12, 132
#: The start of the stack. The first bytes are left alone, because no address is zero.
_STACK_START = 1024
#: The libraries' variables are between the stack and this address.
_VARIABLES_START, _VARIABLES_END = 0x100000, 0x480000
#: The name in `sys`, and where the content of a `bytes` object and its length are.
_UNUSED = b"toolbay_unused\0"
_BYTES_LENGTH, _BYTES_CONTENT = 8, 16

_I32, _VOID = b"\x7f", b"\x40"
_END = b"\x0b"
_FILL = b"\xfc\x0b\x00"
_STORE = b"\x36\x02"
# The imports, by their indexes.
_SETENV, _GET_OBJECT = (b"\x10" + bytes([index]) for index in range(2))
_MEMORY_BASE, _STACK_POINTER, _GUARD, _TEXTS = (b"\x23" + bytes([index]) for index in range(4))
_GLOBALS = (
    ("env", "__memory_base", b"\0"),
    ("env", "__stack_pointer", b"\1"),
    ("GOT.mem", "__stack_chk_guard", b"\1"),
    ("GOT.mem", "PyUnicode_Type", b"\1"),
)
_FUNCTIONS = (("setenv", b"\0"), ("PySys_GetObject", b"\1"))


def make() -> bytes:
    """Returns the library."""
    texts = b"".join(f"{name}\0{value}\0".encode() for name, value in ENVIRONMENT.items())
    data = texts + _UNUSED
    types = [_function(3, 1), _function(1, 1), _function(0, 0), _function(0, 1)]
    imports = [
        _text("env") + _text("memory") + b"\x02\x00\x00",
        *(_text(module) + _text(name) + b"\x03" + _I32 + mutable for module, name, mutable in _GLOBALS),
        *(_text("env") + _text(name) + b"\x00" + kind for name, kind in _FUNCTIONS),
    ]
    first = len(_FUNCTIONS)
    names = ("__wasm_call_ctors", "PyInit_toolbay_memory", "PyInit_toolbay_starts")
    exports = [_text(name) + b"\0" + _number(first + index) for index, name in enumerate(names)]
    bodies = [_constructor(), _clearing(len(texts)), _starting()]
    linking = _text("dylink.0") + _part(1, _number(len(data)) + b"\0\0\0")
    linking += _part(2, _list([_text("libc.so"), _text("libpython3.14.so")]))
    sections = [
        (0, linking),
        (1, _list(types)),
        (2, _list(imports)),
        (3, _list([b"\2", b"\3", b"\3"])),
        (7, _list(exports)),
        (10, _list(_sized(body) for body in bodies)),
        (11, _list([b"\0" + _MEMORY_BASE + _END + _sized(data)])),
    ]
    return b"\0asm\1\0\0\0" + b"".join(_part(kind, body) for kind, body in sections)


def _constructor() -> bytes:
    code = b""
    at = 0
    for name, value in ENVIRONMENT.items():
        code += _address(at) + _address(at + len(name) + 1) + _constant(1) + _SETENV + b"\x1a"
        at += len(name) + len(value) + 2
    # The value that protects the stack is random. No function that uses it is running now.
    code += _GUARD + _constant(0) + _STORE + b"\0"
    return _list([]) + code + _clear_stack() + _END


def _starting() -> bytes:
    """Returns the body of `PyInit_toolbay_starts`, which makes no module."""
    clock = _GUARD + _constant(_CLOCK_DISTANCE) + b"\x6a"
    milliseconds = _TEXTS + _constant(_MILLISECONDS_DISTANCE) + b"\x6a"
    load64, load32 = b"\x29\0\0", b"\x35\0"
    same = clock + load64 + b"\x42" + _signed(1000) + b"\x7e"
    same += (
        clock + load32 + b"\x08" + b"\x42" + _signed(1_000_000) + b"\x80" + b"\x7c" + milliseconds + load64 + b"\x51"
    )
    zero = clock + _constant(0) + _constant(16) + _FILL + milliseconds + _constant(0) + _constant(8) + _FILL
    return _list([]) + same + b"\x04" + _VOID + zero + _END + _constant(0) + _END


def _clearing(unused: int) -> bytes:
    """Returns the body of `PyInit_toolbay_memory`, which makes no module."""
    local, get, set_, tee = _list([_number(2) + _I32]), b"\x20\0", b"\x21\0", b"\x22\0"
    code = _clear_stack()
    # Compares the 16 bytes at the address with the text, as two integers of 64 bits.
    halves = [int.from_bytes(_GENERATOR[at : at + 8], "little", signed=True) for at in (0, 8)]
    found = (
        get
        + b"\x29\2\0\x42"
        + _signed(halves[0])
        + b"\x51"
        + get
        + b"\x29\2\x08\x42"
        + _signed(halves[1])
        + b"\x51\x71"
    )
    before = get + _constant(_BEFORE) + b"\x6b" + _constant(0) + _constant(_BEFORE) + _FILL
    skip = len(_GENERATOR)
    after = get + _constant(skip) + b"\x6a" + _constant(0) + _constant(_AFTER - skip) + _FILL
    step = get + _constant(4) + b"\x6a" + tee + _constant(_VARIABLES_END) + b"\x48\x0d\0"
    loop = b"\x03" + _VOID + found + b"\x04" + _VOID + before + after + _END + step + _END
    code += _constant(_VARIABLES_START) + set_ + loop
    # The pairs are in a `bytes` object. The second variable is where they end.
    end = b"\x21\1"
    pairs = _address(unused) + _GET_OBJECT + tee + _constant(_BYTES_CONTENT) + b"\x6a" + get + b"\x28\2"
    pairs += _number(_BYTES_LENGTH) + b"\x6a" + end + get + _constant(_BYTES_CONTENT) + b"\x6a" + set_
    more = get + b"\x20\1\x49"
    fill = get + b"\x28\2\0" + _constant(0) + get + b"\x28\2\4" + _FILL + get + _constant(8) + b"\x6a" + set_
    pairs += b"\x03" + _VOID + more + b"\x04" + _VOID + fill + b"\x0c\1" + _END + _END
    return local + code + pairs + _constant(0) + _END


def _clear_stack() -> bytes:
    start = _constant(_STACK_START)
    return start + _constant(0) + _STACK_POINTER + start + b"\x6b" + _FILL


def _address(offset: int) -> bytes:
    """Pushes the address of the library's data at an offset."""
    return _MEMORY_BASE + _constant(offset) + b"\x6a"


def _constant(value: int) -> bytes:
    return b"\x41" + _signed(value)


def _function(parameters: int, results: int) -> bytes:
    return b"\x60" + _list([_I32] * parameters) + _list([_I32] * results)


def _number(value: int) -> bytes:
    """Encodes an unsigned integer as LEB128."""
    encoded = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        encoded.append(low | (0x80 if value else 0))
        if not value:
            return bytes(encoded)


def _signed(value: int) -> bytes:
    """Encodes a signed integer as LEB128."""
    encoded = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        done = value == (-1 if low & 0x40 else 0)
        encoded.append(low | (0 if done else 0x80))
        if done:
            return bytes(encoded)


def _sized(content: bytes) -> bytes:
    return _number(len(content)) + content


def _text(text: str) -> bytes:
    return _sized(text.encode())


def _list(items: Iterable[bytes]) -> bytes:
    items = list(items)
    return _number(len(items)) + b"".join(items)


def _part(kind: int, content: bytes) -> bytes:
    return bytes([kind]) + _sized(content)
