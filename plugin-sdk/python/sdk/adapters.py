"""Adapts modules to a component when they are imported: the standard library's, and those of popular packages.

A component has no sockets, no threads and no temporary folder of its own. It has
the host's HTTP requests and events instead. Used only in a component.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

#: The module of the SDK that adapts a module, by the latter's name.
_ADAPTERS = {
    "asyncio": "eventloop",
    "concurrent.futures": "threads",
    "http.client": "httpclient",
    "httpx": "httpxtransport",
    "openpyxl.writer.excel": "scratch",
    "posixpath": "home",
    "requests.adapters": "urllib3connection",
    "socket": "sockets",
    "sqlite3": "databases",
    "tempfile": "scratch",
    "threading": "threads",
    "urllib.request": "web",
    "urllib3.connectionpool": "urllib3connection",
}


def install() -> None:
    """Adapts the modules that are already imported, and the others as soon as they are."""
    sys.meta_path.insert(0, _Finder())
    for name in _ADAPTERS:
        if name in sys.modules:
            _adapt(sys.modules[name])


def _adapt(module: ModuleType) -> None:
    try:
        adapter = importlib.import_module(f".{_ADAPTERS[module.__name__]}", __package__)
    except ImportError as error:
        # Not in the world `plugin`, which older projects target.
        if (error.name or "").partition(".")[0] != "wit_world":
            raise
        return
    adapter.adapt(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that are adapted, with the other finders."""

    def __init__(self) -> None:
        self._open: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _ADAPTERS or fullname in self._open:
            return None
        self._open.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._open.discard(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    """Loads a module with its own loader, and adapts it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The module has no trace of this loader, which has no source code.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _adapt(module)


def finish() -> None:
    """Ends the build: sockets can be opened, and nothing of the machine that built the plugin is kept."""
    for name in ("sockets", "scratch"):
        # Only of those adapters that are in use.
        with contextlib.suppress(KeyError):
            sys.modules[f"{__package__}.{name}"].finish()
