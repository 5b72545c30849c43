"""Arguments that are sent as text: those of prompts, and the variables of URIs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from .errors import DefinitionError
from .formats import Formatted
from .shapes import Definitions, Described, Member, Mismatch, OneOf, Record, Schema, Shape, types_of

#: The JSON types that a short text can represent.
_TYPES = {"string", "integer", "number", "boolean", "null"}

#: The keywords that the schema of such an argument may have: no others would be
#checked.
_SAID = {"type", "enum", "anyOf", "title", "description", "default"}


def check(member: Member, where: str) -> None:
    """Raises a `DefinitionError` if a client's text cannot be converted to this type."""
    schema = member.schema(Definitions())
    types = types_of(schema)
    if not types or not types <= _TYPES:
        raise DefinitionError(
            f"{where}: clients give it as text; take a `str`, an `int`, a `float`, a `bool`, a `Literal` or an `Enum`"
        )
    if unchecked := _unchecked(schema, _read_keywords(member.shape)):
        raise DefinitionError(
            f"{where}: nobody checks its `{unchecked}`; check it in the function, and raise `InvalidArguments`"
        )


def _unchecked(schema: Schema, read: set[str]) -> str | None:
    """Returns the first keyword that only a validator would check."""
    parts: list[Schema] = [schema, *schema.get("anyOf", [])]
    return next((keyword for part in parts for keyword in part if keyword not in _SAID | read), None)


def _read_keywords(shape: Shape) -> set[str]:
    """Returns the keywords that are checked when the value is read."""
    if isinstance(shape, Formatted):
        return {keyword for keyword, _ in shape.keywords}
    if isinstance(shape, Described):
        # Its own keywords are of the host, even if they have the same names.
        return _read_keywords(shape.shape) - {keyword for keyword, _ in shape.keywords}
    return set().union(*map(_read_keywords, shape.shapes)) if isinstance(shape, OneOf) else set()


def read_all(record: Record, given: Mapping[str, str]) -> dict[str, Any]:
    """Returns the values of arguments that were sent as text. Raises `Mismatch`."""
    values = {}
    for member in record.fields:
        if member.name in given:
            values[member.name] = read(member.shape, given[member.name], member.name)
        elif member.required:
            raise Mismatch("", f"`{member.name}` is missing")
        elif member.make is not None:
            values[member.name] = member.make()
    for name in given:
        if name not in {member.name for member in record.fields}:
            known = ", ".join(f"`{member.name}`" for member in record.fields)
            raise Mismatch("", f"there is no `{name}`; there is {known or 'nothing'}")
    return values


def read(shape: Shape, text: str, path: str) -> Any:
    """Returns the value of a text. Raises `Mismatch`."""
    # First as a string: the type may be an enum, or a string that looks like a number.
    try:
        return shape.read(text, path)
    except Mismatch as error:
        reason = error
    try:
        value = json.loads(text, parse_constant=_refuse)
    except ValueError:
        raise reason from None
    return shape.read(value, path)


def _refuse(constant: str) -> NoReturn:
    """Refuses `NaN` and similar numbers, which Python reads but JSON does not have."""
    raise ValueError(constant)
