"""The module from which `componentize-py` builds a component: imports the plugin from the archive.

It runs once, while the plugin is built, and the component is a snapshot of the
memory at the end. After `_prepare`, no import reads the build's folders.
"""

from __future__ import annotations

import importlib
import json
import linecache
import logging
import os
import sys
from types import ModuleType
from typing import Any

from . import files, memory, modules, standard_library
from .archive import Archive

#: Where the build mounts this package and its archive.
_HERE = "/1"
_STAND_INS = f"{_HERE}/toolbay_guest/stand_ins"

ARCHIVE = Archive()


def _prepare() -> tuple[dict[str, Any], modules.MissingFinder]:
    """Sets up imports and files. Returns the build's settings."""
    with open(f"{_HERE}/settings.json", encoding="utf-8") as file:
        settings: dict[str, Any] = json.load(file)
    standard_library.add(ARCHIVE)
    with open(f"{_HERE}/archive.bin", "rb") as file:
        ARCHIVE.add_all(file.read())
    # As on the author's machine, the plugin's modules are found before Python's.
    sys.path[:] = ["/0", _STAND_INS, "/python", "/world", _HERE, "/2", "/bundled"]
    sys.path_hooks.insert(0, lambda folder: modules.ArchivedFinder(folder, ARCHIVE))
    sys.path_importer_cache.clear()
    files.ArchivedFiles(ARCHIVE).install()
    missing = modules.MissingFinder(settings["missing"])
    sys.meta_path.append(missing)
    # A component has no users. Packages import these functions for paths that they never use.
    for name in ("getuid", "geteuid", "getgid", "getegid"):
        if not hasattr(os, name):
            setattr(os, name, lambda: 65534)
    return settings, missing


_settings, _missing = _prepare()

for _name in _settings["first"]:
    importlib.import_module(_name)
_module: ModuleType = importlib.import_module(_settings["module"])


def _finish() -> None:
    """Ends the build. Runs last, when no more modules are imported."""
    import random

    _missing.is_running = True
    # The runtime seeds it again in each call.
    random.seed(0)
    logging._startTime = 0  # type: ignore[attr-defined]
    # The build's folders are not there in a call.
    sys.path_importer_cache.clear()
    linecache.clearcache()
    memory.restore(_HERE)


def __getattr__(name: str) -> Any:
    """Returns a class of the plugin whose functions the component exports: `componentize-py` reads only these."""
    found = getattr(_module, name)

    class Exported(found):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            _finish()

    return Exported
