"""Packages with native code, and what to use instead."""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import importlib.util
import sys
import sysconfig
import warnings
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType

from .errors import NativeImportError

_MODELS = "dataclasses, `TypedDict` or `Annotated[...]` in the parameters and results of tools"

#: What to use instead of a package, by the name that is imported.
INSTEAD = {
    "dateparser": "the package `python-dateutil`",
    "deepdiff": "the package `dictdiffer`",
    "googleapiclient": "the service's HTTP API, with `httpx`",
    "sendgrid": "the service's HTTP API, with `httpx`",
    "numpy": "lists with `statistics`, `math` and `array`, or a plugin in Rust or Go",
    "pandas": "`csv` and `sqlite3`, or the package `agate`",
    "polars": "`csv` and `sqlite3`",
    "pyarrow": "`csv` or `json`",
    "scipy": "`statistics` and `math`, or the package `mpmath`",
    "matplotlib": "the package `pygal`, which writes SVG",
    "sklearn": "a plugin in Rust",
    "pydantic": _MODELS,
    "pydantic_core": _MODELS,
    "mcp": "the SDK that you already have: `from toolbay import tool`, which has FastMCP's decorators",
    "fastmcp": "the SDK that you already have: `from toolbay import tool`, which has FastMCP's decorators",
    "msgspec": f"`json`, and {_MODELS}",
    "orjson": "`json`",
    "ujson": "`json`",
    "rapidjson": "`json`",
    "lxml": "`xml.etree.ElementTree`, or the package `html5lib` for HTML",
    "docx": "`zipfile` and `xml.etree.ElementTree` (python-docx needs lxml)",
    "pptx": "`zipfile` and `xml.etree.ElementTree` (python-pptx needs lxml)",
    "PIL": "the package `pypng`, or a plugin in Rust with the crate `image`",
    "cv2": "a plugin in Rust with the crate `image`",
    "cryptography": "`hashlib`, `hmac` and `secrets`; the packages `rsa` and `ecdsa`; PyJWT with HS256",
    "Crypto": "`hashlib`, `hmac` and `secrets`; the packages `rsa` and `ecdsa`",
    "nacl": "`hashlib` (BLAKE2) and `hmac`",
    "bcrypt": "`hashlib.pbkdf2_hmac`",
    "argon2": "`hashlib.pbkdf2_hmac`",
    "regex": "`re`",
    "re2": "`re`",
    "jsonschema": "jsonschema before 4.18, which is pure Python: `jsonschema<4.18`",
    "rpds": "jsonschema before 4.18, which is pure Python: `jsonschema<4.18`",
    "tiktoken": "an estimate: about four characters of English a token",
    "tokenizers": "an estimate: about four characters of English a token",
    "yarl": "`urllib.parse`",
    "aiohttp": "`urllib.request`",
    "curl_cffi": "`urllib.request`",
    "grpc": "the service's HTTP API",
    "psycopg2": "an HTTP API, or `sqlite3`",
    "asyncpg": "an HTTP API, or `sqlite3`",
    "MySQLdb": "an HTTP API, or `sqlite3`",
    "duckdb": "`sqlite3`",
    "zstandard": "`zlib`",
    "brotli": "`zlib`",
    "lz4": "`zlib`",
    "snappy": "`zlib`",
    "Levenshtein": "`difflib`",
    "rapidfuzz": "`difflib`",
    "jellyfish": "`difflib`",
    "jiter": "`json`",
    "openai": "the service's HTTP API with `urllib.request` (openai needs pydantic and jiter)",
    "anthropic": "the service's HTTP API with `urllib.request` (anthropic needs pydantic and jiter)",
    "ruamel": "the package `PyYAML`",
    "xxhash": "`hashlib` or `zlib.crc32`",
    "greenlet": "plain functions: there are no threads",
    "gevent": "plain functions: there are no threads",
    "psutil": "nothing: a plugin does not see the machine",
    "watchfiles": "nothing: a plugin does not see the machine",
    "uvloop": "`asyncio`",
    "torch": "a service with an HTTP API",
    "tensorflow": "a service with an HTTP API",
}


class NativeFinder(MetaPathFinder):
    """Refuses native modules outside Python's own library, as the component does.

    A package that has a substitute in Python then uses it, also on the author's
    machine.
    """

    def __init__(self) -> None:
        self.refused: list[str] = []
        # Python's own native modules are not refused.
        self._own = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and isinstance(spec.loader, importlib.machinery.ExtensionFileLoader):
            file = Path(spec.origin or "")
            if not self._is_own(file):
                source = file.with_name(file.name.partition(".")[0] + ".py")
                if source.is_file():
                    # A module that was compiled from Python, next to its source.
                    return importlib.util.spec_from_file_location(fullname, source)
                self.refused.append(fullname)
                raise NativeImportError(f"{fullname} is native code", name=fullname, path=spec.origin)
        return None

    def _is_own(self, file: Path) -> bool:
        folder = file.resolve().parent
        return any(folder in (own, own / "lib-dynload") for own in self._own)

    def __enter__(self) -> NativeFinder:
        sys.meta_path.insert(0, self)
        return self

    def __exit__(self, *error: object) -> None:
        sys.meta_path.remove(self)


def can_import(name: str) -> bool:
    """Returns whether a module can be imported without native code. Imports it."""
    with NativeFinder(), contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            importlib.import_module(name)
        except (Exception, SystemExit):
            return False
    return True


def is_native(name: str) -> bool:
    """Returns whether a file is native code."""
    return name.endswith((*importlib.machinery.EXTENSION_SUFFIXES, ".so", ".pyd", ".dylib"))


def instead(names: Sequence[str]) -> str:
    """Returns what to use instead of a chain of packages, the author's import first."""
    known = next((name for name in names if name in INSTEAD), None)
    if known is None:
        return "look for a package in pure Python (a wheel that ends in `py3-none-any.whl`)"
    if known == names[0]:
        return f"use {INSTEAD[known]}"
    return f"look for another package than {names[0]}; instead of {known}, use {INSTEAD[known]}"
