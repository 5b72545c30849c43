"""The modules that take the place of native ones: they can be imported, and say what to use when they are used."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

from tests.support import TestCase
from toolbay.build import guest
from toolbay.build.guest import missing

FOLDER = Path(guest.__file__).with_name("stand_ins")


def stand_in(name: str) -> ModuleType:
    """Returns a module as in a component, where the build's folder has another name."""
    spec = importlib.util.spec_from_file_location(f"stand_in_{name.replace('/', '_')}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    package = ModuleType("toolbay_guest")
    package.missing = missing  # type: ignore[attr-defined]
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, {"toolbay_guest": package}):
        spec.loader.exec_module(module)
    return module


class StandInsTest(TestCase):
    def assert_missing(self, use: Callable[[], Any], name: str) -> None:
        with self.assertRaises(missing.MissingFeatureError) as raised:
            use()
        self.assertIn(f"`{name}` is not available in a component: ", str(raised.exception))

    def test_types_of_ctypes_are_declared_and_not_used(self) -> None:
        ctypes = stand_in("ctypes/__init__")

        class Point(ctypes.Structure):  # type: ignore[name-defined,misc]
            _fields_ = [("x", ctypes.c_int * 4), ("next", ctypes.POINTER(ctypes.c_char))]

        sizes = [ctypes.sizeof(getattr(ctypes, name)) for name in ("c_void_p", "c_longlong", "c_bool", "c_long")]
        self.assertEqual(sizes, [4, 8, 1, 4])
        self.assert_missing(Point, "ctypes.Point")
        self.assert_missing(lambda: ctypes.sizeof(Point), "ctypes.sizeof")
        self.assert_missing(lambda: ctypes.CDLL("libc.so.6"), "ctypes.CDLL")
        self.assert_missing(lambda: ctypes.cdll.c, "ctypes.cdll.c")
        # Packages look for systems in this way.
        self.assertFalse(hasattr(ctypes, "windll"))
        self.assertIsNone(stand_in("ctypes/util").find_library("c"))

    def test_contexts_of_ssl_are_configured_and_not_used(self) -> None:
        ssl = stand_in("ssl")
        context = ssl.create_default_context(cafile="a.pem")
        context.set_ciphers("DEFAULT")
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.assertEqual(context.verify_mode, ssl.CERT_REQUIRED)
        self.assert_missing(lambda: context.wrap_socket(None), "ssl.SSLContext.wrap_socket")
        self.assert_missing(lambda: context.load_cert_chain("a.pem"), "ssl.SSLContext.load_cert_chain")
        self.assert_missing(ssl.MemoryBIO, "ssl.MemoryBIO")

    def test_compression_and_processes_are_not_used(self) -> None:
        self.assert_missing(stand_in("_bz2").BZ2Compressor, "bz2.BZ2Compressor")
        self.assert_missing(stand_in("_lzma").LZMADecompressor, "lzma.LZMADecompressor")
        self.assert_missing(stand_in("_multiprocessing").SemLock, "multiprocessing.SemLock")
        self.assert_missing(lambda: stand_in("mmap").mmap(-1, 1), "mmap.mmap")
        self.assert_missing(stand_in("readline").parse_and_bind, "readline.parse_and_bind")
