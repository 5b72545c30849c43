"""Reads type hints: the meaning of each in JSON, or the reason why it has none."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections import abc
from enum import Enum, Flag
from typing import Any, Literal, Union

from . import docstring
from .constraints import Field, foreign
from .encode import encode
from .errors import DefinitionError
from .formats import FORMATS
from .shapes import (
    ABSENT,
    Anything,
    Choice,
    Definitions,
    Described,
    Items,
    Mapping,
    Member,
    Mismatch,
    NamedRow,
    OneOf,
    Record,
    Row,
    Scalar,
    Shape,
    types_of,
)

_SCALARS: dict[Any, Scalar] = {
    str: Scalar(str, "string"),
    int: Scalar(int, "integer"),
    float: Scalar(float, "number"),
    bool: Scalar(bool, "boolean"),
    type(None): Scalar(type(None), "null"),
}

#: The type that an array is converted to, by hint.
_ARRAYS: dict[Any, tuple[abc.Callable[..., Any], bool]] = {
    list: (list, False),
    abc.Sequence: (list, False),
    abc.Iterable: (list, False),
    set: (set, True),
    abc.Set: (frozenset, True),
    frozenset: (frozenset, True),
}

_OBJECTS = (dict, abc.Mapping, abc.MutableMapping)

#: The alternatives to hints that are common but have no equivalent in JSON.
_INSTEAD = {
    "complex": "take two `float`s",
    "Context": "use the functions of `toolbay`: `log`, `progress`, `ask`, `config`",
    "object": "use `Any`",
    "tuple": "say what is in it: `tuple[str, int]` or `list[str]`",
}

#: `Required`, `NotRequired` and `ReadOnly` are properties of the member, not of
#: its value. None of them is in every Python since 3.10.
_REQUIRED = getattr(typing, "Required", None)
_NOT_REQUIRED = getattr(typing, "NotRequired", None)
_QUALIFIERS = {_REQUIRED, _NOT_REQUIRED, getattr(typing, "ReadOnly", None)} - {None}


class Reader:
    """Reads hints. Those of results differ from those of arguments in one point.

    A default makes a member of an argument optional. In a result, the member is
    always present, and the schema requires it.
    """

    def __init__(self, *, returned: bool = False) -> None:
        self._returned = returned
        self._records: dict[Any, Record] = {}
        self._open: set[Any] = set()

    def shape(self, hint: Any, where: str) -> Shape:
        """Returns the shape of `hint`. The message of a `DefinitionError` begins with `where`."""
        if hint is None:
            hint = type(None)
        if hint is Any:
            return Anything()
        if isinstance(hint, typing.NewType):
            return self.shape(hint.__supertype__, where)
        # `type Name = …`, since Python 3.12.
        if type(hint).__name__ == "TypeAliasType":
            return self._alias(hint, where)
        origin = typing.get_origin(hint)
        if origin is not None:
            return self._special(hint, origin, typing.get_args(hint), where)
        if isinstance(hint, type):
            return self._class(hint, where)
        raise _unsupported(hint, where)

    def _alias(self, hint: Any, where: str) -> Shape:
        if hint in self._open:
            raise DefinitionError(f"{where}: `{hint}` refers to itself; only a dataclass or a `TypedDict` can")
        self._open.add(hint)
        shape = self.shape(hint.__value__, where)
        self._open.discard(hint)
        return shape

    def _special(self, hint: Any, origin: Any, args: tuple[Any, ...], where: str) -> Shape:
        """Reads a hint with arguments in brackets, or a union."""
        if origin is typing.Annotated:
            return self._annotated(hint, where)
        if origin in _QUALIFIERS:
            return self.shape(args[0], where)
        if origin is Union or origin is types.UnionType:
            return OneOf(tuple(self.shape(arg, where) for arg in args))
        if origin is Literal:
            return _literal(args, where)
        # `typing.List` and similar hints, without brackets.
        if not args and isinstance(origin, type) and hint != tuple[()]:
            return self.shape(origin, where)
        if origin in _ARRAYS:
            build, unique = _ARRAYS[origin]
            return Items(build, self.shape(args[0], where), unique)
        if origin is tuple:
            if len(args) == 2 and args[1] is Ellipsis:
                return Items(tuple, self.shape(args[0], where))
            return Row(tuple(self.shape(arg, where) for arg in args))
        if origin in _OBJECTS:
            return self._mapping(args, where)
        raise _unsupported(hint, where)

    def _annotated(self, hint: Any, where: str) -> Shape:
        shape = self.shape(hint.__origin__, where)
        keywords: dict[str, Any] = {}
        for said in hint.__metadata__:
            if isinstance(said, str):
                keywords["description"] = said
            elif (constraint := foreign(said)) is not None:
                added = constraint.keywords(types_of(shape.schema(Definitions())))
                if not added and not (isinstance(constraint, Field) and constraint.is_silent):
                    raise DefinitionError(f"{where}: `{said}` says nothing about `{name_of(hint.__origin__)}`")
                keywords |= added
        return Described(shape, tuple(keywords.items()))

    def _mapping(self, args: tuple[Any, ...], where: str) -> Shape:
        keys, values = self.shape(args[0], where), self.shape(args[1], where)
        if types_of(keys.schema(Definitions())) != {"string"}:
            raise DefinitionError(f"{where}: the keys of a JSON object are strings, not `{name_of(args[0])}`")
        if isinstance(args[0], type) and not issubclass(args[0], str):
            raise DefinitionError(
                f"{where}: `{name_of(args[0])}` must be a `str` as well: `class {name_of(args[0])}(str, Enum)`"
            )
        return Mapping(keys, values)

    def _class(self, hint: type, where: str) -> Shape:
        if hint in _SCALARS:
            return _SCALARS[hint]
        if hint in FORMATS:
            return FORMATS[hint]
        if hint in _ARRAYS:
            build, unique = _ARRAYS[hint]
            return Items(build, Anything(), unique)
        if hint in _OBJECTS:
            return Mapping(_SCALARS[str], Anything())
        if issubclass(hint, Enum) and not issubclass(hint, Flag):
            return _enum(hint, where)
        if dataclasses.is_dataclass(hint):
            return self._record(hint, hint, where, self._fields)
        if issubclass(hint, dict) and hasattr(hint, "__total__"):
            return self._record(hint, dict, where, self._keys)
        if issubclass(hint, tuple) and hasattr(hint, "_fields"):
            return NamedRow(hint, tuple(self._columns(hint, where)))
        if any(base.__module__.partition(".")[0] == "pydantic" for base in hint.__mro__):
            raise DefinitionError(
                f"{where}: `{hint.__name__}` is a model of pydantic, whose core is compiled, so it cannot be in a "
                "plugin; write a dataclass"
            )
        raise _unsupported(hint, where)

    def _columns(self, hint: Any, where: str) -> abc.Iterator[Member]:
        """Returns the members of a `NamedTuple`."""
        if hint in self._open:
            raise DefinitionError(f"{where}: `{hint.__name__}` refers to itself; only a dataclass or a `TypedDict` can")
        self._open.add(hint)
        hints = resolve(hint, where)
        for name in hint._fields:
            place = f"{where}, `{hint.__name__}.{name}`"
            if self._returned:
                yield Member(name, self.shape(hints.get(name, Any), place), True)
            else:
                absent = dataclasses.MISSING
                default = hint._field_defaults.get(name, absent)
                yield self.member(name, hints.get(name, Any), default, absent, None, place)
        self._open.discard(hint)

    def _record(self, hint: type, build: abc.Callable[..., Any], where: str, members: Any) -> Record:
        record = self._records.get(hint)
        if record is None:
            text = hint.__dict__.get("__doc__")
            # The docstring that `dataclass` generates if there is none.
            text = None if text and text.startswith(f"{hint.__name__}(") else text
            description, described = docstring.parse(text)
            record = self._records[hint] = Record(hint.__name__, build, description)
            self._open.add(hint)
            record.fields.extend(members(hint, described, where))
            self._open.discard(hint)
        elif hint in self._open:
            record.recursive = True
        return record

    def _fields(self, hint: Any, described: dict[str, str], where: str) -> abc.Iterator[Member]:
        """Returns the members of a dataclass."""
        hints = resolve(hint, where)
        for name, of in hints.items():
            if isinstance(of, dataclasses.InitVar):
                raise DefinitionError(f"{where}: `{hint.__name__}.{name}` is an `InitVar`, which JSON cannot fill in")
        for field in dataclasses.fields(hint):
            place = f"{where}, `{hint.__name__}.{field.name}`"
            if self._returned:
                shape = self.shape(hints[field.name], place)
                yield Member(field.name, shape, True, ABSENT, described.get(field.name))
            elif field.init:
                default = field.default
                if isinstance(default, Field):
                    raise DefinitionError(f"{place}: write `Annotated[{name_of(hints[field.name])}, Field(…)]` here")
                if field.default_factory is not dataclasses.MISSING:
                    default = field.default_factory()
                absent = dataclasses.MISSING
                yield self.member(field.name, hints[field.name], default, absent, described.get(field.name), place)

    def _keys(self, hint: Any, described: dict[str, str], where: str) -> abc.Iterator[Member]:
        """Returns the members of a `TypedDict`."""
        for name, of in resolve(hint, where).items():
            shape = self.shape(of, f"{where}, `{hint.__name__}[{name!r}]`")
            # The hint takes precedence: if hints are text, `__required_keys__` is wrong.
            said = {typing.get_origin(of), typing.get_origin(plain(of))} & _QUALIFIERS
            required = _REQUIRED in said or (name in hint.__required_keys__ and _NOT_REQUIRED not in said)
            yield Member(name, shape, required, ABSENT, described.get(name))

    def member(self, name: str, hint: Any, default: Any, absent: Any, description: str | None, where: str) -> Member:
        """Returns a member that may have a default; `absent` is the value that means that it has none."""
        make = None
        if isinstance(default, Field):
            made = default
            hint, default = typing.Annotated[hint, made], made.value(absent)
            make = lambda: made.value(absent)  # noqa: E731
        shape = self.shape(hint, where)
        if default is absent:
            return Member(name, shape, True, ABSENT, description)
        try:
            # Converted to JSON and back, as a client would send it.
            value = json.loads(encode(default))
        except (TypeError, ValueError):
            # A value that only Python supports: the schema cannot contain it.
            return Member(name, shape, False, ABSENT, description, make)
        try:
            shape.read(value, "")
        except Mismatch as error:
            hinted = name_of(hint)
            cure = f": write `{hinted} | None`" if default is None else f": {error}"
            raise DefinitionError(f"{where}: the default `{default!r}` is not `{hinted}`{cure}") from None
        return Member(name, shape, False, value, description, make)


def resolve(owner: Any, where: str) -> dict[str, Any]:
    """Returns the hints of a function or a class. Hints that are text are evaluated."""
    try:
        return typing.get_type_hints(owner, include_extras=True)
    except NameError as error:
        raise DefinitionError(
            f"{where}: a type hint names `{error.name}`, which its module does not have; "
            "define it, or import it, at the top level"
        ) from None
    except TypeError as error:
        raise DefinitionError(f"{where}: a type hint cannot be read: {error}") from None


def _literal(args: tuple[Any, ...], where: str) -> Shape:
    for arg in args:
        if arg is not None and type(arg) not in (str, int, bool):
            raise DefinitionError(f"{where}: `Literal[{arg!r}]` has no place in JSON; use strings or numbers")
    return Choice(tuple((arg, arg) for arg in args))


def _enum(hint: type[Enum], where: str) -> Shape:
    for member in hint:
        if type(member.value) not in (str, int, float, bool):
            raise DefinitionError(
                f"{where}: the value of `{member}` has no place in JSON; give each member a string or a number"
            )
    if not list(hint):
        raise DefinitionError(f"{where}: `{hint.__name__}` has no members")
    return Choice(tuple((member.value, member) for member in hint))


def _unsupported(hint: Any, where: str) -> DefinitionError:
    instead = _INSTEAD.get(
        getattr(hint, "__name__", ""),
        "use `str`, `int`, `float`, `bool`, `None`, `list`, `tuple`, `dict`, `Literal`, `Any`, "
        "an `Enum`, a dataclass, a `TypedDict`, or several of them with `|`",
    )
    return DefinitionError(f"{where}: `{name_of(hint)}` has no place in JSON; {instead}")


def plain(hint: Any) -> Any:
    """Returns the hint behind an alias, a `NewType` or an annotation."""
    while True:
        if isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        elif typing.get_origin(hint) is typing.Annotated:
            hint = hint.__origin__
        else:
            return None if hint is type(None) else hint


def name_of(hint: Any) -> str:
    """Returns a hint as an author would write it."""
    if isinstance(hint, type) and typing.get_origin(hint) is None:
        return hint.__name__
    return str(hint).replace("typing.", "")
