"""The fields of a form: the types that clients can show, and how an answer is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import DefinitionError
from .hints import Reader, name_of
from .shapes import ABSENT, Definitions, Mismatch, Record, Schema

#: The keywords that a field can have, by its type (MCP, "Elicitation").
_KEYWORDS = {
    "string": {"minLength", "maxLength", "format", "enum", "enumNames", "oneOf"},
    "integer": {"minimum", "maximum"},
    "number": {"minimum", "maximum"},
    "boolean": set(),
    "array": {"items", "minItems", "maxItems"},
}
_ANY = {"type", "title", "description", "default"}
_FORMATS = ("date", "date-time", "email", "uri")


class Fields:
    """Reads the fields of a form: a dataclass, a `TypedDict`, or a JSON Schema. Raises `DefinitionError`."""

    def __init__(self, hint: Any) -> None:
        self._record: Record | None = None
        if isinstance(hint, Mapping):
            self.schema: Schema = dict(hint)
            return
        where = f"form `{name_of(hint)}`"
        shape = Reader().shape(hint, where)
        if not isinstance(shape, Record):
            raise DefinitionError(f"{where}: the fields of a form are a dataclass, a `TypedDict`, or a JSON Schema")
        self._record = shape
        members = shape.fields
        self._nullable = {one.name for one in members if one.required and _is_nullable(one.schema(Definitions()))}
        required = [one.name for one in members if one.required and one.name not in self._nullable]
        self.schema = {"type": "object", "properties": {}}
        for member in members:
            self.schema["properties"][member.name] = _field(member.schema(Definitions()), f"{where}, `{member.name}`")
        if not members:
            raise DefinitionError(f"{where}: it has no fields")
        if required:
            self.schema["required"] = required

    def read(self, content: Any) -> Any:
        """Returns the values that the user entered. Raises `Mismatch`."""
        if self._record is None:
            return content
        if not isinstance(content, Mapping):
            raise Mismatch("content", "expected an object")
        # Ignores members that were not requested. A blank field is `None` if its type allows that.
        known = {member.name for member in self._record.fields}
        given = {name: value for name, value in content.items() if name in known}
        return self._record.read(dict.fromkeys(self._nullable) | given, "")


def _is_nullable(schema: Schema) -> bool:
    types = schema.get("type", [])
    return "null" in types if isinstance(types, list) else {"type": "null"} in schema.get("anyOf", [])


def _field(schema: Schema, where: str) -> Schema:
    """Returns the schema of a field for clients. There is no `null` in a form: a field is filled in or left blank."""
    schema = dict(schema)
    others = [part for part in schema.get("anyOf", []) if part != {"type": "null"}]
    if len(others) == 1:
        schema = others[0] | {key: value for key, value in schema.items() if key != "anyOf"}
    if isinstance(schema.get("type"), list):
        types = [name for name in schema["type"] if name != "null"]
        schema["type"] = types[0] if len(types) == 1 else types
    if "enum" in schema:
        schema["enum"] = [value for value in schema["enum"] if value is not None]
    if schema.get("default", ABSENT) is None:
        del schema["default"]
    # A user cannot choose the same value of a list twice.
    schema.pop("uniqueItems", None)
    _check(schema, where)
    return schema


def _check(schema: Schema, where: str) -> None:
    kind = schema.get("type")
    own = _KEYWORDS.get(kind) if isinstance(kind, str) else None
    if own is None:
        raise DefinitionError(
            f"{where}: clients can show a `str`, an `int`, a `float`, a `bool`, a `Literal` or an `Enum` of texts, and "
            "a list of the latter two"
        )
    for keyword in schema:
        if keyword not in _ANY | own:
            raise DefinitionError(f"{where}: clients cannot show `{keyword}`")
    if "format" in schema and schema["format"] not in _FORMATS:
        known = ", ".join(f"`{name}`" for name in _FORMATS)
        raise DefinitionError(f"{where}: its format is one of {known}, not `{schema['format']}`")
    if kind == "array":
        items = schema.get("items", {})
        if not isinstance(items.get("enum"), list) or items.get("type") != "string":
            raise DefinitionError(f"{where}: clients can show a list of a `Literal` or an `Enum` of texts, no other")
