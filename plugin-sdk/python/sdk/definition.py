"""The definitions of a plugin's offers, derived from functions: their common parts, and those of tools."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import Any, ClassVar, Literal, Union

from . import docstring, result
from .errors import DefinitionError
from .hints import Reader, name_of, plain, resolve
from .shapes import Record, Schema, root

#: The valid names of tools, prompts and the arguments of prompts.
NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


@dataclass(frozen=True)
class Icon:
    """An icon that a client can show with the tool, the prompt or the resource."""

    #: An `https:` or `data:` URI.
    src: str
    mime_type: str | None = None
    #: The sizes at which it can be shown, such as `48x48`, or `any`.
    sizes: Sequence[str] = ()
    #: The background for which it is designed; `None` means both.
    theme: Literal["light", "dark"] | None = None


@dataclass(frozen=True)
class Annotations:
    """The effects of the tool, as hints for the client; `None` gives no hint."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@dataclass
class Offer:
    """An offer of a plugin.

    Type hints are read on request, so they may name classes that are defined
    below the function.
    """

    #: The kind of offer, and the purpose of its description, for messages.
    WHAT: ClassVar[str]
    WHY: ClassVar[str]

    function: Callable[..., Any]
    name: str
    title: str | None = None
    said: str | None = None
    icons: Sequence[Icon] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """Returns its location, for messages."""
        return place(self.function, self.name)

    @property
    def description(self) -> str:
        """Returns its description."""
        return self.said or self._docstring[0] or ""

    @cached_property
    def parameters(self) -> Record:
        """Returns the arguments."""
        record = Record(self.name, dict)
        described = self._docstring[1]
        hints = resolve(self.function, self.where)
        reader = Reader()
        for name, parameter in inspect.signature(self.function).parameters.items():
            where = f"{self.where}, parameter `{name}`"
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise DefinitionError(f"{where}: arguments have names; no `*`, `**` or `/`")
            if name not in hints:
                raise DefinitionError(f"{where}: it has no type; write `{name}: str`, or what else it is")
            member = reader.member(name, hints[name], parameter.default, parameter.empty, described.get(name), where)
            record.fields.append(member)
        for name in described:
            if name not in hints:
                raise DefinitionError(f"{self.where}: its docstring describes `{name}`, which is no parameter")
        return record

    def returned(self, may: str) -> Any:
        """Returns the type hint of its result."""
        hints = resolve(self.function, self.where)
        if "return" not in hints:
            raise DefinitionError(f"{self.where}: say what it returns, such as `-> str`; {may}")
        return hints["return"]

    def check(self) -> None:
        """Raises a `DefinitionError` if something is wrong with it."""
        check_plain(self.function, self.where, self.WHAT)
        if not self.description:
            raise DefinitionError(f"{self.where}: it has no docstring; {self.WHY}")

    @cached_property
    def _docstring(self) -> tuple[str | None, dict[str, str]]:
        return docstring.parse(self.function.__doc__)


@dataclass
class Tool(Offer):
    """A tool."""

    WHAT = "a tool"
    WHY = "the model decides by it whether to call the tool"

    annotations: Annotations = Annotations()

    @cached_property
    def input_schema(self) -> Schema:
        """Returns the JSON Schema of the arguments."""
        return root(self.parameters)

    @cached_property
    def output_schema(self) -> Schema | None:
        """Returns the JSON Schema of the structured content, if the tool always returns some."""
        return None if self.promise is None else self.promise.schema

    @cached_property
    def promise(self) -> result.Promise | None:
        """Returns the structured content that the tool always returns, if any."""
        return result.promise(self.returned(result.MAY), f"{self.where}, result")

    def check(self) -> None:
        check_name(self.name, self.where)
        super().check()
        _ = self.input_schema, self.output_schema


def place(function: Callable[..., Any], name: str) -> str:
    """Returns the location of a function, for messages."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return f"`{name}`"
    return f"{PurePath(code.co_filename).name}:{code.co_firstlineno}: `{name}`"


def check_name(name: str, where: str) -> None:
    """Raises a `DefinitionError` if the name is invalid."""
    if not NAME.fullmatch(name):
        raise DefinitionError(f"{where}: a name has 1 to 128 of `A-Z a-z 0-9 _ - .`")


def check_plain(function: Callable[..., Any], where: str, what: str) -> None:
    """Raises a `DefinitionError` if the function is a generator."""
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise DefinitionError(f"{where}: {what} is a function without `yield`; return a list")


def check_returned(hint: Any, allowed: Callable[[Any], bool], where: str, may: str) -> None:
    """Raises a `DefinitionError` if `hint` is neither an allowed type nor a list of one."""
    hint = plain(hint)
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType, list, tuple, abc.Sequence):
        for arg in typing.get_args(hint):
            if arg is not Ellipsis:
                check_returned(arg, allowed, where, may)
    elif hint not in (Any, list, tuple) and not allowed(hint):
        raise DefinitionError(f"{where}: it cannot be `{name_of(hint)}`; {may}")
