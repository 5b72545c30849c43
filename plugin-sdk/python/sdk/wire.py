"""Converts the types of the SDK to those of the contract, and back. Exists only in a component."""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, overload

from componentize_py_types import Err
from wit_world.imports import host

from .block import Block, fields
from .completions import Completions
from .content import Role, audience_of, named
from .contract import types
from .definition import Icon, Tool
from .encode import encode
from .errors import AskError, Unsupported
from .host import Asked, Level, Nothing, current
from .prompts import Filled, Prompt
from .resources import Item, Readable
from .result import Answer


@overload
def text(value: str) -> str: ...


@overload
def text(value: None) -> None: ...


def text(value: str | None) -> str | None:
    """Returns text that can be passed to the host. A lone surrogate, as in a file name that is not UTF-8, cannot."""
    return None if value is None else value.encode("utf-8", "replace").decode("utf-8")


def definition(tool: Tool) -> types.ToolDefinition:
    """Converts the definition of a tool."""
    return types.ToolDefinition(
        name=tool.name,
        title=text(tool.title),
        description=text(tool.description),
        input_schema=_json(tool.input_schema),
        output_schema=None if tool.output_schema is None else _json(tool.output_schema),
        annotations=types.Annotations(
            tool.annotations.read_only,
            tool.annotations.destructive,
            tool.annotations.idempotent,
            tool.annotations.open_world,
        ),
        icons=[_icon(icon) for icon in tool.icons],
        meta=_json(tool.meta) if tool.meta else None,
    )


def prompt(prompt: Prompt) -> types.PromptDefinition:
    """Converts the definition of a prompt."""
    return types.PromptDefinition(
        name=prompt.name,
        title=text(prompt.title),
        description=text(prompt.description),
        arguments=[
            types.PromptArgument(one.name, text(one.title), text(one.description), one.required)
            for one in prompt.arguments
        ],
        icons=[_icon(icon) for icon in prompt.icons],
        meta=_json(prompt.meta) if prompt.meta else None,
    )


def resource(resource: Readable) -> types.ResourceDefinition:
    """Converts the definition of a resource."""
    return types.ResourceDefinition(
        uri=text(resource.uri),
        size=resource.size,
        last_modified=text(resource.last_modified),
        **_common(resource),
    )


def template(resource: Readable) -> types.ResourceTemplate:
    """Converts the definition of the resources of a template."""
    return types.ResourceTemplate(uri_template=text(resource.uri), **_common(resource))


def _common(resource: Readable) -> dict[str, Any]:
    return {
        "name": text(resource.name),
        "title": text(resource.title),
        "description": text(resource.description),
        "mime_type": text(resource.mime_type),
        "audience": [_role(who) for who in named(resource.audience)],
        "priority": None if resource.priority is None else float(resource.priority),
        "icons": [_icon(icon) for icon in resource.icons],
        "meta": _json(resource.meta) if resource.meta else None,
    }


def _json(members: Mapping[str, Any]) -> str:
    return text(encode(members))


def _icon(icon: Icon) -> types.Icon:
    theme = None if icon.theme is None else types.Theme[icon.theme.upper()]
    return types.Icon(text(icon.src), text(icon.mime_type), [text(size) for size in icon.sizes], theme)


def output(answer: Answer) -> types.Output:
    """Converts a result."""
    return types.Output([_block(block) for block in answer.content], text(answer.structured), text(answer.meta))


def filled(prompt: Filled) -> types.PromptOutput:
    """Converts a prompt with its arguments filled in."""
    messages = [types.PromptMessage(_role(role), _block(block)) for role, block in prompt.messages]
    return types.PromptOutput(text(prompt.description), messages, text(prompt.meta))


def item(item: Item) -> types.ResourceContents:
    """Converts one item of a resource."""
    return types.ResourceContents(text(item.uri), text(item.mime_type), text(item.text), item.data, text(item.meta))


def completions(found: Completions) -> types.Completions:
    """Converts values that an argument could have."""
    return types.Completions([text(value) for value in found.values], found.total, bool(found.has_more))


def _role(who: Role) -> types.Role:
    return types.Role[who.upper()]


def _block(block: Block) -> types.Content:
    found = fields(block)
    return types.Content(
        kind=found.kind,
        text=text(found.text),
        data=found.data,
        mime_type=text(found.mime_type),
        uri=text(found.uri),
        name=text(found.name),
        title=text(found.title),
        description=text(found.description),
        size=found.size,
        audience=[_role(who) for who in audience_of(block)],
        priority=None if block.priority is None else float(block.priority),
        last_modified=text(block.last_modified),
        members=None,
    )


class Building(Nothing):
    """The stub for the host while the plugin is built, when there is no host."""

    def config(self, key: str) -> str | None:
        return self.config_all().get(key)

    def config_all(self) -> dict[str, str]:
        raise RuntimeError(
            "the operator's configuration is not known while the plugin is built: ask for it in a tool, not at the top "
            "level of a module"
        )

    def ask(self, questions: Sequence[Asked]) -> list[Any]:
        raise RuntimeError(
            "nobody can be asked while the plugin is built: ask in a tool, not at the top level of a module"
        )


class WitHost:
    """The host, over the contract."""

    def log(self, level: Level, message: str) -> None:
        host.log(host.Level[level.name], text(str(message)))

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        host.progress(float(done), None if total is None else float(total), text(message))

    def cancelled(self) -> bool:
        return bool(host.cancelled())

    def config(self, key: str) -> str | None:
        value: str | None = host.config(text(key))
        return value

    def config_all(self) -> dict[str, str]:
        return dict(host.config_all())

    def ask(self, questions: Sequence[Asked]) -> list[Any]:
        asked = [
            types.Question(text(one.key), types.QuestionKind[one.kind.upper()], _json(one.params), one.required)
            for one in questions
        ]
        # If an answer is missing, the call ends at this point.
        try:
            answers: list[str] = host.ask(asked)
        except Err as error:
            unsupported = isinstance(error.value, types.AskError_Unsupported)
            raise (Unsupported if unsupported else AskError)(error.value.value) from None
        return [json.loads(answer) for answer in answers]

    def resource_updated(self, uri: str) -> None:
        host.resource_updated(text(uri))


class LogHandler(logging.Handler):
    """Sends the messages of Python's `logging` to the host."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            current().log(_level(record.levelno), self.format(record))
        except Exception:
            self.handleError(record)


def _level(number: int) -> Level:
    if number >= logging.CRITICAL:
        return Level.CRITICAL
    if number >= logging.ERROR:
        return Level.ERROR
    if number >= logging.WARNING:
        return Level.WARNING
    return Level.INFO if number >= logging.INFO else Level.DEBUG
