"""The meaning of a type hint in JSON: a schema, and how a value is read.

The host checks arguments against the schema before a tool is called. Reading
checks the types again, because the types select the member of a union, and
because tests have no host.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

#: A JSON Schema, or a part of one.
Schema = dict[str, Any]

#: The description of a value in a message, by its type.
_NAMES = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}

#: The maximum length of a value that a message quotes.
_QUOTE = 60


class Mismatch(Exception):
    """A value that does not match its hint."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"`{path}`: {message}" if path else message)


class Definitions:
    """The `$defs` of one schema: recursive types, which cannot be inline."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}
        self._names: dict[int, str] = {}

    def reference(self, record: Record) -> Schema:
        """Returns a reference to a record, which is added if it is new."""
        name = self._names.get(id(record))
        if name is None:
            name = record.name
            while name in self.schemas:
                name += "_"
            self._names[id(record)] = name
            # Reserved before the members are processed, because they refer to it.
            self.schemas[name] = {}
            self.schemas[name].update(record.members(self))
        return {"$ref": f"#/$defs/{name}"}


class Shape:
    """The meaning of one type hint."""

    def schema(self, definitions: Definitions) -> Schema:
        """Returns the schema, and adds recursive types to `definitions`."""
        raise NotImplementedError

    def read(self, value: Any, path: str) -> Any:
        """Returns the Python value of a JSON value. Raises `Mismatch`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Anything(Shape):
    """`Any`."""

    def schema(self, definitions: Definitions) -> Schema:
        return {}

    def read(self, value: Any, path: str) -> Any:
        return value


@dataclass(frozen=True)
class Scalar(Shape):
    """`str`, `int`, `float`, `bool` or `None`."""

    type: type
    json_type: str

    def schema(self, definitions: Definitions) -> Schema:
        return {"type": self.json_type}

    def read(self, value: Any, path: str) -> Any:
        if type(value) is self.type:
            return value
        # JSON has only one type of number: 2 is a float, and 2.0 is an integer.
        if self.type is float and type(value) is int:
            return float(value)
        if self.type is int and type(value) is float and value.is_integer():
            return int(value)
        article = "an" if self.json_type == "integer" else "a"
        expected = "null" if self.type is type(None) else f"{article} {self.json_type}"
        raise Mismatch(path, f"expected {expected}, got {quote(value)}")


@dataclass(frozen=True)
class Choice(Shape):
    """`Literal` or `Enum`: each JSON value, and its Python value."""

    choices: tuple[tuple[Any, Any], ...]

    def schema(self, definitions: Definitions) -> Schema:
        values = [value for value, _ in self.choices]
        types = list(dict.fromkeys(_json_type(value) for value in values))
        return {"type": types[0] if len(types) == 1 else types, "enum": values}

    def read(self, value: Any, path: str) -> Any:
        for choice, stands_for in self.choices:
            # `True == 1`, but not in JSON.
            if choice == value and isinstance(choice, bool) == isinstance(value, bool):
                return stands_for
        expected = " or ".join(json.dumps(choice, ensure_ascii=False) for choice, _ in self.choices)
        raise Mismatch(path, f"expected {expected}, got {quote(value)}")


@dataclass(frozen=True)
class Items(Shape):
    """`list`, `set`, `frozenset` or `tuple[X, ...]`."""

    build: Callable[[Iterable[Any]], Any]
    items: Shape
    unique: bool = False

    def schema(self, definitions: Definitions) -> Schema:
        schema: Schema = {"type": "array"}
        if items := self.items.schema(definitions):
            schema["items"] = items
        return schema | ({"uniqueItems": True} if self.unique else {})

    def read(self, value: Any, path: str) -> Any:
        items = _need(value, list, path)
        return self.build([self.items.read(item, f"{path}[{index}]") for index, item in enumerate(items)])


