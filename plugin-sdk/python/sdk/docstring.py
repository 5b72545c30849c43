"""Parses a docstring: the description of the function and of each parameter."""

from __future__ import annotations

import inspect
import re

#: A section of Google's style that describes parameters or fields.
_SECTION = re.compile(r"(Args|Arguments|Parameters|Attributes|Fields):\s*$")

#: `name: text` or `name (type): text`, indented, in such a section.
_ENTRY = re.compile(r"(?P<indent>\s+)(?P<name>\w+)(\s*\([^)]*\))?:\s+(?P<text>.*)$")

#: The type of a parameter, which its hint already has.
_TYPE = re.compile(r":type\s+\w+:")

#: `:param name: text` or `:param type name: text`.
_FIELD = re.compile(r":param\s+(?:\S+\s+)?(?P<name>\w+):\s*(?P<text>.*)$")


def parse(text: str | None) -> tuple[str | None, dict[str, str]]:
    """Returns the description of the function, and that of each parameter that has one."""
    if not text:
        return None, {}
    rest: list[str] = []
    described: dict[str, list[str]] = {}
    #: The entry that an indented line continues, and the indent of entries.
    entry: list[str] | None = None
    indent: str | None = None
    for line in inspect.cleandoc(text).splitlines():
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
