"""The world of `wit/python.wit` that a plugin targets: the one with exactly its offers.

    componentize-py -d toolbay/wit -w $(python -B -m toolbay.worlds src) componentize …

imports `app.py` from the folder `src` and writes the name of its world. With
`-B`, it leaves no files in the folder of the sources.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

from . import registry
from .errors import DefinitionError
from .registry import Offers

#: The interfaces of the contract, by their classes in Python, in the order in which worlds name them.
_PARTS = ("Tools", "Prompts", "Resources", "Completion")


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
            f"write `-w {world(parts)}` in the build command, in plugin.toml"
        )


def _words(part: str) -> str:
    return "completions" if part == "Completion" else part.lower()


def main(folder: str) -> None:
    """Writes the name of the world of the `app.py` in `folder`."""
    sys.path.insert(0, folder)
    parts: Sequence[str] = _PARTS
    # The build reports an error in the module better, for any world.
    with contextlib.suppress(Exception, SystemExit), contextlib.redirect_stdout(sys.stderr):
        import app  # type: ignore[import-not-found] # noqa: F401  The plugin.

        parts = needed(registry.offers()) or _PARTS
    print(world(parts))


if __name__ == "__main__":
    main(*sys.argv[1:])
