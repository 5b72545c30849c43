"""The command line of the build: `python -B -m toolbay.build`."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
from pathlib import Path

from . import componentize, explain, natives, packages
from .errors import BuildError
from .project import Project

#: The plugin's module.
_MODULE = "app"
#: The folder of the SDK, or of this package alone in a project of plain WIT functions.
_SDK = Path(__file__).parent.parent


def main() -> int:
    """Builds the plugin of the current folder. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -B -m toolbay.build", description="Builds the plugin.")
    parser.add_argument("--source", type=Path, default=Path("src"), help="the folder of app.py")
    parser.add_argument("--wit", type=Path, help="the folder of the WIT files; without it, the SDK's")
    parser.add_argument("--world", help="the world; without it, the one with the plugin's offers")
    options = parser.parse_args()
    sources = options.source.resolve()
    try:
        build(sources, options.wit, options.world)
    except Exception as error:
        if not isinstance(error, BuildError):
            raise
        print(error, file=sys.stderr)
        return 1
    return 0


def build(sources: Path, wit: Path | None, world: str | None) -> None:
    """Builds the plugin. Raises a `BuildError`, of one line, if that fails."""
    project = Project.read(Path.cwd())
    if not (sources / f"{_MODULE}.py").is_file():
        raise BuildError(f"{sources}: there is no {_MODULE}.py")
    is_plain = wit is not None
    before = set(sys.modules)
    if wit is not None:
        with componentize.bindings(wit, world or "plugin") as folder:
            sys.path.insert(0, str(folder))
            import_plugin(sources)
        selected = world
    else:
        selected = world or needed_world(sources)
    environment = packages.Environment.current()
    selection = packages.select(project, sources, environment, set(sys.modules) - before)
    if not is_plain:
        for path, file in packages.files(_SDK, f"{packages.BUILD}/toolbay"):
            if not path.startswith(f"{packages.BUILD}/toolbay/build/"):
                selection.files[path] = file.read_bytes()
    for note in selection.notes:
        print(note, file=sys.stderr)
    componentize.run(
        selection,
        output=project.output,
        wit=wit or _SDK / "wit",
        world=selected or "plugin",
        module=_MODULE if is_plain else "toolbay.component",
        # The SDK replaces how it connects, if it is imported when the component is built.
        first=("urllib.request",) if not is_plain and selection.names(b"urllib.request") else (),
    )


def import_plugin(sources: Path) -> None:
    """Imports the plugin as the component does, without native code."""
    sys.path.insert(0, str(sources))
    try:
        # What the plugin prints is not the output of the build.
        with natives.NativeFinder(), contextlib.redirect_stdout(sys.stderr):
            importlib.import_module(_MODULE)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise BuildError(explain.error_line(error, sources)) from error


def needed_world(sources: Path) -> str:
    """Returns the world of the plugin's offers."""
    from .. import worlds

    import_plugin(sources)
    try:
        return worlds.of_plugin()
    except Exception as error:
        raise BuildError(explain.error_line(error, sources)) from error


if __name__ == "__main__":
    sys.exit(main())
