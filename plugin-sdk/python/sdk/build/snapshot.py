"""Clears what differs between two builds in the memory of a component, and what no call uses.

The memory of a component is a snapshot at the end of its build. Nothing runs
then, so its stack is unused. The times and random numbers below are those of the
build, and a call does without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_CORE_MODULE, _GLOBALS, _EXPORTS, _DATA = 1, 6, 7, 11
_GLOBAL_EXPORT = 3
_CONST, _END = 0x41, 0x0B

#: The library with the start of the time that `time.process_time` returns, and where that is.
_CLOCK_LIBRARY = "libwasi-emulated-process-clocks.so"
_CLOCK_OFFSET, _CLOCK_BYTES = 8, 16
#: The state of the random numbers of mimalloc, an allocator in CPython that a component does not use.
_RANDOM_MAGIC = b"expand 32-byte k"
_RANDOM_COOKIE = slice(-12, 0)
_RANDOM_PARTS = (slice(16, 48), slice(64, 128))
#: The time at which mimalloc was set up, in milliseconds, relative to these numbers.
_ALLOCATOR_TIME = slice(0x8361C - 12, 0x8361C - 4)


@dataclass
class _Memory:
    """The memory of the first module of a component, which has all memory."""

    component: bytearray
    #: The address, the place in the file and the size of each part that is not zero.
    segments: list[tuple[int, int, int]]
    #: The values of exported globals, by name.
    globals: dict[str, int]

    def read(self, start: int, end: int) -> bytes:
        content = bytearray(end - start)
        for address, place, size in self._within(start, end):
            content[address - start : address - start + size] = self.component[place : place + size]
        return bytes(content)

    def write(self, start: int, content: bytes) -> None:
        """Replaces bytes, of which those that are not in the file must remain zero."""
        for address, place, size in self._within(start, start + len(content)):
            self.component[place : place + size] = content[address - start : address - start + size]

    def clear(self, start: int, end: int) -> None:
        self.write(start, bytes(end - start))

    def _within(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        for address, place, size in self.segments:
            first, last = max(address, start), min(address + size, end)
            if first < last:
                yield first, place + first - address, last - first


def normalized(component: bytes, guard: bytes) -> bytes:
    """Returns a component without the differences. `guard` is the value with which the C library protects the stack."""
    memory = _read(bytearray(component))
    if memory is None:
        return component
    memory.clear(memory.globals.get("__stack_low", 0), memory.globals.get("__stack_high", 0))
    for name, address in memory.globals.items():
        if name.endswith(":__stack_chk_guard"):
            memory.write(address, guard)
    _clear_times(memory)
    return bytes(memory.component)


def _clear_times(memory: _Memory) -> None:
    clock = memory.globals.get(f"{_CLOCK_LIBRARY}:memory_base")
    if clock is None:
        return
    clock += _CLOCK_OFFSET
    started = memory.read(clock, clock + _CLOCK_BYTES)
    seconds, nanoseconds = (int.from_bytes(started[at : at + 8], "little") for at in (0, 8))
    memory.clear(clock, clock + _CLOCK_BYTES)
    for address, place, size in memory.segments:
        found = memory.component.find(_RANDOM_MAGIC, place, place + size)
        if found < 0:
            continue
        magic = address + found - place
        # Only if it is surely a time: both are set when the program starts.
        start, end = magic + _ALLOCATOR_TIME.start, magic + _ALLOCATOR_TIME.stop
        set_up = int.from_bytes(memory.read(start, end), "little")
        if 0 <= set_up - (seconds * 1000 + nanoseconds // 1_000_000) < 1000:
            memory.clear(start, end)
            memory.write(magic + _RANDOM_COOKIE.start, (1).to_bytes(12, "little"))
            for part in _RANDOM_PARTS:
                memory.clear(magic + part.start, magic + part.stop)


def _read(component: bytearray) -> _Memory | None:
    """Finds the memory of a component. Returns `None` if it is not one of `componentize-py`."""
    for kind, start, end in _sections(component, 8, len(component)):
        if kind == _CORE_MODULE:
            parts = {kind: start for kind, start, _ in _sections(component, start + 8, end)}
            if not parts.keys() >= {_GLOBALS, _EXPORTS, _DATA}:
                return None
            values = _global_values(component, parts[_GLOBALS])
            exported = _exported_globals(component, parts[_EXPORTS])
            return _Memory(
                component,
                list(_segments(component, parts[_DATA])),
                {name: values[index] for name, index in exported.items()},
            )
    return None


def _sections(content: bytearray, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    while start < end:
        kind = content[start]
        size, start = _unsigned(content, start + 1)
        yield kind, start, start + size
        start += size


def _global_values(content: bytearray, at: int) -> list[int]:
    values = []
    count, at = _unsigned(content, at)
    for _ in range(count):
        value, at = _constant(content, at + 2)
        values.append(value)
    return values


def _exported_globals(content: bytearray, at: int) -> dict[str, int]:
    exported = {}
    count, at = _unsigned(content, at)
    for _ in range(count):
        size, at = _unsigned(content, at)
        name = content[at : at + size].decode()
        kind = content[at + size]
        index, at = _unsigned(content, at + size + 1)
        if kind == _GLOBAL_EXPORT:
            exported[name] = index
    return exported


def _segments(content: bytearray, at: int) -> Iterator[tuple[int, int, int]]:
    count, at = _unsigned(content, at)
    for _ in range(count):
        if content[at] != 0:
            raise ValueError("a part of the memory is not where componentize-py puts it")
        address, at = _constant(content, at + 1)
        size, at = _unsigned(content, at)
        yield address & 0xFFFFFFFF, at, size
        at += size


def _constant(content: bytearray, at: int) -> tuple[int, int]:
    """Reads a constant expression of an integer, and returns it with the place after it."""
    if content[at] != _CONST:
        raise ValueError("a value is not the constant that componentize-py writes")
    value = shift = 0
    at += 1
    while True:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if not byte & 0x80:
            break
    if byte & 0x40:
        value -= 1 << shift
    if content[at] != _END:
        raise ValueError("a value is not the constant that componentize-py writes")
    return value, at + 1


def _unsigned(content: bytearray, at: int) -> tuple[int, int]:
    """Reads a number in LEB128, and returns it with the place after it."""
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if not byte & 0x80:
            return value, at
