"""Gives Python its own allocators again, which the build replaced: see `toolbay.build.startup`."""

from __future__ import annotations

import _imp
import gc
from importlib.machinery import ExtensionFileLoader, ModuleSpec

_LIBRARY = "toolbay_startup"


def restore(folder: str) -> None:
    """Ends the clearing of memory. Until then, memory that is not in use is zero."""
    gc.collect()
    _overwrite()
    path = f"{folder}/{_LIBRARY}.abi3.so"
    spec = ModuleSpec(_LIBRARY, ExtensionFileLoader(_LIBRARY, path), origin=path)
    try:
        # It is not a module. The function that would make one does the work.
        _imp.create_dynamic(spec)
    except SystemError:
        return
    raise ImportError("the library of the build is not what it should be", path=path)


def _overwrite() -> None:
    """Takes and clears the free blocks up to 1 KiB, in which the host put random numbers."""
    # The host's answers are not in blocks of Python's allocators.
    held = [bytes(size) for size in range(1024, 0, -16) for _ in range(64)]
    del held
