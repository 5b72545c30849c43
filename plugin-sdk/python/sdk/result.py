"""The results of functions: the schema of a return hint, and the conversion of values."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from enum import Enum
from typing import Any, Union

from . import shapes
from .block import Block, known
from .content import Content, Output, Text
from .encode import encode
from .errors import DefinitionError
from .hints import Reader, name_of, plain
from .shapes import Choice, OneOf, Record, Scalar, Schema, Shape, root

#: The types that a tool may return, for messages.
MAY = (
    "return `str` for text; a dataclass, a `TypedDict` or a `dict` for structured content; `Image`, `Audio`, "
    "`Resource`, `ResourceLink` or `Text` for a block; a `list` or a `tuple` of those; an `Output`; or `None`"
)


def output_schema(hint: Any, where: str) -> Schema | None:
    """Returns the schema of the structured content that a return hint declares; `None` if it declares none."""
    promised = _promised(hint, Reader(returned=True), where)
    return None if promised is None else root(promised)


def _promised(hint: Any, reader: Reader, where: str) -> Shape | None:
    """Returns the shape of the structured content, if a result of the type `hint` always has some."""
    hint = plain(hint)
    if hint in (Any, None, list) or (isinstance(hint, type) and issubclass(hint, (Content, Output))):
        return None
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Union or origin is types.UnionType:
        promised = [_promised(arg, reader, where) for arg in args]
        # A result that may have another type declares nothing.
        return None if None in promised else OneOf(tuple(filter(None, promised)))
    if origin is list or (origin is tuple and args[1:] == (Ellipsis,)):
        if _promised(args[0], reader, where) is not None:
            raise DefinitionError(
                f"{where}: structured content is an object, not a list of `{name_of(args[0])}`; return a dataclass "
                "with the list in it"
            )
        return None
    if origin is tuple:
        promised = [shape for arg in args if (shape := _promised(arg, reader, where)) is not None]
        if len(promised) > 1:
            raise DefinitionError(f"{where}: it returns structured content twice; put both into one dataclass")
        return promised[0] if promised else None
    shape = reader.shape(hint, where)
    if isinstance(shape, (Record, shapes.Mapping)):
        return shape
    if isinstance(shape, (Scalar, Choice)):
        return None
    raise DefinitionError(f"{where}: it cannot be `{name_of(hint)}`; {MAY}")


@dataclass(frozen=True)
class Answer:
    """A result in the form in which it is passed to the host: structured content and `_meta` are JSON."""

    content: list[Block]
    structured: str | None
    meta: str | None


def answer(value: Any) -> Answer:
    """Converts a returned value. Raises `TypeError` or `ValueError` if it cannot be sent."""
    if isinstance(value, Output):
        output = value
    else:
        output = Output()
        _add(output, value)
    return Answer(
        [Text(block) if isinstance(block, str) else known(block) for block in output.content],
        None if output.structured is None else encode(output.structured),
        encode(output.meta) if output.meta else None,
    )


def _add(output: Output, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, (str, Content)):
        output.content.append(value)
    elif isinstance(value, (bool, int, float)):
        output.content.append(encode(value))
    elif isinstance(value, Mapping) or (is_dataclass(value) and not isinstance(value, type)):
        if output.structured is not None:
            raise TypeError("it returned structured content twice; put both into one dataclass")
        output.structured = value
    elif isinstance(value, (list, tuple)):
        for item in value:
            _add(output, item)
    else:
        raise TypeError(f"it returned a `{type(value).__name__}`; {MAY}")
