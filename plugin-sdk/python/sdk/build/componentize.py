"""Runs `componentize-py`, and reports its errors in words."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from . import packages, snapshot, startup
from .errors import BuildError
from .guest import archive

_GUEST = Path(__file__).with_name("guest")
_CAUSES = re.compile(r"^\s*\d+: (.*)$")
_PLACE = re.compile(r'^\s*File "(.*)", line (\d+)')


def run(
    selection: packages.Selection,
    *,
    output: Path,
    wit: Path,
    world: str,
    module: str,
    first: tuple[str, ...] = (),
) -> None:
    """Makes the component. Raises a `BuildError` if that fails."""
    with tempfile.TemporaryDirectory(prefix="toolbay-") as name:
        stage = Path(name)
        folder = stage / "build"
        shutil.copytree(_GUEST, folder / "toolbay_guest", ignore=shutil.ignore_patterns("__pycache__"))
        stand_ins = {
            path: file.read_bytes() for path, file in packages.files(_GUEST, f"{packages.BUILD}/toolbay_guest")
        }
        (folder / "archive.bin").write_bytes(archive.pack({**selection.files, **stand_ins}.items(), level=6))
        settings = {"module": module, "first": first, "missing": selection.missing}
        settings_text = json.dumps(settings, sort_keys=True)
        (folder / "settings.json").write_text(settings_text, encoding="utf-8")
        digest = _digest(selection.files, settings_text)
        # The order of a set is the same in each call, and differs between plugins.
        seed = int.from_bytes(digest[:4], "little") or 1
        library = startup.library({"PYTHONHASHSEED": str(seed), "PYTHONDONTWRITEBYTECODE": "1"})
        (folder / startup.FILE_NAME).write_bytes(library)
        # `componentize-py` adds the packages of this environment to its path. They are in the archive.
        (stage / "environment/lib/site-packages").mkdir(parents=True)
        # So are the plugin's modules, below the same path. Python would list other files in their folder too.
        (stage / "sources").mkdir()
        part = stage / "component.wasm"
        command = [
            *(_program(), "--wit-path", str(wit), "--world", world, "componentize"),
            *("--python-path", str(stage / "sources"), "--python-path", str(folder), "toolbay_guest.start"),
            *("--output", str(part)),
        ]
        environment = {**os.environ, "VIRTUAL_ENV": str(stage / "environment"), "RUST_BACKTRACE": "0"}
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise BuildError(shortened(result.stderr or result.stdout))
        output.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(snapshot.normalized(part.read_bytes(), guard=digest[4:8]))
        shutil.copyfile(part, output)


def _digest(files: Mapping[str, bytes], settings: str) -> bytes:
    """Returns the digest of all that a component is made of, for numbers that must not differ between builds."""
    digest = hashlib.sha256(settings.encode())
    for path, content in sorted(files.items()):
        for part in (path.encode(), content):
            digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()


@contextlib.contextmanager
def bindings(wit: Path, world: str) -> Iterator[Path]:
    """Makes the folder of the bindings, with which plain functions can be imported on this machine."""
    with tempfile.TemporaryDirectory(prefix="toolbay-") as name:
        command = [_program(), "--wit-path", str(wit), "--world", world, "bindings", name]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise BuildError(shortened(result.stderr or result.stdout))
        yield Path(name)


def _program() -> str:
    """Returns the `componentize-py` that is installed next to the Python that runs the build."""
    program = Path(sys.executable).with_name("componentize-py")
    if not program.is_file():
        raise BuildError(f"{program} is missing: install it with `.venv/bin/pip install -r requirements.txt`")
    return str(program)


def shortened(text: str) -> str:
    """Returns what the author needs of the output of a `componentize-py` that failed."""
    said, _, rest = text.partition("\nCaused by:")
    causes = [match[1] for line in rest.partition("Stack backtrace")[0].splitlines() if (match := _CAUSES.match(line))]
    lines = [line for line in said.splitlines() if not line.startswith("warning: site-packages")]
    # The traceback of `componentize-py` itself comes first, and its last line has the message.
    start = next((at for at, line in enumerate(lines) if line.startswith("AssertionError: ")), 0)
    message = [lines[start].removeprefix("AssertionError: "), *lines[start + 1 :]] if lines else []
    within = [at for at, line in enumerate(message) if line.startswith("Traceback (most recent call last)")]
    if within:
        return _from_traceback(message[within[-1] + 1 :], message[: within[0]])
    parts = [line.strip() for line in message if line.strip()]
    if any("fuel allocated for hostcalls has been exhausted" in text for text in (*parts, *causes)):
        return (
            "the plugin has more than 128 MiB of memory after its modules were imported: leave out files of packages, with "
            "`exclude` under [python] in plugin.toml, or make several plugins"
        )
    traps = [cause for cause in causes if cause.startswith("wasm trap") or "exit status" in cause]
    if traps:
        reason = "; ".join(traps)
        return "\n".join([*parts, f"the plugin's modules ended the program while they were imported: {reason}"])
    return ": ".join(dict.fromkeys([*parts, *causes])) or "componentize-py failed without a message"


def _from_traceback(lines: list[str], printed: list[str]) -> str:
    """Returns the place and the error of a traceback, after what the plugin printed."""
    own, last, error = "", "", []
    for line in lines:
        match = _PLACE.match(line)
        if match:
            last = f"{match[1]}:{match[2]}"
            if not match[1].startswith("/"):
                own = last
        elif line and not line.startswith(" "):
            error.append(line)
    place = own or last
    text = "\n".join(error) or "an error without a message"
    return "\n".join([*(line for line in printed if line.strip()), f"{place}: {text}" if place else text])
