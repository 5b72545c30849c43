"""The decorator, and the tools that it has seen."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, overload

from . import result
from .definition import Annotations, Icon, Tool
from .errors import DefinitionError, Failed, InvalidArguments, describe
from .result import Answer
from .shapes import Mismatch

F = TypeVar("F", bound=Callable[..., Any])

_tools: list[Tool] = []


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    icons: Sequence[Icon | str] = (),
    meta: Mapping[str, Any] | None = None,
) -> Callable[[F], F]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    icons: Sequence[Icon | str] = (),
    meta: Mapping[str, Any] | None = None,
) -> Any:
    """Makes a tool of a function, which stays what it was.

    The name is the function's, the description its docstring's, and both
    schemas come from its type hints. A parameter is described by a string in
    `Annotated`, or in the docstring, under `Args:` or after `:param`.

    `title` is a display name. The next four are hints for the client, which
    decides whether to ask its user first: `read_only`: it changes nothing;
    `destructive`: it may delete or overwrite data, not only add to it;
    `idempotent`: repeating a call has no further effect; `open_world`: it
    interacts with external entities, such as the web. Without a hint, clients
    assume the worst.

    `icons` are `https:` or `data:` URIs, or `Icon`s. `meta` are further members
    of the definition's `_meta`; begin a key with a domain of yours, such as
    `example.com/`.
    """

    def register(function: F) -> F:
        pictures = [Icon(icon) if isinstance(icon, str) else icon for icon in icons]
        hints = Annotations(read_only, destructive, idempotent, open_world)
        made = name or function.__name__
        _tools.append(Tool(function, made, title, description, hints, pictures, dict(meta or {})))
        return function

    return register if function is None else register(function)


def tools() -> list[Tool]:
    """Every tool, sorted by name. Raises a `DefinitionError` that names all that is wrong."""
    wrong = []
    named: dict[str, Tool] = {}
    for one in _tools:
        try:
            one.check()
        except DefinitionError as error:
            wrong.append(str(error))
        other = named.setdefault(one.name, one)
        if other is not one:
            wrong.append(f'{one.where}: {other.where} has the same name; give one of them `@tool(name="…")`')
    if wrong:
        raise DefinitionError("\n".join(wrong))
    return [named[name] for name in sorted(named)]


def find(which: str | Callable[..., Any]) -> Tool:
    """The tool with this name, or of this function."""
    for one in _tools:
        if which in (one.name, one.function):
            return one
    raise Failed(f"there is no tool `{which}`")


def call(which: str | Callable[..., Any], arguments: str) -> Answer:
    """Runs a tool with a JSON object as text. Raises `Failed` or `InvalidArguments` where it fails."""
    try:
        one = find(which)
        try:
            values = one.parameters.read(json.loads(arguments), "")
        except Mismatch as error:
            raise InvalidArguments(str(error)) from error.__cause__
        return result.answer(one.function(**values))
    except (Failed, InvalidArguments):
        raise
    except Exception as error:
        raise Failed(describe(error)) from error
