"""Parses a docstring: the description of the function and of each parameter."""

from __future__ import annotations

import inspect
import re

#: A section of Google's style that describes parameters or fields.
_SECTION = re.compile(r"(Args|Arguments|Parameters|Attributes|Fields):\s*$")

#: A section of NumPy's style, whose title is underlined.
_TITLE = re.compile(r"(Parameters|Other Parameters|Attributes)\s*$")
_LINE = re.compile(r"-{3,}\s*$")

#: `name : type` or `name`, not indented, in such a section. The text is indented below.
_HEAD = re.compile(r"(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)(?:\s*:.*)?$")

#: `name: text` or `name (type): text`, indented, in such a section.
_ENTRY = re.compile(r"(?P<indent>\s+)(?P<name>\w+)(\s*\([^)]*\))?:\s+(?P<text>.*)$")

#: The type of a parameter, which its hint already has.
_TYPE = re.compile(r":type\s+\w+:")

#: `:param name: text` or `:param type name: text`.
_FIELD = re.compile(r":param\s+(?:\S+\s+)?(?P<name>\w+):\s*(?P<text>.*)$")


def _parse_numpy(lines: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Returns the lines outside of the sections of NumPy's style, and the lines about each parameter in them."""
    rest: list[str] = []
    described: dict[str, list[str]] = {}
    entries: list[list[str]] = []
    is_inside = False
    for line, below in zip(lines, [*lines[1:], ""], strict=False):
        if _LINE.match(below) and line.strip():
            # The title of this section, or of the next one.
            is_inside, entries = _TITLE.match(line) is not None, []
            if is_inside:
                continue
        if not is_inside:
            rest.append(line)
        elif _LINE.match(line) or not line:
            pass
        elif line[:1].isspace():
            for entry in entries:
                entry.append(line.strip())
        elif found := _HEAD.match(line):
            names = [name.strip(" *") for name in found["names"].split(",")]
            entries = [described.setdefault(name, []) for name in names]
        else:
            is_inside = False
            rest.append(line)
    return rest, described


def parse(text: str | None) -> tuple[str | None, dict[str, str]]:
    """Returns the description of the function, and that of each parameter that has one."""
    if not text:
        return None, {}
    #: The entry that an indented line continues, and the indent of entries.
    entry: list[str] | None = None
    indent: str | None = None
    lines = inspect.cleandoc(text).splitlines()
    rest, described = _parse_numpy(lines)
    lines, rest = rest, []
    for line in lines:
        if _SECTION.match(line):
            entry, indent = None, ""
        elif _TYPE.match(line):
            entry, indent = None, None
        elif found := _FIELD.match(line):
            entry = described[found["name"]] = [found["text"]]
            indent = None
        elif indent is not None and (found := _ENTRY.match(line)) and indent in ("", found["indent"]):
            entry = described[found["name"]] = [found["text"]]
            indent = found["indent"]
        elif entry is not None and line[:1].isspace():
            entry.append(line.strip())
        elif not line and indent is not None:
            pass
        else:
            entry, indent = None, None
            rest.append(line)
    whole = "\n".join(rest).strip()
    # The empty lines around a section remain.
    whole = re.sub(r"\n{3,}", "\n\n", whole)
    return whole or None, {name: " ".join(lines).strip() for name, lines in described.items()}