@dataclass(frozen=True)
class Row(Shape):
    """`tuple[X, Y]`: a list with a fixed number of items, each with its own type."""

    items: tuple[Shape, ...]

    def schema(self, definitions: Definitions) -> Schema:
        count = len(self.items)
        items = [item.schema(definitions) for item in self.items]
        prefix: Schema = {"prefixItems": items} if items else {}
        return {"type": "array", **prefix, "items": False, "minItems": count, "maxItems": count}

    def read(self, value: Any, path: str) -> Any:
        items = _need(value, list, path)
        if len(items) != len(self.items):
            raise Mismatch(path, f"expected {len(self.items)} items, got {len(items)}")
        pairs = zip(self.items, items, strict=True)
        return tuple(shape.read(item, f"{path}[{index}]") for index, (shape, item) in enumerate(pairs))


@dataclass(frozen=True)
class NamedRow(Shape):
    """A `NamedTuple`: a list of items with names, of which the last may have defaults."""

    build: Callable[..., Any]
    fields: tuple[Member, ...]

    def schema(self, definitions: Definitions) -> Schema:
        items = [{"title": member.name, **member.schema(definitions)} for member in self.fields]
        least = sum(member.required for member in self.fields)
        prefix: Schema = {"prefixItems": items} if items else {}
        return {"type": "array", **prefix, "items": False, "minItems": least, "maxItems": len(items)}

    def read(self, value: Any, path: str) -> Any:
        items = _need(value, list, path)
        least = sum(member.required for member in self.fields)
        if not least <= len(items) <= len(self.fields):
            expected = f"{least}" if least == len(self.fields) else f"{least} to {len(self.fields)}"
            raise Mismatch(path, f"expected {expected} items, got {len(items)}")
        pairs = zip(self.fields, items, strict=False)
        return self.build(*(member.shape.read(item, f"{path}[{index}]") for index, (member, item) in enumerate(pairs)))


@dataclass(frozen=True)
class Mapping(Shape):
    """`dict[K, V]`, whose keys are strings, or are represented by strings."""

    keys: Shape
    values: Shape

    def schema(self, definitions: Definitions) -> Schema:
        schema: Schema = {"type": "object"}
        if (keys := self.keys.schema(definitions)) != {"type": "string"}:
            schema["propertyNames"] = keys
        if values := self.values.schema(definitions):
            schema["additionalProperties"] = values
        return schema

    def read(self, value: Any, path: str) -> Any:
        members = _need(value, dict, path)
        return {
            self.keys.read(key, path): self.values.read(member, _join(path, key)) for key, member in members.items()
        }


@dataclass(frozen=True)
class OneOf(Shape):
    """`A | B`: the first that matches."""

    shapes: tuple[Shape, ...]

    def schema(self, definitions: Definitions) -> Schema:
        schemas = [shape.schema(definitions) for shape in self.shapes]
        if {} in schemas:
            return {}
        # The shorter form, which every client supports.
        if all(schema.keys() == {"type"} for schema in schemas):
            return {"type": list(dict.fromkeys(type for schema in schemas for type in _types(schema)))}
        *others, last = schemas
        if last == {"type": "null"} and len(others) == 1 and isinstance(others[0].get("type"), str):
            nullable = {**others[0], "type": [others[0]["type"], "null"]}
            return nullable | ({"enum": [*nullable["enum"], None]} if "enum" in nullable else {})
        return {"anyOf": schemas}

    def read(self, value: Any, path: str) -> Any:
        said = []
        for shape in self.shapes:
            try:
                return shape.read(value, path)
            except Mismatch as error:
                said.append(error)
        # The message for `X | None` is that of X, unless only None remains.
        about = [error for shape, error in zip(self.shapes, said, strict=True) if not _is_none(shape)]
        if len(about) == 1:
            raise about[0]
        raise Mismatch("", "; or ".join(map(str, said)))


