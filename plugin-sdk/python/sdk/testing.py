"""For tests: a tool is a function, and most tests just call it.

These stand in for the host, and go the whole way that a call goes: from JSON
to content.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from . import host, registry
from .content import Output
from .definition import Tool
from .host import Level

__all__ = ["Progress", "Recorder", "call", "definition", "recorder", "tools"]


@dataclass(frozen=True)
class Progress:
    """One report of progress."""

    done: float
    total: float | None = None
    message: str | None = None


@dataclass
class Recorder:
    """Stands in for the host, and keeps what the tool said."""

    #: What `config` answers, as the operator would write it: a text, a number, a list.
    values: Mapping[str, Any] = field(default_factory=dict)
    #: What `cancelled` answers.
    is_cancelled: bool = False
    #: The log lines.
    lines: list[tuple[Level, str]] = field(default_factory=list)
    #: The reports of progress.
    reports: list[Progress] = field(default_factory=list)

    def log(self, level: Level, message: str) -> None:
        self.lines.append((level, message))

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        self.reports.append(Progress(done, total, message))

    def cancelled(self) -> bool:
        return self.is_cancelled

    def config(self, key: str) -> str | None:
        return self.config_all().get(key)

    def config_all(self) -> dict[str, str]:
        texts = ((key, value if isinstance(value, str) else json.dumps(value)) for key, value in self.values.items())
        return dict(sorted(texts))


@contextmanager
def recorder(config: Mapping[str, Any] | None = None, *, cancelled: bool = False) -> Iterator[Recorder]:
    """Stands in for the host while the block runs.

    with testing.recorder({"units": "metric"}) as host:
        forecast("Oslo")
    assert host.reports[-1].done == 2
    """
    recorder = Recorder(dict(config or {}), cancelled)
    before = host.use(recorder)
    try:
        yield recorder
    finally:
        host.use(before)


def call(tool: str | Callable[..., Any], arguments: Mapping[str, Any] | None = None) -> Output:
    """Calls a tool, by its name or its function, with JSON arguments.

    Structured content comes back as JSON would give it. Raises
    `InvalidArguments` or `Failed` with what the model would read; the
    exception behind it is its `__cause__`. The host alone checks ranges,
    lengths and patterns.
    """
    answer = registry.call(tool, json.dumps(dict(arguments or {})))
    return Output(
        list(answer.content),
        None if answer.structured is None else json.loads(answer.structured),
        {} if answer.meta is None else json.loads(answer.meta),
    )


def definition(tool: str | Callable[..., Any]) -> Tool:
    """The definition of a tool. Raises a `DefinitionError` if it cannot be one."""
    found = registry.find(tool)
    found.check()
    return found


def tools() -> list[Tool]:
    """Every tool, sorted by name. Raises a `DefinitionError` that names all that is wrong."""
    return registry.tools()
