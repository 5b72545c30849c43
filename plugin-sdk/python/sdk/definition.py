"""The definition of a tool, derived from its function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import Any, Literal

from . import docstring, result
from .errors import DefinitionError
from .hints import Reader, resolve
from .shapes import Record, Schema, root

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


@dataclass(frozen=True)
class Icon:
    """An icon that a client can show with the tool."""

    #: An `https:` or `data:` URI.
    src: str
    mime_type: str | None = None
    #: The sizes that it is for, such as `48x48`, or `any`.
    sizes: Sequence[str] = ()
    #: The background for which it is made; `None` means both.
    theme: Literal["light", "dark"] | None = None


@dataclass(frozen=True)
class Annotations:
    """What the tool does, as hints for the client; `None` gives no hint."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@dataclass
class Tool:
    """A tool. Hints are read when they are asked for, so they may name classes that stand below the function."""

    function: Callable[..., Any]
    name: str
    title: str | None = None
    said: str | None = None
    annotations: Annotations = Annotations()
    icons: Sequence[Icon] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """Where it stands, for messages."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        if code is None:
            return f"`{self.name}`"
        return f"{PurePath(code.co_filename).name}:{code.co_firstlineno}: `{self.name}`"

    @property
    def description(self) -> str:
        """What it does and when to use it, for the model."""
        return self.said or self._docstring[0] or ""

    @cached_property
    def parameters(self) -> Record:
        """The arguments."""
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

    @cached_property
    def input_schema(self) -> Schema:
        """The JSON Schema of the arguments."""
        return root(self.parameters)

    @cached_property
    def output_schema(self) -> Schema | None:
        """The JSON Schema of the structured content, if it always returns some."""
        hints = resolve(self.function, self.where)
        if "return" not in hints:
            raise DefinitionError(f"{self.where}: say what it returns, such as `-> str`; {result.MAY}")
        return result.output_schema(hints["return"], f"{self.where}, result")

    def check(self) -> None:
        """Raises a `DefinitionError` if something is wrong with it."""
        if not _NAME.fullmatch(self.name):
            raise DefinitionError(f"{self.where}: a name has 1 to 128 of `A-Z a-z 0-9 _ - .`")
        if inspect.iscoroutinefunction(self.function) or inspect.isgeneratorfunction(self.function):
            raise DefinitionError(f"{self.where}: a tool is a plain function, not `async`, and without `yield`")
        if not self.description:
            raise DefinitionError(
                f"{self.where}: it has no docstring; the model decides by it whether to call the tool"
            )
        _ = self.input_schema, self.output_schema

    @cached_property
    def _docstring(self) -> tuple[str | None, dict[str, str]]:
        return docstring.parse(self.function.__doc__)
