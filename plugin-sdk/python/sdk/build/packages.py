"""Chooses the files of the component: the plugin's own, and those of the packages that it imports."""

from __future__ import annotations

import fnmatch
import importlib.metadata
import os
import re
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import natives
from .errors import BuildError
from .project import Project

#: Packages of the build and of development, which are in the same environment.
_TOOLS = frozenset("_distutils_hack componentize_py pip pkg_resources setuptools wheel".split())
#: Packages that a module imports by a computed name, or whose data it reads.
_COMPUTED = {"zoneinfo": "tzdata"}
_IGNORED_ENDINGS = (".pyc", ".pyo", ".pyi", ".c", ".h", ".pyx", ".pxd", ".wasm")
#: Of a package's metadata: its version, and what it registers.
_METADATA = ("METADATA", "entry_points.txt", "top_level.txt")
_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+([A-Za-z_][\w.]*)[ \t]+import|import[ \t]+([A-Za-z_][\w., \t]*))", re.MULTILINE
)
#: A package that is larger is worth a line of the build's output.
_NOTEWORTHY_BYTES = 8_000_000

#: The folders of the component.
SOURCES = "/0"
BUILD = "/1"
PACKAGES = "/2"


@dataclass
class Selection:
    """The files of a component."""

    #: Contents by the paths in the component.
    files: dict[str, bytes] = field(default_factory=dict)
    #: Why modules that are installed on this machine are not in the component.
    missing: dict[str, str] = field(default_factory=dict)
    #: Lines for the author.
    notes: list[str] = field(default_factory=list)

    def names(self, module: bytes) -> bool:
        """Returns whether a module of the component names another one."""
        return any(module in content for path, content in self.files.items() if path.endswith(".py"))


class Environment:
    """The packages that are installed on this machine."""

    def __init__(self, folders: Iterable[Path]) -> None:
        #: The files and folders of importable modules, by name.
        self.modules: dict[str, Path] = {}
        for folder in folders:
            for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
                name = entry.name.partition(".")[0]
                is_module = (
                    entry.suffix == ".py" or natives.is_native(entry.name) or (entry.is_dir() and name == entry.name)
                )
                if is_module and name.isidentifier() and name not in ("__pycache__",):
                    self.modules.setdefault(name, entry)

    @classmethod
    def current(cls) -> Environment:
        """Returns the packages of the Python that runs the build, and those in the folders of `PYTHONPATH`."""
        added = (path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path)
        # The SDK is added separately.
        own = [path for path in added if not Path(path, "toolbay").exists()]
        paths = dict.fromkeys([*own, *(sysconfig.get_path(name) for name in ("purelib", "platlib"))])
        return cls(Path(path) for path in paths)

    def files(self, name: str) -> Iterator[tuple[str, Path]]:
        """Returns the files of a module or package, by their paths in the component."""
        entry = self.modules[name]
        if entry.is_dir():
            yield from files(entry, f"{PACKAGES}/{entry.name}")
        else:
            yield f"{PACKAGES}/{entry.name}", entry

    def has_native_code(self, name: str) -> bool:
        return any(natives.is_native(path) for path, _ in self.files(name))


