"""The world of `wit/python.wit` that a plugin targets: the one with exactly its offers.

    python -B -m toolbay.worlds src

imports `app.py` from the folder `src` and writes the name of its world, for a
build command of your own. With `-B`, it leaves no files in the folder of the
sources. `python -B -m toolbay.build` finds the world itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from . import registry
from .errors import DefinitionError
from .registry import Offers


def needed(offered: Offers) -> list[str]:
    """Returns the interfaces of the plugin's offers."""
    parts = {
        "Tools": bool(offered.tools),
        "Prompts": bool(offered.prompts),
        "Resources": bool(offered.resources),
        "Completion": registry.completes(offered),
    }
    return [part for part, is_offered in parts.items() if is_offered]


def world(parts: Sequence[str]) -> str:
    """Returns the world with these interfaces."""
    return "python" if list(parts) == ["Tools"] else f"python-{'-'.join(parts).lower()}"


def check(offered: Offers, exported: set[str]) -> None:
    """Raises a `DefinitionError` if the component that is being built does not export the plugin's offers."""
    parts = needed(offered)
    if not parts:
        raise DefinitionError("app.py offers nothing: put `@tool`, `@prompt` or `@resource` above a function")
    # An argument that is a choice is completed only if the world has completion.
    missing = [part for part in parts if part not in exported and (part != "Completion" or offered.completions)]
    if missing:
        raise DefinitionError(
            f"app.py has {', '.join(_words(part) for part in missing)} that the component would not export: "
            f"write `--world {world(parts)}` in the build command, in plugin.toml"
        )


def _words(part: str) -> str:
    return "completions" if part == "Completion" else part.lower()


def of_plugin() -> str:
    """Returns the world of the plugin that has been imported. Raises a `DefinitionError` if it offers nothing."""
    parts = needed(registry.offers())
    check(registry.offers(), set(parts))
    return world(parts)


def main(folder: str) -> int:
    """Writes the name of the world of the `app.py` in `folder`. Returns the exit code."""
    # Only here: the component does not contain the build.
    from .build import __main__ as build
    from .build.errors import BuildError

    try:
        print(build.needed_world(Path(folder).resolve()))
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
