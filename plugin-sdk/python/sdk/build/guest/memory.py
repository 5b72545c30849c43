"""Gives Python its own allocators again, which the build replaced: see `toolbay.build.startup`."""

from __future__ import annotations

import _imp
import gc
from importlib.machinery import ExtensionFileLoader, ModuleSpec

_LIBRARY = "toolbay_startup"


def restore(folder: str) -> None:
    """Ends the clearing of memory. Until then, memory that is not in use is zero."""
    gc.collect()
    path = f"{folder}/{_LIBRARY}.abi3.so"
    spec = ModuleSpec(_LIBRARY, ExtensionFileLoader(_LIBRARY, path), origin=path)
    try:
        # It is not a module. The function that would make one does the work.
        _imp.create_dynamic(spec)
    except SystemError:
        return
    raise ImportError("the library of the build is not what it should be", path=path)
