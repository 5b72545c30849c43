"""URI templates (RFC 6570, level 1, and `{+name}`): matches URIs, and extracts the values of their variables."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"(\+?)([A-Za-z0-9_]{1,64})")

#: The characters that end the value of a variable without `+`.
_DELIMITER = re.compile(r"[/?#]")

_ENCODED = re.compile(rb"%([0-9A-Fa-f]{2})?")


@dataclass(frozen=True)
class Variable:
    """A variable, and the text after it."""

    name: str
    #: True if its value can contain any character, and is not decoded.
    reserved: bool
    after: str


class UriTemplate:
    """A URI with or without variables. Raises `ValueError` if it is invalid."""

    def __init__(self, uri: str) -> None:
        prefix, *rest = _EXPRESSION.split(uri)
        if not (scheme := _SCHEME.match(prefix)):
            raise ValueError("a URI begins with a scheme, such as `notes:`")
        if scheme[0].lower() == "toolbay:":
            raise ValueError("the scheme `toolbay:` is reserved for files next to the plugins; use one of your own")
        variables = [_variable(*pair) for pair in zip(rest[::2], rest[1::2], strict=True)]
        if any(brace in part for part in [prefix, *rest[1::2]] for brace in "{}"):
            raise ValueError("a brace is without its other half")
        for variable in variables[:-1]:
            if not variable.after:
                raise ValueError(f"nothing is between `{{{variable.name}}}` and the next variable")
        names = [variable.name for variable in variables]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"`{{{twice[0]}}}` is there twice")
        self._prefix = prefix
        self._variables = variables

    @property
    def names(self) -> list[str]:
        """Returns the names of the variables, in order."""
        return [variable.name for variable in self._variables]

    def values(self, uri: str) -> dict[str, str] | None:
        """Returns the values of the variables in `uri`; `None` if it does not match."""
        if not uri.startswith(self._prefix):
            return None
        found = _Search(self._variables, uri).values(0, len(self._prefix))
        if found is None:
            return None
        pairs = zip(self._variables, found, strict=True)
        values = {one.name: value if one.reserved else _decoded(value) for one, value in pairs}
        # The decoded bytes may not be text.
        texts = {name: value for name, value in values.items() if value is not None}
        return texts if len(texts) == len(values) else None


class _Search:
    """Parses a URI. A position that failed once is not tried again, so the time is bounded."""

    def __init__(self, variables: list[Variable], uri: str) -> None:
        self._variables = variables
        self._uri = uri
        self._in_vain: set[tuple[int, int]] = set()

    def values(self, number: int, start: int) -> list[str] | None:
        """Returns the values of this and the following variables, in the text after `start`."""
        if number == len(self._variables):
            return [] if start == len(self._uri) else None
        if (number, start) in self._in_vain:
            return None
        variable = self._variables[number]
        for end in self._ends(variable, start):
            rest = self.values(number + 1, end + len(variable.after))
            if rest is not None:
                return [self._uri[start:end], *rest]
        self._in_vain.add((number, start))
        return None

    def _ends(self, variable: Variable, start: int) -> list[int]:
        """Returns the possible ends of the value, the shortest first. It has at least one character."""
        delimiter = None if variable.reserved else _DELIMITER.search(self._uri, start)
        last = delimiter.start() if delimiter else len(self._uri)
        # Only the last variable has no text after it.
        if not variable.after:
            return [last] if start < last else []
        after = re.compile(f"(?={re.escape(variable.after)})")
        return [found.start() for found in after.finditer(self._uri, start + 1) if found.start() <= last]


def _variable(expression: str, after: str) -> Variable:
    found = _NAME.fullmatch(expression)
    if found is None:
        raise ValueError(f"`{{{expression}}}` is no variable; write `{{id}}`, or `{{+id}}` for any characters")
    return Variable(found[2], bool(found[1]), after)


def _decoded(value: str) -> str | None:
    """Decodes percent-encoding in the value; `None` if the result is not text."""
    try:
        return _ENCODED.sub(lambda found: bytes([int(found[1], 16)]), value.encode()).decode()
    except (TypeError, UnicodeError):
        # A `%` without digits, or bytes that are not UTF-8.
        return None
