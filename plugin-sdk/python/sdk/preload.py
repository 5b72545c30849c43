"""Loads, while the plugin is built, modules that a call would otherwise load.

A component contains the source of every module that it can import, but it compiles
a module in each call that imports it. Therefore, the modules that functions of the
plugin import are imported in advance, and those that Python's library imports on
demand. Used only in a component.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from types import ModuleType

#: The folder of the plugin's modules in a component.
_SOURCES = "/0/"
#: The modules that Python's library imports on demand, by the module that needs them.
_LATER = {
    "datetime": ["_strptime"],
    "time": ["_strptime"],
    "re": ["unicodedata"],
    "urllib.parse": ["unicodedata"],
    "traceback": ["_suggestions", "difflib"],
    "ast": ["_ast_unparse"],
    "collections": ["heapq"],
    "codecs": [
        f"encodings.{name}"
        for name in (
            "ascii", "cp1252", "idna", "latin_1", "punycode", "unicode_escape",
            "utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_8_sig",
        )
    ],
}  # fmt: skip


def preload() -> None:
    """Imports the modules that functions of the plugin import, and those that Python's library imports on demand."""
    seen: set[str] = set()
    while ahead := [name for name in sys.modules if name not in seen]:
        seen.update(ahead)
        for name in ahead:
            for later in [*_LATER.get(name, []), *_in_functions(sys.modules[name])]:
                # An import for another system, or of a module that is not
                # installed, is not an error yet.
                with contextlib.suppress(Exception):
                    importlib.import_module(later)


def _in_functions(module: ModuleType) -> Iterator[str]:
    """Returns the modules that the functions of a module import, if it is one of the plugin's own."""
    # Reading all modules of large packages would make builds slow.
    if not str(getattr(module, "__file__", None)).startswith(_SOURCES):
        return
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):
        return
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for node in ast.walk(function):
                yield from _named(node, module)


def _named(node: ast.AST, module: ModuleType) -> Iterator[str]:
    """Returns the modules that an import statement may refer to."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            base = importlib.util.resolve_name("." * node.level + base, module.__package__)
        yield base
        # For `from package import module`. If the name is not a module, the import fails.
        yield from (f"{base}.{alias.name}" for alias in node.names)
