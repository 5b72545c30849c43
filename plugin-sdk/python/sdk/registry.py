"""The decorators, and the registry of their functions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from . import completions, prompts, result
from .completions import Completion, Completions, beginning_with
from .content import Role
from .definition import Annotations, Icon, Offer, Tool
from .errors import DefinitionError, Failed, InvalidArguments, describe
from .finishing import finished, prepare
from .prompts import Filled, Prompt
from .resources import Item, Readable
from .result import Answer
from .shapes import Mismatch
from .views import TYPE, View, asked, is_view, link

F = TypeVar("F", bound=Callable[..., Any])
O = TypeVar("O", bound=Offer)


@dataclass
class Offers:
    """The offers of a plugin."""

    tools: list[Tool] = field(default_factory=list)
    prompts: list[Prompt] = field(default_factory=list)
    resources: list[Readable] = field(default_factory=list)
    completions: list[Completion] = field(default_factory=list)


_seen = Offers()


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    called: str | None = None,
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
    view: str | None = None,
    app_only: bool = False,
    meta: Mapping[str, Any] | None = None,
) -> Callable[[F], F]: ...


def tool(
    function: Callable[..., Any] | str | None = None,
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
    view: str | None = None,
    app_only: bool = False,
    meta: Mapping[str, Any] | None = None,
) -> Any:
    """Makes a function a tool, and returns it unchanged.

    The name is that of the function, or the one in `@tool("name")`. The
    description is that of its docstring, and both schemas are generated from its
    type hints. A parameter is described
    by a string in `Annotated`, or in the docstring, under `Args:` or after
    `:param`.

    `title` is a display name. The next four are hints by which the client
    decides whether to ask its user first: `read_only`: it changes nothing;
    `destructive`: it may delete or overwrite data, not only add to it;
    `idempotent`: repeating a call has no further effect; `open_world`: it
    interacts with external entities, such as the web. Without a hint, clients
    assume the worst.

    `view` is the page that clients show with the results: the URI of a resource
    of the plugin, which begins with `ui://`. A tool that is `app_only` is for
    such pages, and clients that show them hide it from the model.

    `icons` are `https:` or `data:` URIs, or `Icon`s. `meta` are further members
    of the definition's `_meta`; begin a key with your own domain, such as
    `example.com/`.
    """

    if isinstance(function, str):
        function, name = None, function

    def register(function: F) -> F:
        prepare(function)
        hints = Annotations(read_only, destructive, idempotent, open_world)
        made = name or function.__name__
        members = {**(meta or {}), **link(view, app_only)}
        _seen.tools.append(Tool(function, made, title, description, _pictures(icons), members, hints))
        return function

    return register if function is None else register(function)


@overload
def prompt(function: F, /) -> F: ...


@overload
def prompt(
    called: str | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    icons: Sequence[Icon | str] = (),
    meta: Mapping[str, Any] | None = None,
) -> Callable[[F], F]: ...


def prompt(
    function: Callable[..., Any] | str | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    icons: Sequence[Icon | str] = (),
    meta: Mapping[str, Any] | None = None,
) -> Any:
    """Makes a function a prompt, and returns it unchanged.

    A prompt is a text that the user chooses, and that becomes the beginning of
    a conversation. The parameters are its arguments, which clients give as
    text: each is a `str`, an `int`, a `float`, a `bool`, a `Literal` or an
    `Enum`. One with a default is optional. They are described as those of a
    tool; `Title` in `Annotated` is an argument's display name.

    The function returns a `str` or another block, as a message of the user, a
    `Message`, a list of those, or `Messages`.
    """

    if isinstance(function, str):
        function, name = None, function

    def register(function: F) -> F:
        prepare(function)
        made = name or function.__name__
        _seen.prompts.append(Prompt(function, made, title, description, _pictures(icons), dict(meta or {})))
        return function

    return register if function is None else register(function)


def resource(
    uri: str,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    size: int | None = None,
    audience: Role | Sequence[Role] = (),
    priority: float | None = None,
    last_modified: str | None = None,
    icons: Sequence[Icon | str] = (),
    view: View | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Callable[[F], F]:
    """Makes a function a resource, and returns it unchanged: `@resource("notes://all")`.

    A client reads a resource by its URI. Variables in the URI make it a
    template, and each is a parameter: `{name}` is one or more characters other
    than `/`, `?` and `#`, percent-decoded; `{+name}` is any characters, not
    decoded.

    The function returns a `str`, `bytes`, a dataclass or a `dict` for JSON,
    `Contents`, a list of those, or `None` if there is no such resource.

    `mime_type` is that of the contents, if it is always the same. `size`, in
    bytes, and `last_modified`, in ISO 8601, are for a URI without variables.

    A URI that begins with `ui://` makes it a view: a page that clients show with
    the results of a tool. `view` states the permissions that the page requests.
    """
    if not isinstance(uri, str):
        raise DefinitionError('a resource has a URI: `@resource("notes://{id}")`')

    def register(function: F) -> F:
        prepare(function)
        made = Readable(function, function.__name__ if name is None else name, title, description)
        made.icons, made.meta = _pictures(icons), {**(meta or {}), **asked(uri, view)}
        made.uri, made.mime_type, made.size = uri, mime_type or (TYPE if is_view(uri) else None), size
        made.audience, made.priority, made.last_modified = audience, priority, last_modified
        _seen.resources.append(made)
        return function

    return register


def completion(target: Callable[..., Any] | str, argument: str, /) -> Callable[[F], F]:
    """Makes a function suggest values of an argument while the user types: `@completion(review, "language")`.

    `target` is the function of a prompt or of a resource with variables; or the
    prompt's name, or the URI with the variables. The function takes the text that
    the user has typed. If it has a second parameter, it also takes a `dict` of
    the other arguments that are complete. It returns a list of values, or
    `Completions`.

    An argument that is a `Literal` or an `Enum` needs no completion: its values
    are suggested.
    """

    def register(function: F) -> F:
        prepare(function)
        _seen.completions.append(Completion(function, target, argument))
        return function

    return register


def _pictures(icons: Iterable[Icon | str]) -> list[Icon]:
    return [Icon(icon) if isinstance(icon, str) else icon for icon in icons]


def offers() -> Offers:
    """Returns the plugin's offers, sorted by name. Raises a `DefinitionError` with all errors."""
    wrong: list[str] = []
    one_name = 'has the same name; give one of them `@{}(name="…")`'
    tools = _sorted(_seen.tools, lambda tool: tool.name, one_name.format("tool"), wrong)
    made = _sorted(_seen.prompts, lambda prompt: prompt.name, one_name.format("prompt"), wrong)
    resources = _sorted(_seen.resources, lambda resource: resource.uri, "has the same URI", wrong)
    # The contract requires them to differ.
    templates = [one for one in _seen.resources if "{" in one.uri]
    _unique(templates, lambda resource: resource.name, one_name.format("resource"), wrong)
    completed: dict[tuple[int, str], Completion] = {}
    for one in _seen.completions:
        try:
            one.check()
            other = completed.setdefault((id(_target(one)), one.argument), one)
            if other is not one:
                wrong.append(f"{one.where}: {other.where} completes `{one.argument}` already")
        except DefinitionError as error:
            wrong.append(str(error))
    if wrong:
        raise DefinitionError("\n".join(dict.fromkeys(wrong)))
    return Offers(tools, made, resources, list(_seen.completions))


