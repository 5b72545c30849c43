"""Turns what the SDK has into what crosses to the host, and back. Exists in a component only."""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, overload

from wit_world.imports import host, types

from .content import Audio, Content, Image, Resource, ResourceLink, Text, audience_of
from .definition import Icon, Tool
from .encode import encode
from .host import Level, Nothing, current
from .result import Answer


@overload
def text(value: str) -> str: ...


@overload
def text(value: None) -> None: ...


def text(value: str | None) -> str | None:
    """Text that can cross. A lone surrogate, as in a file name that is not UTF-8, cannot."""
    return None if value is None else value.encode("utf-8", "replace").decode("utf-8")


def definition(tool: Tool) -> types.ToolDefinition:
    """What clients are told about a tool."""
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


def _json(members: Mapping[str, Any]) -> str:
    return text(encode(members))


def _icon(icon: Icon) -> types.Icon:
    theme = None if icon.theme is None else types.Theme[icon.theme.upper()]
    return types.Icon(text(icon.src), text(icon.mime_type), [text(size) for size in icon.sizes], theme)


def output(answer: Answer) -> types.Output:
    """A result."""
    return types.Output([_block(block) for block in answer.content], text(answer.structured), text(answer.meta))


def _block(block: Content) -> types.Content:
    if isinstance(block, Text):
        made = _empty(types.ContentKind.TEXT, block)
        made.text = text(block.text)
    elif isinstance(block, (Image, Audio)):
        made = _empty(types.ContentKind.IMAGE if isinstance(block, Image) else types.ContentKind.AUDIO, block)
        made.data = bytes(block.data)
        made.mime_type = text(block.mime_type)
    elif isinstance(block, ResourceLink):
        made = _empty(types.ContentKind.RESOURCE_LINK, block)
        made.uri, made.name, made.size = text(block.uri), text(block.name), block.size
        made.title, made.description = text(block.title), text(block.description)
        made.mime_type = text(block.mime_type)
    elif isinstance(block, Resource):
        made = _empty(types.ContentKind.EMBEDDED_RESOURCE, block)
        made.uri, made.mime_type = text(block.uri), text(block.mime_type)
        if isinstance(block.contents, str):
            made.text = text(block.contents)
        else:
            made.data = bytes(block.contents)
    else:
        raise TypeError(f"a block of content is a `Text`, `Image` or the like, not a `{type(block).__name__}`")
    return made


def _empty(kind: types.ContentKind, block: Content) -> types.Content:
    """A block with what all kinds have."""
    return types.Content(
        kind=kind,
        text=None,
        data=None,
        mime_type=None,
        uri=None,
        name=None,
        title=None,
        description=None,
        size=None,
        audience=[types.Audience[who.upper()] for who in audience_of(block)],
        priority=None if block.priority is None else float(block.priority),
    )


class Building(Nothing):
    """Stands in for the host while the plugin is built, when there is none."""

    def config(self, key: str) -> str | None:
        return self.config_all().get(key)

    def config_all(self) -> dict[str, str]:
        raise RuntimeError(
            "the operator's configuration is not known while the plugin is built: ask for it in a tool, not at the top "
            "level of a module"
        )


class WitHost:
    """The host, across the boundary."""

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


class LogHandler(logging.Handler):
    """Sends what Python's `logging` is told to the host."""

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