@dataclass(frozen=True)
class Described(Shape):
    """`Annotated`: a shape with a description and constraints."""

    shape: Shape
    keywords: tuple[tuple[str, Any], ...]

    def schema(self, definitions: Definitions) -> Schema:
        return self.shape.schema(definitions) | dict(self.keywords)

    def read(self, value: Any, path: str) -> Any:
        return self.shape.read(value, path)


#: No default: the member is required, or JSON cannot represent its default.
ABSENT: Any = object()


@dataclass(frozen=True)
class Member:
    """A member of a record."""

    name: str
    shape: Shape
    required: bool
    default: Any = ABSENT
    description: str | None = None
    #: Makes the default, if the function itself does not have it.
    make: Callable[[], Any] | None = None

    def schema(self, definitions: Definitions) -> Schema:
        schema = self.shape.schema(definitions)
        # An `Annotated` takes precedence over a docstring, and a docstring over a
        # class.
        if self.description is not None and not _is_described(self.shape):
            schema = {**schema, "description": self.description}
        return schema if self.default is ABSENT else {**schema, "default": self.default}


@dataclass(eq=False)
class Record(Shape):
    """A dataclass, a `TypedDict`, or the parameters of a function."""

    name: str
    build: Callable[..., Any]
    description: str | None = None
    #: Set after the record is created, because a member may refer to it.
    fields: list[Member] = field(default_factory=list)
    recursive: bool = False

    def schema(self, definitions: Definitions) -> Schema:
        return definitions.reference(self) if self.recursive else self.members(definitions)

    def members(self, definitions: Definitions) -> Schema:
        """Returns the schema itself, not a reference."""
        schema: Schema = {"type": "object"}
        if self.description is not None:
            schema["description"] = self.description
        if self.fields:
            schema["properties"] = {member.name: member.schema(definitions) for member in self.fields}
        if required := [member.name for member in self.fields if member.required]:
            schema["required"] = required
        return {**schema, "additionalProperties": False}

    def read(self, value: Any, path: str) -> Any:
        members = dict(_need(value, dict, path))
        values = {}
        for member in self.fields:
            if member.name in members:
                values[member.name] = member.shape.read(members.pop(member.name), _join(path, member.name))
            elif member.required:
                raise Mismatch(path, f"`{member.name}` is missing")
            elif member.make is not None:
                values[member.name] = member.make()
        for name in members:
            known = ", ".join(f"`{member.name}`" for member in self.fields)
            raise Mismatch(path, f"there is no `{name}`; there is {known or 'nothing'}")
        try:
            return self.build(**values)
        except ValueError as error:
            # A dataclass that checks its values in `__post_init__`.
            raise Mismatch(path, str(error)) from error


def root(shape: Shape) -> Schema:
    """Returns the complete schema of a shape that is an object, with its `$defs`."""
    definitions = Definitions()
    schema = {"type": "object", **shape.schema(definitions)}
    return schema | ({"$defs": definitions.schemas} if definitions.schemas else {})


def types_of(schema: Schema) -> set[str]:
    """Returns the JSON types that a schema allows, as far as it states them."""
    return set(_types(schema)).union(*(types_of(part) for part in schema.get("anyOf", [])))


def _types(schema: Schema) -> list[str]:
    said: str | list[str] = schema.get("type", [])
    return [said] if isinstance(said, str) else said


def _is_none(shape: Shape) -> bool:
    return isinstance(shape, Scalar) and shape.type is type(None)


def _is_described(shape: Shape) -> bool:
    return isinstance(shape, Described) and "description" in dict(shape.keywords)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _need(value: Any, kind: type, path: str) -> Any:
    if not isinstance(value, kind):
        raise Mismatch(path, f"expected {_NAMES[kind]}, got {quote(value)}")
    return value


def quote(value: Any) -> str:
    """Returns a value for a message, unless it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _QUOTE else _NAMES.get(type(value), "a number")


def _json_type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    return "number" if isinstance(value, float) else "string"