def completes(offered: Offers) -> bool:
    """Returns whether the plugin completes arguments: by a function, or because they are choices."""
    arguments = ((one, argument.name) for one in offered.prompts for argument in one.arguments)
    return bool(offered.completions) or any(one.choices(argument) for one, argument in arguments)


def _sorted(each: Sequence[O], key: Callable[[O], str], alike: str, wrong: list[str]) -> list[O]:
    for one in each:
        try:
            one.check()
        except DefinitionError as error:
            wrong.append(str(error))
    _unique(each, key, alike, wrong)
    return sorted(each, key=key)


def _unique(each: Sequence[O], key: Callable[[O], str], alike: str, wrong: list[str]) -> None:
    named: dict[str, O] = {}
    for one in each:
        other = named.setdefault(key(one), one)
        if other is not one:
            wrong.append(f"{one.where}: {other.where} {alike}")


def _target(one: Completion) -> Prompt | Readable:
    """Returns the offer whose argument a function completes. Raises a `DefinitionError` if there is none."""
    if isinstance(one.target, str):
        called = f"`{one.target}`"
    else:
        called = f"`{getattr(one.target, '__name__', one.target)}`"
    target: Prompt | Readable | None = None
    names: list[str] = []
    for made in _seen.prompts:
        if one.target in (made.name, made.function):
            target, names = made, [member.name for member in made.parameters.fields]
    for readable in _seen.resources if target is None else ():
        if one.target in (readable.uri, readable.function):
            target, names = readable, readable.template.names
    if target is None:
        raise DefinitionError(
            f"{one.where}: {called} is no prompt and no resource; put `@prompt` or `@resource` above it"
        )
    if one.argument not in names:
        known = ", ".join(f"`{name}`" for name in names)
        raise DefinitionError(f"{one.where}: {called} has no argument `{one.argument}`; it has {known or 'none'}")
    return target


