"""The results of functions: the schema of a return hint, and the conversion of values."""

from __future__ import annotations

import types
import typing
from collections import abc
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from enum import Enum
from typing import Any, Literal, Union

from . import formats, shapes
from .block import Block, known
from .content import Content, Output, Text
from .encode import encode
from .errors import DefinitionError
from .hints import Reader, name_of, plain
from .shapes import OneOf, Record, Schema, Shape, root

#: The types that a tool may return, for messages.
MAY = (
    "return `str` for text; a dataclass, a `TypedDict`, a `dict`, a `list` or a number for structured content; "
    "`Image`, `Audio`, `Resource`, `ResourceLink` or `Text` for a block; a `list` or a `tuple` of those; an `Output`; "
    "or `None`"
)

#: The member of structured content whose value is not an object.
RESULT = "result"

#: The role of a hint in a result: text, JSON that is an object or another value, or content.
_Kind = Literal["none", "text", "value", "object", "content"]


@dataclass(frozen=True)
class Promise:
    """The structured content that a return hint declares."""

    schema: Schema
    #: True if the value is not an object, and so is the member `result` of one.
    is_wrapped: bool


def promise(hint: Any, where: str) -> Promise | None:
    """Returns the structured content that a return hint declares; `None` if it declares none."""
    reader = Reader(returned=True)
    if _kind(hint) == "value":
        shape = reader.shape(hint, where)
        record = Record(RESULT, dict, None, [shapes.Member(RESULT, shape, True)])
        return Promise(root(record), True)
    promised = _promised(hint, reader, where)
    return None if promised is None else Promise(root(promised), False)


def _kind(hint: Any) -> _Kind:
    """Returns the role of a hint. A hint that JSON cannot represent is reported when its shape is read."""
    hint = plain(hint)
    if hint is None:
        return "none"
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return "text" if all(isinstance(arg, str) for arg in args) else "value"
    if origin is Union or origin is types.UnionType:
        kinds = {_kind(arg) for arg in args} - {"none"}
        if "content" in kinds or "object" in kinds:
            # All are objects, or the type of the value decides.
            return "object" if kinds == {"object"} else "content"
        return "text" if kinds <= {"text"} else "value"
    if origin is tuple and args[1:] != (Ellipsis,):
        kinds = {_kind(arg) for arg in args}
        return "content" if kinds & {"content", "object"} else "value"
    if origin in (list, tuple, set, frozenset, abc.Sequence, abc.Set, abc.Iterable) and args:
        return "content" if _kind(args[0]) == "content" else "value"
    if hint in (Any, list, tuple) or (isinstance(hint, type) and issubclass(hint, (Content, Output))):
        return "content"
    owner = origin or hint
    if not isinstance(owner, type):
        return "value"
    if issubclass(owner, Enum):
        return "text" if all(isinstance(member.value, str) for member in owner) else "value"
    if issubclass(owner, str):
        return "text"
    return "object" if issubclass(owner, abc.Mapping) or is_dataclass(owner) else "value"


def _promised(hint: Any, reader: Reader, where: str) -> Shape | None:
    """Returns the shape of the structured content, if a result of the type `hint` always has some."""
    hint = plain(hint)
    if hint in (Any, None, list, tuple) or (isinstance(hint, type) and issubclass(hint, (Content, Output))):
        return None
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Union or origin is types.UnionType:
        promised = [_promised(arg, reader, where) for arg in args]
        # A result that may have another type declares nothing.
        return None if None in promised else OneOf(tuple(filter(None, promised)))
    if origin is list or (origin is tuple and args[1:] == (Ellipsis,)):
        _promised(args[0], reader, where)
        return None
    if origin is tuple:
        promised = [shape for arg in args if (shape := _promised(arg, reader, where)) is not None]
        if len(promised) > 1:
            raise DefinitionError(f"{where}: it returns structured content twice; put both into one dataclass")
        return promised[0] if promised else None
    shape = reader.shape(hint, where)
    return shape if isinstance(shape, (Record, shapes.Mapping)) else None


@dataclass(frozen=True)
class Answer:
    """A result in the form in which it is passed to the host: structured content and `_meta` are JSON."""

    content: list[Block]
    structured: str | None
    meta: str | None


def answer(value: Any, *, is_wrapped: bool = False) -> Answer:
    """Converts a returned value. Raises `TypeError` or `ValueError` if it cannot be sent."""
    if isinstance(value, Output):
        output = value
    elif is_wrapped:
        output = _wrap(value)
    else:
        output = Output()
        _add(output, value)
    return Answer(
        [Text(block) if isinstance(block, str) else known(block) for block in output.content],
        None if output.structured is None else encode(output.structured),
        encode(output.meta) if output.meta else None,
    )


def _wrap(value: Any) -> Output:
    """Returns a value that is not an object, as structured content and as text."""
    items = value if isinstance(value, (list, tuple)) else [value]
    if any(isinstance(item, Content) for item in items):
        raise TypeError(f"it returned an `{type(value).__name__}`, which its return type does not say; {MAY}")
    texts = [_text(item) for item in items]
    # If an item is no plain value, the host writes the text.
    return Output([text for text in texts if text is not None] if None not in texts else [], {RESULT: value})


def _text(value: Any) -> str | None:
    """Returns a plain value as text; `None` if it is none."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return encode(value)
    return None if isinstance(value, (bytes, bytearray, memoryview)) else formats.write(value)


def _add(output: Output, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, Content):
        output.content.append(value)
    elif (text := _text(value)) is not None:
        output.content.append(text)
    elif isinstance(value, Mapping) or (is_dataclass(value) and not isinstance(value, type)):
        if output.structured is not None:
            raise TypeError("it returned structured content twice; put both into one dataclass")
        output.structured = value
    elif isinstance(value, (list, tuple)):
        for item in value:
            _add(output, item)
    else:
        raise TypeError(f"it returned a `{type(value).__name__}`; {MAY}")
