"""Sums up tables: files of a folder that the operator mounts at /data, or text that the caller sends."""

import csv
import io
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated

from toolbay import InvalidArguments, tool

DATA = Path("/data")


@dataclass
class Summary:
    group: str | None
    count: int
    sum: float
    average: float
    minimum: float
    maximum: float


@dataclass
class Analysis:
    rows: int
    groups: list[Summary]


@tool(read_only=True, idempotent=True)
def analyze_csv(
    column: Annotated[str, "The column with the numbers."],
    file: Annotated[str | None, "A file of the folder, such as sales/2026.csv."] = None,
    text: Annotated[str | None, "The table itself, instead of a file."] = None,
    group_by: Annotated[str | None, "A column by whose values to group; without it, there is one group."] = None,
) -> Analysis:
    """Counts, sums and averages the numbers in a column of a table in CSV. Its first line names the columns."""
    if (file is None) == (text is None):
        raise InvalidArguments("give either `file` or `text`")
    with io.StringIO(text) if file is None else opened(file) as table:
        reader = csv.DictReader(table)
        names = reader.fieldnames or []
        for name in filter(None, [column, group_by]):
            if name not in names:
                raise InvalidArguments(f"there is no column {name}, only {', '.join(names) or 'an empty table'}")
        groups: dict[str | None, list[Decimal]] = defaultdict(list)
        for row in reader:
            if (value := row[column]) not in (None, ""):
                groups[row[group_by] if group_by else None].append(number(value, reader.line_num))
    summaries = [summary(group, values) for group, values in groups.items()]
    return Analysis(sum(one.count for one in summaries), summaries)


def opened(file: str) -> io.TextIOWrapper:
    try:
        return (DATA / file).open(newline="", encoding="utf-8-sig")
    except FileNotFoundError:
        names = sorted(path.relative_to(DATA).as_posix() for path in DATA.rglob("*.csv")) if DATA.is_dir() else []
        raise InvalidArguments(f"there is no {file}, only {', '.join(names[:50]) or 'no files at all'}") from None
    except OSError as error:
        raise InvalidArguments(f"{file} cannot be read: {error.strerror}") from None


def number(value: str, line: int) -> Decimal:
    try:
        found = Decimal(value.strip())
    except InvalidOperation:
        found = Decimal("nan")
    if not found.is_finite():
        raise InvalidArguments(f"line {line} has {value[:50]!r}, which is no number")
    return found


def summary(group: str | None, values: list[Decimal]) -> Summary:
    total = sum(values)
    return Summary(group, len(values), float(total), float(total / len(values)), float(min(values)), float(max(values)))
