"""Imports modules from the archive, and explains imports that fail in a call."""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.abc import MetaPathFinder
from types import CodeType, ModuleType

from .archive import FILE_TIME, Archive

#: Where the build mounts the plugin's `src`, and what tracebacks call it.
_SOURCES = "/0/"
_SOURCES_NAME = "src/"


class ArchivedLoader(importlib.machinery.SourceFileLoader):
    """Compiles a module from its source in the archive."""

    def __init__(self, fullname: str, path: str, archive: Archive) -> None:
        super().__init__(fullname, path)
        self._archive = archive

    def get_code(self, fullname: str) -> CodeType:
        # Not `SourceFileLoader.get_code`, which reads and writes compiled files.
        path = self.get_filename(fullname)
        return compile(self.get_data(path), shown_path(path), "exec", dont_inherit=True)

    def get_data(self, path: str) -> bytes:
        try:
            return self._archive.read(path)
        except KeyError:
            return super().get_data(path)

    def path_stats(self, path: str) -> dict[str, float]:
        return {"mtime": FILE_TIME, "size": self._archive.size(path)}


def shown_path(path: str) -> str:
    """Returns the path of a source file in tracebacks: for a file of the plugin, its path in the project."""
    return _SOURCES_NAME + path[len(_SOURCES) :] if path.startswith(_SOURCES) else path


class ArchivedFinder:
    """Finds the modules in one folder of the archive."""

    def __init__(self, folder: str, archive: Archive) -> None:
        if not archive.is_folder(folder):
            raise ImportError("not a folder of the archive", path=folder)
        self._folder = folder
        self._archive = archive

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        name = fullname.rpartition(".")[2]
        base = f"{self._folder}/{name}"
        for path, is_package in ((f"{base}/__init__.py", True), (f"{base}.py", False)):
            if self._archive.is_file(path):
                loader = ArchivedLoader(fullname, path, self._archive)
                spec = importlib.machinery.ModuleSpec(fullname, loader, origin=path, is_package=is_package)
                spec.has_location = True
                if spec.submodule_search_locations is not None:
                    spec.submodule_search_locations.append(base)
                return spec
        if self._archive.is_folder(base):
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [base]
            return spec
        return None

    def invalidate_caches(self) -> None:
        """Does nothing: an archive does not change."""

    def iter_modules(self, prefix: str = "") -> Iterator[tuple[str, bool]]:
        """Returns the modules in the folder, for `pkgutil.iter_modules`."""
        for name in self._archive.names(self._folder):
            path = f"{self._folder}/{name}"
            if self._archive.is_file(f"{path}/__init__.py"):
                yield prefix + name, True
            elif name.endswith(".py") and name != "__init__.py":
                yield prefix + name[:-3], False


class MissingFinder(MetaPathFinder):
    """The last finder: explains why a module that exists elsewhere is not in the component.

    `reasons` has the modules on the machine that built the plugin. A package may
    catch the `ImportError` and continue with less, so the reason is also written
    to standard error, once.
    """

    def __init__(self, reasons: Mapping[str, str]) -> None:
        self._reasons = reasons
        self._reported: set[str] = set()
        #: Set after the build: imports that fail in the build are often alternatives.
        self.is_running = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        name, dot, _ = fullname.partition(".")
        reason = self._reasons.get(fullname) or self._reasons.get(name)
        if reason is None or (dot and name in sys.modules and fullname not in self._reasons):
            return None
        if self.is_running and fullname not in self._reported:
            self._reported.add(fullname)
            print(f"import {fullname}: {reason}", file=sys.stderr)
        raise ModuleNotFoundError(f"No module named {fullname!r}: {reason}", name=fullname)
