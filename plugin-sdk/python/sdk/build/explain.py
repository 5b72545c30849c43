"""Explains errors of the author's modules in one line, with the place in the author's files."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType

from . import natives
from .errors import BuildError, NativeImportError


def error_line(error: BaseException, sources: Path) -> str:
    """Returns the line for an error of the import of the modules in `sources`."""
    if isinstance(error, BuildError):
        return str(error)
    native = next((cause for cause in _causes(error) if isinstance(cause, NativeImportError)), None)
    if native is not None:
        return _native_line(native, error, sources)
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{_shown(Path(error.filename), sources)}:{error.lineno}: {type(error).__name__}: {error.msg}"
    place = _place(error, sources)
    if isinstance(error, ModuleNotFoundError) and error.name:
        top = error.name.partition(".")[0]
        if error.name == top and top not in sys.stdlib_module_names:
            return (
                f"{place}no module {top!r} is installed: add its package to requirements.txt, and install it with "
                "`.venv/bin/pip install -r requirements.txt`"
            )
    return f"{place}{_description(error)}"


def _native_line(native: NativeImportError, error: BaseException, sources: Path) -> str:
    # A package that reports a failed import in an error of its own is only in the traceback of that error.
    chain: list[str] = []
    for cause in _causes(error):
        chain += [name for name in _packages(cause, sources) if name not in chain]
        if cause is native:
            break
    top = (native.name or "").partition(".")[0]
    if not chain or chain[-1] != top:
        chain.append(top)
    needs = f"{chain[0]} has native code" if len(chain) == 1 else f"{chain[0]} needs native code ({' > '.join(chain)})"
    place = _place(native, sources) or _place(error, sources)
    return f"{place}{needs}, and a plugin is pure Python: {natives.instead(chain)}"


def _description(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the module ends the program: SystemExit({error.code!r})"
    text = str(error)
    # The SDK's errors are sentences.
    if type(error).__name__ == "DefinitionError":
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _place(error: BaseException, sources: Path) -> str:
    """Returns the last line of the author's that led to an error, or of a package if there is none."""
    for cause in _causes(error):
        lines = [(Path(frame.f_code.co_filename), line) for frame, line in _frames(cause.__traceback__)]
        own = [(file, line) for file, line in lines if file.is_relative_to(sources)]
        if own:
            file, line = own[-1]
            return f"{_shown(file, sources)}:{line}: "
    return ""


def _packages(error: BaseException, sources: Path) -> list[str]:
    """Returns the packages of the frames between the author's last line and an error."""
    names: list[str] = []
    for frame, _ in _frames(error.__traceback__):
        if Path(frame.f_code.co_filename).is_relative_to(sources):
            names = []
            continue
        top = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if top and top not in names and top not in sys.stdlib_module_names and top != "toolbay":
            names.append(top)
    return names


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Returns an error and those that led to it."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _frames(start: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    return traceback.walk_tb(start)


def _shown(file: Path, sources: Path) -> str:
    """Returns a path as the author writes it."""
    for base in (Path.cwd(), sources.parent):
        if file.is_relative_to(base):
            return file.relative_to(base).as_posix()
    return str(file)
