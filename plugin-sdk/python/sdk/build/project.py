"""The settings of the build, in `plugin.toml`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import BuildError

if sys.version_info >= (3, 11):
    import tomllib
else:
    # pip is in every virtual environment.
    from pip._vendor import tomli as tomllib

FILE_NAME = "plugin.toml"


@dataclass(frozen=True)
class Project:
    """A project's settings."""

    #: The file that the build makes.
    output: Path
    #: Names of packages that go into the component although no module imports them by name.
    include: tuple[str, ...] = ()
    #: Patterns of files in packages that stay out, such as `babel/locale-data/[a-d]*`.
    exclude: tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> Project:
        """Reads `plugin.toml` in a folder."""
        path = folder / FILE_NAME
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise BuildError(f"cannot read {path}: {error.strerror}") from error
        except tomllib.TOMLDecodeError as error:
            raise BuildError(f"{FILE_NAME}: {error}") from error
        python = document.get("python", {})
        if not isinstance(python, dict):
            raise BuildError(f"{FILE_NAME}: python: write a table, [python]")
        for key in python:
            if key not in ("include", "exclude"):
                raise BuildError(f"{FILE_NAME}: python.{key}: there is no such key; it has `include` and `exclude`")
        output = document.get("output")
        if not isinstance(output, str):
            raise BuildError(f'{FILE_NAME}: output: write the path of the component, such as "plugin.wasm"')
        return cls(folder / output, _texts(python, "include"), _texts(python, "exclude"))


def _texts(table: dict[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BuildError(f'{FILE_NAME}: python.{key}: write a list of texts, such as ["pygments"]')
    return tuple(value)
