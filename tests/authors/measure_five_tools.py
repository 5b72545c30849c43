"""Measures the five tools of the seven servers: lines, size, and the median time of a call.

    measure_five_tools.py TOOLBAY PLUGINS FASTMCP TYPESCRIPT_SDK [--rounds N] [--calls N] [--book]

The arguments are those of `check_five_tools.py`. `--book` writes the table into the page of the book.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import book
import conversation
import service
from connection import Connection
from conversation import Step
from pygount import SourceAnalysis
from servers import PLUGINS, SOURCES, TITLES, Installed

CALLS = {
    "request": "gets the weather",
    "state": "remembers a value of another call",
    "progress": "reports progress",
    "question": "deletes after a yes",
    "image": "draws",
}
"""The measured step of each tool."""

WARM_UP = 20
"""Calls of each tool that are not measured."""

NEEDLESS = {"pip", "setuptools", "wheel", "pkg_resources", "_distutils_hack", "__pycache__"}
"""What each virtual environment contains, and files that Python makes."""


def lines_of(source: Path) -> int:
    """Counts the lines with code: no blank lines, no comments, no documentation."""
    analysis = SourceAnalysis.from_file(source, "five-tools")
    return analysis.code_count + analysis.string_count


def size_of(folder: Path) -> int:
    """Returns the size of the files, without byte code."""
    files = (file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    return sum(file.stat().st_size for file in files if not NEEDLESS & set(file.relative_to(folder).parts))


def size_of_environment(environment: Path) -> int:
    [packages] = environment.glob("lib/python*/site-packages")
    return sum(
        size_of(entry) if entry.is_dir() else entry.stat().st_size
        for entry in packages.iterdir()
        if entry.name.split("-")[0] not in NEEDLESS
    )


def size_of_packages(project: Path) -> int:
    """Returns the size of the packages that run, not of those that build."""
    packages = json.loads((project / "package-lock.json").read_text())["packages"]
    runs = [project / name for name, package in packages.items() if name and not package.get("dev")]
    nested = [other for other in runs if any(other != one and other.is_relative_to(one) for one in runs)]
    return sum(size_of(folder) for folder in runs if folder not in nested and folder.exists())


def size(name: str, installed: Installed) -> str:
    if name in PLUGINS:
        return book.bytes_of(installed.component(name).stat().st_size)
    if name == "fastmcp":
        return book.bytes_of(size_of_environment(installed.fastmcp))
    return book.bytes_of(size_of_packages(installed.typescript_sdk))


def step_of(what: str) -> Step:
    [step] = [step for step in conversation.STEPS if step.what == what]
    return step


def times(connection: Connection, step: Step, calls: int) -> list[float]:
    """Returns the times of calls. Each has the expected result."""
    taken = []
    for _ in range(calls):
        before = time.perf_counter()
        response = connection.call(step.tool, step.arguments, step.answer)
        taken.append(time.perf_counter() - before)
        # The value that is remembered differs in the first call.
        if conversation.seen_result(response) != step.expected and step.tool != "remember":
            raise SystemExit(f"{step.tool} returned {response}\n{connection.end_of_log()}")
        if "error" in response or response["result"].get("isError"):
            raise SystemExit(f"{step.tool} failed: {response}\n{connection.end_of_log()}")
    return taken


def measure(installed: Installed, rounds: int, calls: int) -> dict[tuple[str, str], list[float]]:
    """Returns the median of each round, by server and tool. All servers run, and one of them works at a time."""
    medians: dict[tuple[str, str], list[float]] = {(name, tool): [] for name in SOURCES for tool in CALLS}
    with ExitStack() as stack:
        origin = stack.enter_context(service.running())
        running = {}
        for name in SOURCES:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            running[name] = stack.enter_context(installed.start(name, origin, folder))
            running[name].wait_for_tools(set(conversation.PROPERTIES))
            for what in CALLS.values():
                times(running[name], step_of(what), WARM_UP)
        for number in range(rounds):
            # Every second round runs in reverse order.
            order = list(SOURCES) if number % 2 == 0 else list(reversed(SOURCES))
            for tool, what in CALLS.items():
                for name in order:
                    taken = times(running[name], step_of(what), calls)
                    medians[name, tool].append(statistics.median(taken))
            print(f"round {number + 1} of {rounds}", flush=True)
    return medians


def formatted(medians: list[float]) -> str:
    return book.milliseconds(statistics.median(medians))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("installed", nargs=4, type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--book", action="store_true")
    options = parser.parse_args()
    installed = Installed(*(path.absolute() for path in options.installed))
    machine = book.machine()
    medians = measure(installed, options.rounds, options.calls)
    header = ["server", "lines", "size", *CALLS]
    rows = []
    for name, source in SOURCES.items():
        cells = [formatted(medians[name, tool]) for tool in CALLS]
        rows.append([TITLES[name], str(lines_of(source)), size(name, installed), *cells])
    spread = [
        [
            TITLES[name],
            *(
                f"{book.milliseconds(min(medians[name, tool]))} to {book.milliseconds(max(medians[name, tool]))}"
                for tool in CALLS
            ),
        ]
        for name in SOURCES
    ]
    text = f"""{machine} {options.rounds} rounds of {options.calls} calls.

{book.table(header, rows)}

The least and the greatest median of the rounds:

{book.table(["server", *CALLS], spread)}"""
    print(text)
    if options.book:
        book.write("five-tools", text)


if __name__ == "__main__":
    main()
