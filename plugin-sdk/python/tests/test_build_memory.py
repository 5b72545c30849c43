"""What makes two builds the same: the library that runs before Python, and the parts of the memory that are cleared."""

import unittest

from tests.support import TestCase
from toolbay.build import componentize, snapshot, startup

_CLOCK = 0x2000
_MAGIC = 0x3000
_TIME = _MAGIC + snapshot._ALLOCATOR_TIME.start
_GUARD = 0x2100


def component(memory: dict[int, bytes]) -> bytes:
    """Returns a component with these parts of its memory, as componentize-py writes it."""
    values = {
        "__stack_low": 0,
        "__stack_high": 0x1000,
        f"{snapshot._CLOCK_LIBRARY}:memory_base": _CLOCK - snapshot._CLOCK_OFFSET,
        "libc.so:__stack_chk_guard": _GUARD,
    }
    constants = [bytes([0x7F, 0]) + startup._const(value) + b"\x0b" for value in values.values()]
    exports = [startup._text(name) + b"\x03" + startup._unsigned(at) for at, name in enumerate(values)]
    parts = [b"\0" + startup._const(start) + b"\x0b" + startup._sized(content) for start, content in memory.items()]
    module = b"".join(
        [
            b"\0asm\1\0\0\0",
            startup._section(6, startup._vector(constants)),
            startup._section(7, startup._vector([*exports, startup._text("start") + b"\0\0"])),
            startup._section(11, startup._vector(parts)),
        ]
    )
    return b"\0asm\x0d\0\1\0" + startup._section(0, b"\4name") + startup._section(1, module)


def clock(seconds: int, nanoseconds: int) -> bytes:
    return seconds.to_bytes(8, "little") + nanoseconds.to_bytes(8, "little")


def numbers(secret: bytes) -> bytes:
    """Returns the state of the random numbers of mimalloc."""
    return secret[:12] + b"expand 32-byte k" + secret[:32] + b"\1" + bytes(15) + secret[:64]


def build(seconds: int, secret: bytes, milliseconds: "int | None" = None) -> bytes:
    made = seconds * 1000 + 7 if milliseconds is None else milliseconds
    return component(
        {
            0x0F00: secret + b"\0" * 64 + b"kept",
            _CLOCK: clock(seconds, 7_000_000) + b"kept",
            _GUARD: secret[:4] + b"kept",
            _MAGIC - 12: numbers(secret),
            _TIME: made.to_bytes(8, "little") + b"kept",
            0x100000: b"the plugin's own: expand 32-byte k" + bytes(range(64)),
        }
    )


class SnapshotTest(TestCase):
    def test_what_differs_between_builds_is_cleared(self) -> None:
        first, second = build(13, bytes(range(1, 129))), build(9, bytes(range(100, 228)))
        self.assertNotEqual(first, second)
        self.assertEqual(snapshot.normalized(first, b"toyb"), snapshot.normalized(second, b"toyb"))

    def test_everything_else_is_kept(self) -> None:
        made = snapshot._read(bytearray(snapshot.normalized(build(13, bytes(range(1, 129))), b"toyb")))
        assert made is not None
        self.assertEqual(made.read(0x0F00, 0x0FC4 + 1), bytes(0xC5))
        self.assertEqual(made.read(_CLOCK, _CLOCK + 20), bytes(16) + b"kept")
        self.assertEqual(made.read(_GUARD, _GUARD + 8), b"toybkept")
        self.assertEqual(made.read(_TIME, _TIME + 12), bytes(8) + b"kept")
        self.assertEqual(made.read(_MAGIC, _MAGIC + 16), b"expand 32-byte k")
        own = b"the plugin's own: expand 32-byte k" + bytes(range(64))
        self.assertEqual(made.read(0x100000, 0x100000 + len(own)), own)

    def test_a_value_that_is_no_time_of_the_build_is_kept(self) -> None:
        secret = bytes(range(1, 129))
        made = snapshot._read(bytearray(snapshot.normalized(build(13, secret, milliseconds=99_000), b"toyb")))
        assert made is not None
        self.assertEqual(made.read(_TIME, _TIME + 8), (99_000).to_bytes(8, "little"))
        self.assertEqual(made.read(_MAGIC - 12, _MAGIC), secret[:12])

    def test_a_component_of_another_toolchain_is_kept(self) -> None:
        for other in (b"\0asm\x0d\0\1\0", b"\0asm\x0d\0\1\0" + startup._section(1, b"\0asm\1\0\0\0")):
            self.assertEqual(snapshot.normalized(other, b"toyb"), other)


class StartupTest(TestCase):
    def test_the_library_depends_on_the_variables(self) -> None:
        one, two = (startup.library({"PYTHONHASHSEED": seed}) for seed in ("1", "2"))
        self.assertIn(b"PYTHONHASHSEED\x001\0", one)
        self.assertIn(b"PYTHONHASHSEED\x002\0", two)
        self.assertEqual(one, startup.library({"PYTHONHASHSEED": "1"}))

    def test_numbers_are_encoded_as_in_webassembly(self) -> None:
        self.assertEqual([startup._unsigned(value) for value in (0, 127, 128, 624485)], [b"\0", b"\x7f", b"\x80\1", b"\xe5\x8e\x26"])
        for value in (0, 63, 64, -1, -64, -65, 1048576, -123456):
            encoded = bytearray(b"\x41" + startup._signed(value) + b"\x0b")
            self.assertEqual(snapshot._constant(encoded, 0), (value, len(encoded)))


class DigestTest(TestCase):
    def test_the_seed_depends_on_each_file_and_not_on_the_order(self) -> None:
        files = {"/0/a.py": b"a", "/0/b.py": b"b"}
        digest = componentize._digest(files, "{}")
        self.assertEqual(digest, componentize._digest(dict(reversed(files.items())), "{}"))
        for other in ({"/0/a.py": b"ab", "/0/b.py": b""}, {"/0/a.py": b"b", "/0/b.py": b"a"}, {"/0/a.py": b"a"}):
            self.assertNotEqual(digest, componentize._digest(other, "{}"))
        self.assertNotEqual(digest, componentize._digest(files, "{ }"))


if __name__ == "__main__":
    unittest.main()
