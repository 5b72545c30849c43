"""Python's own library, of which any module can be imported in a call: every codec of `encodings`, for example."""

from __future__ import annotations

import os
import zlib

from .archive import Archive

_FOLDER = "/python"
#: The bindings of the contract, and what they use.
_BINDINGS = ("/world", "/bundled")
#: Modules that need a terminal, a window or a compiler.
_LEFT_OUT = frozenset(
    "__phello__ __pycache__ ctypes curses ensurepip idlelib lib lib2to3 pydoc_data site-packages test tkinter "
    "turtle.py turtledemo venv".split()
)
#: For a fast build: a higher level is a second slower, and 0.5 MB smaller.
_LEVEL = 1


def add(archive: Archive) -> None:
    """Adds the modules to the archive, and those of the bindings."""
    _add_folder(archive, _FOLDER, _LEFT_OUT)
    for folder in _BINDINGS:
        _add_folder(archive, folder, frozenset())


def _add_folder(archive: Archive, folder: str, left_out: frozenset[str]) -> None:
    # Only `open`, no `os.stat`: the times of files would remain in memory, and differ between builds.
    for name in sorted(os.listdir(folder)):
        path = f"{folder}/{name}"
        if name in left_out or name.startswith("config-"):
            continue
        if name.endswith(".py"):
            with open(path, "rb", buffering=0) as file:
                content = file.read()
            archive.add(path, zlib.compress(content, _LEVEL), len(content))
        elif "." not in name:
            _add_folder(archive, path, left_out)
