"""Explains that a component has no threads. Used only in a component."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

_WORDS = (
    "a plugin has no threads: call the function directly; to wait for several requests at once, write an "
    "`async` function with `asyncio.gather`"
)


def adapt(module: ModuleType) -> None:
    """Makes the start of a thread fail in words."""
    if module.__name__ == "concurrent.futures":
        # Imported on demand, which a component cannot do.
        importlib.import_module("concurrent.futures.thread")
        return

    def start(self: Any) -> None:
        raise RuntimeError(_WORDS)

    module.Thread.start = start  # type: ignore[attr-defined]
