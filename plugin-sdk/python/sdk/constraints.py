"""Constraints of an argument or a field beyond its type, for its schema, which the host checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

#: The keywords of JSON Schema for the bounds of a length, by the type that has one.
_LENGTHS = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}


class Constraint:
    """A constraint in an `Annotated`, in addition to the description."""

    def keywords(self, types: set[str]) -> dict[str, Any]:
        """Returns the keywords for the schema of a value that has one of these JSON types.

        Empty if the constraint applies to none of them.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Range(Constraint):
    """The minimum and the maximum of a number: `Annotated[int, "How many.", Range(1, 100)]`."""

    minimum: float | None = None
    maximum: float | None = None

    def keywords(self, types: set[str]) -> dict[str, Any]:
        if not types & {"integer", "number"}:
            return {}
        return _present(minimum=self.minimum, maximum=self.maximum)


@dataclass(frozen=True)
class Length(Constraint):
    """The minimum and the maximum length of a text, a list or a dict."""

    minimum: int | None = None
    maximum: int | None = None

    def keywords(self, types: set[str]) -> dict[str, Any]:
        keywords: dict[str, Any] = {}
        for kind, (least, most) in _LENGTHS.items():
            if kind in types:
                keywords |= _present(**{least: self.minimum, most: self.maximum})
        return keywords


@dataclass(frozen=True)
class Pattern(Constraint):
    """A regular expression, as in ECMAScript, that must match a part of a text.

    With `^` and `$`, it must match the whole text: `Pattern("^[a-z]+$")`.
    """

    expression: str

    def keywords(self, types: set[str]) -> dict[str, Any]:
        return {"pattern": self.expression} if "string" in types else {}


@dataclass(frozen=True)
class Title(Constraint):
    """A display name: of a prompt's argument, or of a field of a form."""

    title: str

    def keywords(self, types: set[str]) -> dict[str, Any]:
        return {"title": self.title}


@dataclass(frozen=True)
class Format(Constraint):
    """The format of a text in a form: `date`, `date-time`, `email` or `uri`."""

    format: str

    def keywords(self, types: set[str]) -> dict[str, Any]:
        return {"format": self.format} if "string" in types else {}


#: An integer as a string of digits, for identifiers and numbers that may exceed 2**53: many clients round such
#numbers.
#: Return `str(n)`, and read an argument with `int(text)`.
IntString = Annotated[str, Pattern("^-?[0-9]+$")]


def _present(**keywords: float | None) -> dict[str, Any]:
    return {keyword: value for keyword, value in keywords.items() if value is not None}