def find(which: str | Callable[..., Any], kind: str = "tool") -> Any:
    """Returns the tool or the prompt with this name, the resource with this URI, or the offer of this function."""
    each: Sequence[Offer] = getattr(_seen, f"{kind}s")
    for one in each:
        key = one.uri if isinstance(one, Readable) else one.name
        if which in (key, one.function):
            return one
    raise Failed(f"there is no {kind} `{which}`")


@contextmanager
def _failing() -> Iterator[None]:
    """Converts exceptions of an author's code to `Failed` or `InvalidArguments`."""
    try:
        yield
    except (Failed, InvalidArguments):
        raise
    except Exception as error:
        raise Failed(describe(error)) from error


@contextmanager
def _reading() -> Iterator[None]:
    """Converts a mismatch of arguments to `InvalidArguments`."""
    try:
        yield
    except Mismatch as error:
        raise InvalidArguments(str(error)) from error.__cause__


def call(which: str | Callable[..., Any], arguments: str) -> Answer:
    """Runs a tool with a JSON object as text. Raises `Failed` or `InvalidArguments` if it fails."""
    with _failing():
        one: Tool = find(which)
        with _reading():
            values = one.parameters.read(json.loads(arguments), "")
        promise = one.promise
        return result.answer(
            finished(one.function(**values)), is_wrapped=promise is not None and promise.is_wrapped
        )


def get(which: str | Callable[..., Any], arguments: Mapping[str, str]) -> Filled:
    """Fills in a prompt. Raises `Failed` or `InvalidArguments` if it fails."""
    with _failing():
        one: Prompt = find(which, "prompt")
        with _reading():
            values = one.read(arguments)
        return prompts.filled(finished(one.function(**values)))


def read(uri: str) -> list[Item]:
    """Reads a resource; empty if there is none. Raises `Failed` or `InvalidArguments` if it fails."""
    with _failing():
        # A resource without variables takes precedence over a template that its URI matches.
        for one in sorted(_seen.resources, key=lambda resource: resource.is_template):
            given = one.template.values(uri)
            if given is not None:
                with _reading():
                    values = one.read(given)
                return one.items(uri, finished(one.function(**values)))
        return []


def complete(which: str | Callable[..., Any], argument: str, value: str, arguments: Mapping[str, str]) -> Completions:
    """Suggests values of an argument of a prompt, by its name, or of a template, by its URI.

    There are none if it has no completion. Raises `Failed` or
    `InvalidArguments` if it fails.
    """
    with _failing():
        for one in _seen.completions:
            target = _target(one)
            key = target.uri if isinstance(target, Readable) else target.name
            if one.argument == argument and which in (key, target.function):
                return completions.completions(finished(one.complete(value, arguments)))
        for made in _seen.prompts:
            if which in (made.name, made.function) and (choices := made.choices(argument)):
                return Completions(beginning_with(value, choices))
        return Completions([])
