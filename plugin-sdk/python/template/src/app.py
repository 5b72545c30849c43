"""The tools of {{name}}: each function with `@tool` above it."""

from dataclasses import dataclass
from typing import Annotated

from toolbay import InvalidArguments, tool


@tool(read_only=True)
def {{ident}}_greet(
    name: Annotated[str, "Who to greet."],
    excited: Annotated[bool, "Whether to shout."] = False,
) -> str:
    """Greets somebody by name."""
    if not name.strip():
        raise InvalidArguments("name is empty: say who to greet")
    return f"HELLO, {name.upper()}!" if excited else f"Hello, {name}."


@dataclass
class Count:
    characters: int
    words: int
    lines: int


@tool(read_only=True)
def {{ident}}_count(text: Annotated[str, "Text to count."]) -> Count:
    """Counts the characters, words and lines of a text."""
    lines = text.count("\n") + 1 if text else 0
    return Count(characters=len(text), words=len(text.split()), lines=lines)
