"""Constraints of an argument or a field beyond its type, for its schema, which the host checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


#: A `Field` without a default.
_MISSING: Any = object()


class Field(Constraint):
    """The description and the constraints of a value in one, with the names that `Field` of pydantic has.

    Stands in `Annotated`, or in the place of the default:
    `limit: int = Field(default=10, ge=1, le=100, description="How many.")`.
    """

    def __init__(
        self,
        default: Any = _MISSING,
        *,
        default_factory: Callable[[], Any] | None = None,
        title: str | None = None,
        description: str | None = None,
        examples: Sequence[Any] | None = None,
        gt: float | None = None,
        ge: float | None = None,
        lt: float | None = None,
        le: float | None = None,
        multiple_of: float | None = None,
        min_length: int | None = None,
        max_length: int | None = None,
        pattern: str | None = None,
    ) -> None:
        self._default, self._factory = default, default_factory
        self._any = {"title": title, "description": description, "examples": examples and list(examples)}
        self._numbers = {
            "minimum": ge,
            "maximum": le,
            "exclusiveMinimum": gt,
            "exclusiveMaximum": lt,
            "multipleOf": multiple_of,
        }
        self._length = Length(min_length, max_length)
        self._pattern = pattern

    def value(self, absent: Any) -> Any:
        """Returns the default; `absent` if there is none."""
        if self._factory is not None:
            return self._factory()
        # As pydantic has it, `...` is no default.
        return absent if self._default in (_MISSING, ...) else self._default

    def keywords(self, types: set[str]) -> dict[str, Any]:
        numbers = _present(**self._numbers)
        pattern = {} if self._pattern is None else {"pattern": self._pattern}
        if (numbers and not types & {"integer", "number"}) or (pattern and "string" not in types):
            return {}
        length = self._length.keywords(types)
        if self._length != Length() and not length:
            return {}
        return {key: value for key, value in self._any.items() if value is not None} | numbers | length | pattern

    @property
    def is_silent(self) -> bool:
        """Returns whether it has no description and no constraint, but at most a default."""
        said = [*self._any.values(), *self._numbers.values(), self._pattern]
        return self._length == Length() and not any(one is not None for one in said)

    def __repr__(self) -> str:
        said = {**self._any, **self._numbers, "pattern": self._pattern}
        return f"Field({', '.join(f'{key}={value!r}' for key, value in said.items() if value is not None)})"


#: The keyword of each constraint of `annotated-types` with one value.
_FOREIGN = {
    "Gt": "gt",
    "Ge": "ge",
    "Lt": "lt",
    "Le": "le",
    "MultipleOf": "multiple_of",
    "MinLen": "min_length",
    "MaxLen": "max_length",
}


def foreign(said: Any) -> Constraint | None:
    """Returns the constraint that an object in `Annotated` is; `None` if it is none. Those of `annotated-types` are."""
    if isinstance(said, Constraint):
        return said
    kind = type(said)
    if kind.__module__.partition(".")[0] != "annotated_types":
        return None
    if kind.__name__ in _FOREIGN:
        keyword = _FOREIGN[kind.__name__]
        return Field(**{keyword: getattr(said, keyword)})
    if kind.__name__ == "Len":
        return Field(min_length=said.min_length, max_length=said.max_length)
    if kind.__name__ == "Interval":
        return Field(gt=said.gt, ge=said.ge, lt=said.lt, le=said.le)
    return None


#: An integer as a string of digits, for identifiers and numbers that may exceed 2**53: many clients round such
#numbers.
#: Return `str(n)`, and read an argument with `int(text)`.
IntString = Annotated[str, Pattern("^-?[0-9]+$")]


def _present(**keywords: float | None) -> dict[str, Any]:
    return {keyword: value for keyword, value in keywords.items() if value is not None}
