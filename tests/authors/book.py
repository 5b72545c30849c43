"""The benchmark page of the book, and the words about the machine, as in `tests/report/src/page.rs`."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/src/benchmarks.md"

BUSY = "**Other programs used the machine during this run, so the times are too long.**"
"""What a page says about a measurement on a machine with more load than cores."""


def write(part: str, text: str) -> None:
    """Replaces the text between the markers of `part`."""
    page = PAGE.read_text()
    pattern = re.compile(f"(<!-- {part}: begin -->\n).*?(<!-- {part}: end -->)", re.DOTALL)
    page, count = pattern.subn(lambda found: f"{found[1]}\n{text.strip()}\n\n{found[2]}", page)
    if count != 1:
        raise SystemExit(f"{PAGE}: the markers of {part} are there {count} times, not once")
    PAGE.write_text(page)


def machine() -> str:
    """Describes the machine, its load and the commit. Call it before the measurement."""
    info = Path("/proc/cpuinfo").read_text()
    processor = re.search(r"^model name\s*:\s*(.+)$", info, re.MULTILINE)
    kib = int(re.search(r"^MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)[1])
    command = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    cores = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    words = (
        f"{processor[1] if processor else platform.machine()}, {cores} cores, {-(-kib // (1 << 20))} GiB, "
        f"Linux {platform.release().split('-')[0]}, load {load:.2f} before."
    )
    if commit:
        words += f" Toolbay is commit `{commit}`."
    return words if load <= cores else f"{words} {BUSY}"


def table(header: list[str], rows: list[list[str]], numbers_from: int = 1) -> str:
    """Formats a Markdown table. The columns from `numbers_from` on are aligned to the right."""
    rule = ["---" if column < numbers_from else "---:" for column in range(len(header))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])


def figure(value: float) -> str:
    """Formats a number with three digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def milliseconds(seconds: float) -> str:
    """Formats a time that is at least some microseconds."""
    return f"{figure(seconds * 1e3)} ms" if seconds >= 1e-3 else f"{figure(seconds * 1e6)} µs"


def bytes_of(size: int) -> str:
    return f"{figure(size / 2**20)} MiB" if size >= 2**20 else f"{figure(size / 2**10)} KiB"
