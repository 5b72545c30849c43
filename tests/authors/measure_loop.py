"""Measures the time from saving a file until the tool can be called, with its parts, in each language.

    measure_loop.py TOOLBAY FOLDER [LANGUAGE...] [--rounds N] [--book]

TOOLBAY is the server's binary, FOLDER a folder for the projects, which further runs reuse. For each language,
`toolbay new` makes a project, and `toolbay dev` builds it after each change: first alone, and then next to a server
with a client, which serve the same plugin folder.

Each change replaces a word of the result and a word of the description, so that nothing is in a cache, and the client
is notified. The times of the parts are those of the lines that `toolbay dev` prints, and of the files that the parts
write.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import book
from connection import CHANGED, PATIENCE, Connection

LANGUAGES = ["javascript", "typescript", "python", "go", "rust"]
OTHERS = ["c", "cpp", "zig", "kotlin"]
"""Languages that are measured if they are named, because their compilers are large downloads."""

NAMES = {
    "javascript": "JavaScript",
    "typescript": "TypeScript",
    "python": "Python",
    "go": "Go",
    "rust": "Rust",
    "c": "C",
    "cpp": "C++",
    "zig": "Zig",
    "kotlin": "Kotlin",
}

PARTS = ["noticed", "bundled", "built", "copied", "compiled", "loaded", "called"]
"""The ends of the parts of `toolbay dev`, in order. `bundled` is that of languages that bundle."""

INSTALLATION_FOLDERS = [".venv", "node_modules", "packages", "target"]

GREETING = re.compile(r"\b(Hello|Hi\d+), ")
DESCRIPTION = re.compile(r"Greets somebody( \d+)? by name\.")

POLL_INTERVAL = 0.01
"""Seconds between two looks for a file that the build removes."""


class Project:
    """A project of one language, with its plugin folder, caches and temporary files."""

    def __init__(self, toolbay: Path, folder: Path, language: str) -> None:
        self.toolbay = toolbay
        self.language = language
        self.folder = folder / f"loop-{language}"
        self.plugins = folder / f"plugins-{language}"
        self.cache = folder / f"cache-{language}"
        self.temporary = folder / f"temporary-{language}"
        for needed in (self.cache, self.temporary, self.plugins):
            # Nothing of an earlier run is compiled.
            shutil.rmtree(needed, ignore_errors=True)
            needed.mkdir(parents=True)
        self.create()
        [self.source] = [
            file
            for file in sorted((self.folder / "src").rglob("*"))
            if file.is_file() and "Greets somebody" in file.read_text() and "test" not in file.stem
        ]
        self.environment = {
            "XDG_CACHE_HOME": str(self.cache),
            "XDG_STATE_HOME": str(self.temporary / "state"),
            "TMPDIR": str(self.temporary),
        }

    def create(self) -> None:
        """Creates the project, and moves what an earlier run installed into it."""
        before = self.folder.with_suffix(".before")
        shutil.rmtree(before, ignore_errors=True)
        if self.folder.exists():
            self.folder.rename(before)
        command = [str(self.toolbay), "new", str(self.folder), "--language", self.language]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for installed in INSTALLATION_FOLDERS:
            if (before / installed).exists():
                (before / installed).rename(self.folder / installed)
        shutil.rmtree(before, ignore_errors=True)

    def dev(self) -> list[str]:
        return [str(self.toolbay), "dev", "--no-config", "--plugins", str(self.plugins), str(self.folder)]

    def serve(self) -> list[str]:
        return [str(self.toolbay), "serve", "--no-config", "--plugins", str(self.plugins)]

    def save(self, number: int) -> float:
        """Changes the source, and returns the time just before."""
        text = self.source.read_text()
        text = GREETING.sub(f"Hi{number}, ", text)
        text = DESCRIPTION.sub(f"Greets somebody {number} by name.", text)
        now = time.time()
        self.source.write_text(text)
        return now

    def bundle(self) -> Path | None:
        """Returns the file that the bundler writes."""
        bundles = {"javascript": "build/app.js", "typescript": "build/app.js"}
        return self.folder / bundles[self.language] if self.language in bundles else None

    def written(self, since: float) -> dict[str, float]:
        """Returns the ends of the parts that leave a file."""
        files = {
            "bundled": [self.bundle()],
            "built": [self.folder / f"loop-{self.language}.wasm"],
            "compiled": self.cache.glob("toolbay/compiled/*.cwasm"),
        }
        ends = {}
        for part, paths in files.items():
            times = [path.stat().st_mtime for path in paths if path is not None and path.exists()]
            if after := [end for end in times if end >= since]:
                ends[part] = max(after)
        return ends


class Dev:
    """A running `toolbay dev`, with the times at which it printed its lines."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.lines: list[tuple[float, str]] = []
        self.changed = threading.Condition()
        self.packed = 0.0
        """The time at which the build of a Python plugin had chosen its files."""
        self.process = subprocess.Popen(
            project.dev(),
            env={**os.environ, **project.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        threading.Thread(target=self.read, daemon=True).start()
        if project.language == "python":
            threading.Thread(target=self.look, daemon=True).start()

    def __enter__(self) -> Dev:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()

    def read(self) -> None:
        for line in self.process.stdout:
            with self.changed:
                self.lines.append((time.time(), line.rstrip("\n")))
                self.changed.notify_all()
        with self.changed:
            self.lines.append((time.time(), ENDED))
            self.changed.notify_all()

    def look(self) -> None:
        """Records when the build of a Python plugin wrote its settings, in a folder that it removes."""
        while self.process.poll() is None:
            for file in self.project.temporary.glob("toolbay-*/build/settings.json"):
                try:
                    self.packed = file.stat().st_mtime
                except OSError:
                    continue
            time.sleep(POLL_INTERVAL)

    def wait_for(self, start: int, is_wanted: Callable[[str], bool]) -> tuple[int, float]:
        """Waits for a line after the first `start` ones. Returns the number of lines up to it, and its time."""
        until = time.monotonic() + PATIENCE
        with self.changed:
            at = start
            while True:
                while at < len(self.lines):
                    when, line = self.lines[at]
                    at += 1
                    if is_wanted(line):
                        return at, when
                    if line == ENDED or FAILURE in line:
                        raise SystemExit(f"{self.project.language}: toolbay dev failed\n{self.text()}")
                if not self.changed.wait(until - time.monotonic()):
                    raise SystemExit(f"{self.project.language}: toolbay dev printed nothing more\n{self.text()}")

    def text(self) -> str:
        return "\n".join(line for _, line in self.lines[-40:])

    def wait_until_idle(self, start: int = 0) -> int:
        at, _ = self.wait_for(start, lambda line: line.startswith("Waiting for changes."))
        return at


ENDED = "(the output has ended)"
FAILURE = "the previous version stays in service"


def round_alone(project: Project, dev: Dev, start: int, number: int) -> tuple[int, dict[str, float]]:
    """Saves once. Returns the seconds from the save to the end of each part."""
    dev.packed = 0.0
    saved = project.save(number)
    ends = {}
    at, ends["noticed"] = dev.wait_for(start, lambda line: line.startswith("$ "))
    at, ends["copied"] = dev.wait_for(at, lambda line: line.startswith("built in "))
    at, ends["loaded"] = dev.wait_for(at, lambda line: line.startswith("tools: "))
    at, ends["called"] = dev.wait_for(at, lambda line: f"Hi{number}, Ada." in line)
    at = dev.wait_until_idle(at)
    ends.update(project.written(saved))
    if dev.packed >= saved:
        ends["bundled"] = dev.packed
    missing = [part for part in ("built", "compiled") if part not in ends]
    if missing:
        raise SystemExit(f"{project.language}: not seen: {', '.join(missing)}\n{dev.text()}")
    return at, {part: end - saved for part, end in ends.items()}


def round_with_client(
    project: Project, dev: Dev, client: Connection, start: int, number: int
) -> tuple[int, dict[str, float]]:
    """Saves once. Returns the seconds until the client is notified, and until its call has the new result."""
    saved = project.save(number)
    until = time.monotonic() + PATIENCE
    is_notified = False
    while True:
        while not is_notified:
            is_notified = client.receive(until).get("method") == CHANGED
        notified = time.time()
        response = client.call(f"loop_{project.language}_greet", {"name": "Ada"})
        called = time.time()
        if f"Hi{number}, Ada." in str(response.get("result")):
            break
        # A notification of an earlier change can arrive late.
        is_notified = any(message["method"] == CHANGED for message in client.notifications)
    return dev.wait_until_idle(start), {"notified": notified - saved, "callable": called - saved}


def median_of(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(each[key] for each in rounds) for key in rounds[0]}


def measure(project: Project, rounds: int) -> dict[str, float]:
    """Returns the medians of the rounds, in seconds from the save."""
    log = project.temporary / "log"
    number = int(time.time())
    with Dev(project) as dev:
        at = dev.wait_until_idle()
        # The first build after a setup also fills caches of compilers.
        at, _ = round_alone(project, dev, at, number)
        alone = []
        for _ in range(rounds):
            number += 1
            at, ends = round_alone(project, dev, at, number)
            alone.append(ends)
        with Connection(project.serve(), project.environment, log) as client:
            client.wait_for_tools({f"loop_{project.language}_greet"})
            together = []
            for _ in range(rounds):
                number += 1
                at, ends = round_with_client(project, dev, client, at, number)
                together.append(ends)
    return {**median_of(alone), **median_of(together)}


def seconds(value: float) -> str:
    return f"{value:.2f} s"


def row(language: str, ends: dict[str, float]) -> list[str]:
    """Formats the durations of the parts. The end of a part is the start of the next one."""
    cells = []
    before = 0.0
    for part in PARTS:
        if part in ends:
            cells.append(seconds(max(0.0, ends[part] - before)))
            before = max(before, ends[part])
        else:
            cells.append("")
    return [NAMES[language], *cells, *(seconds(ends[key]) for key in ("called", "notified", "callable"))]


HEADER = [
    "language",
    "notice",
    "bundle",
    "build",
    "copy",
    "compile",
    "load",
    "call",
    "callable in `toolbay dev`",
    "client notified",
    "callable by the client",
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("toolbay", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("languages", nargs="*", metavar="LANGUAGE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--book", action="store_true")
    options = parser.parse_args()
    languages = options.languages or LANGUAGES
    if unknown := set(languages) - NAMES.keys():
        parser.error(f"no language {', '.join(sorted(unknown))}; there are {', '.join([*LANGUAGES, *OTHERS])}")
    if options.rounds < 1:
        parser.error("at least one round is needed")
    machine = book.machine()
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for language in languages:
        before = time.monotonic()
        project = Project(options.toolbay.absolute(), folder, language)
        rows.append(row(language, measure(project, options.rounds)))
        print(f"{language}: measured in {time.monotonic() - before:.0f} s: {rows[-1][1:]}", flush=True)
    text = f"{machine} Medians of {options.rounds} changes.\n\n{book.table(HEADER, rows)}"
    print(text)
    if options.book:
        book.write("loop", text)


if __name__ == "__main__":
    sys.exit(main())