def select(
    project: Project,
    sources: Path,
    environment: Environment,
    imported: Iterable[str],
    can_import: Callable[[str], bool] = natives.can_import,
) -> Selection:
    """Returns the files of the plugin in `sources`, after `imported` modules were imported on this machine.

    `can_import` returns whether a package with native code can be imported without it.
    """
    selection = Selection()
    for path, file in files(sources, SOURCES):
        if not natives.is_native(path):
            selection.files[path] = file.read_bytes()
    own = {path: content for path, content in selection.files.items() if path.endswith(".py")}
    loaded = {name.partition(".")[0] for name in imported}
    # A project may have a copy of the SDK, which is added separately, next to its sources.
    waiting = [name for name in sorted(loaded | _named(own)) if name in environment.modules or name in _COMPUTED]
    for name in project.include:
        module = name.replace("-", "_")
        if module not in environment.modules:
            raise BuildError(
                f"plugin.toml: python.include: no module {name!r} is installed; write the name that is imported, and "
                "add its package to requirements.txt"
            )
        if environment.has_native_code(module) and not (module in loaded or can_import(module)):
            raise BuildError(f"plugin.toml: python.include: {name} has native code: {natives.instead([name])}")
        waiting.append(module)
    chosen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in chosen or name in _TOOLS:
            continue
        chosen.add(name)
        if name in _COMPUTED:
            waiting.append(_COMPUTED[name])
            continue
        if name not in environment.modules:
            selection.missing[name] = f"it is not installed: add `{name}` to requirements.txt, and install it"
            continue
        if name not in loaded and environment.has_native_code(name) and not can_import(name):
            # A function imports it, or a package that only uses it if it can.
            continue
        added = _package(project, environment, name)
        selection.files.update(added)
        size = sum(map(len, added.values()))
        if size > _NOTEWORTHY_BYTES:
            selection.notes.append(
                f"{name} has {size / 1e6:.0f} MB of files, most of them in {_largest_folder(added)}; write patterns of "
                "those that the plugin does not need in plugin.toml, as `exclude` under [python]"
            )
        modules = {path: content for path, content in added.items() if path.endswith(".py")}
        waiting.extend(found for found in _named(modules) if found in environment.modules or found in _COMPUTED)
    for name in environment.modules:
        if not _is_in(name, selection):
            selection.missing.setdefault(name, _reason(name, environment))
    selection.files.update(_metadata(chosen))
    return selection


def _largest_folder(files: Mapping[str, bytes]) -> str:
    sizes: Counter[str] = Counter()
    for path, content in files.items():
        sizes[path.removeprefix(f"{PACKAGES}/").rpartition("/")[0]] += len(content)
    return sizes.most_common(1)[0][0]


def _is_in(name: str, selection: Selection) -> bool:
    return any(path.startswith((f"{PACKAGES}/{name}/", f"{PACKAGES}/{name}.py")) for path in selection.files)


def _reason(name: str, environment: Environment) -> str:
    if environment.has_native_code(name):
        return f"it has native code; {natives.instead([name])}"
    return (
        "it is installed on the machine that built the plugin, but it is not in the component: write "
        f'`include = ["{name}"]` under [python] in plugin.toml'
    )


def _package(project: Project, environment: Environment, name: str) -> dict[str, bytes]:
    files = {}
    for path, file in environment.files(name):
        inner = path.removeprefix(f"{PACKAGES}/")
        if natives.is_native(path) or any(fnmatch.fnmatch(inner, pattern) for pattern in project.exclude):
            continue
        files[path] = file.read_bytes()
    return files


def _named(modules: Mapping[str, bytes]) -> set[str]:
    """Returns the first part of the names that modules import, at their top level or later."""
    names = set()
    for content in modules.values():
        for module, several in _IMPORT.findall(content):
            for name in [module] if module else several.split(b","):
                words = name.split()
                if words:
                    names.add(words[0].partition(b".")[0].decode())
    return names


def files(folder: Path, base: str) -> Iterator[tuple[str, Path]]:
    """Returns the files below a folder that a plugin can use, in the order of their names."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name.startswith("."):
            continue
        path = f"{base}/{entry.name}"
        if entry.is_dir():
            # A package's tests import packages that it does not need.
            is_tests = entry.name in ("test", "tests") and base.startswith(PACKAGES)
            if entry.name not in ("__pycache__", "node_modules") and not is_tests:
                yield from files(Path(entry.path), path)
        elif entry.is_file() and not entry.name.endswith(_IGNORED_ENDINGS):
            yield path, Path(entry.path)


def _metadata(chosen: set[str]) -> dict[str, bytes]:
    """Returns the metadata of packages, for `importlib.metadata`."""
    owners = importlib.metadata.packages_distributions()
    files = {}
    for owner in sorted({owner for name in chosen for owner in owners.get(name, [])}):
        distribution = importlib.metadata.distribution(owner)
        # The folder's name has the version as the package wrote it.
        folder = getattr(distribution, "_path", None)
        for name in _METADATA:
            text = distribution.read_text(name)
            if text is not None and folder is not None:
                files[f"{PACKAGES}/{folder.name}/{name}"] = text.encode()
    return files
