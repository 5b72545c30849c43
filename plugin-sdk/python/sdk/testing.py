"""Functions for tests. Tools, prompts and resources are functions, which most tests call directly.

The functions here replace the host, and do the complete call: from JSON to
content.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from . import host, registry
from .asking import Accepted, Cancelled, Declined, Root
from .completions import Completions
from .content import Output
from .definition import Tool
from .encode import encode
from .errors import AskError, Unsupported
from .host import Asked, Level
from .prompts import Message, Messages, Prompt
from .resources import Contents, Readable

__all__ = [
    "Asked",
    "Progress",
    "Recorder",
    "call",
    "complete",
    "definition",
    "get",
    "prompts",
    "read",
    "recorder",
    "resources",
    "tools",
]


@dataclass(frozen=True)
class Progress:
    """One report of progress."""

    done: float
    total: float | None = None
    message: str | None = None


@dataclass
class Recorder:
    """Replaces the host, and records the reports of the tool."""

    #: The values of `config`, as the operator would write them: a text, a number, a list.
    values: Mapping[str, Any] = field(default_factory=dict)
    #: The result of `cancelled`.
    is_cancelled: bool = False
    #: The answers to questions, by their keys.
    answers: Mapping[str, Any] = field(default_factory=dict)
    #: The questions that were asked.
    asked: list[Asked] = field(default_factory=list)
    #: The URIs of the resources that changed.
    updates: list[str] = field(default_factory=list)
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

    def ask(self, questions: Sequence[Asked]) -> list[Any]:
        self.asked.extend(questions)
        return [self._answer(question) for question in questions]

    def _answer(self, question: Asked) -> Any:
        if question.key not in self.answers:
            raise AskError(
                f"the test has no answer to the question `{question.key}`: "
                f'`testing.recorder(answers={{"{question.key}": …}})`'
            )
        answer = self.answers[question.key]
        if answer is Unsupported or isinstance(answer, Unsupported):
            why = f"the client does not support the question `{question.key}`"
            raise AskError(f"{why}, which is required") if question.required else Unsupported(why)
        return json.loads(encode(_result(answer)))

    def resource_updated(self, uri: str) -> None:
        self.updates.append(uri)


def _result(answer: Any) -> Any:
    """Returns the client's result, as in MCP."""
    match answer:
        case Accepted(None):
            return {"action": "accept"}
        case Accepted(content):
            return {"action": "accept", "content": content}
        case Declined():
            return {"action": "decline"}
        case Cancelled():
            return {"action": "cancel"}
        case str():
            return {"role": "assistant", "model": "test", "content": {"type": "text", "text": answer}}
        case [*roots]:
            return {"roots": [root if isinstance(root, Root) else {"uri": root} for root in roots]}
    return answer


@contextmanager
def recorder(
    config: Mapping[str, Any] | None = None, *, cancelled: bool = False, answers: Mapping[str, Any] | None = None
) -> Iterator[Recorder]:
    """Replaces the host while the block runs.

    with testing.recorder({"units": "metric"}) as host:
        forecast("Oslo")
    assert host.reports[-1].done == 2

    `answers` has an answer for the key of each question: `Accepted(values)`,
    `Declined()` or `Cancelled()` for a `Form` or a `Visit`, a text for
    `Sampling`, a list of URIs for `Roots`, or the client's result as in MCP.
    `Unsupported` stands for a client that cannot answer. In the answer to a
    form, only the types of values are checked; the host checks more.
    """
    recorder = Recorder(dict(config or {}), cancelled, dict(answers or {}))
    before = host.use(recorder)
    try:
        yield recorder
    finally:
        host.use(before)


def call(tool: str | Callable[..., Any], arguments: Mapping[str, Any] | None = None) -> Output:
    """Calls a tool, by its name or its function, with JSON arguments.

    Structured content is returned as parsed JSON. Raises `InvalidArguments` or
    `Failed` with the message that the model would read; the original exception
    is its `__cause__`. Ranges, lengths and patterns are not checked: only the
    host checks them.
    """
    answer = registry.call(tool, json.dumps(dict(arguments or {})))
    return Output(
        list(answer.content),
        None if answer.structured is None else json.loads(answer.structured),
        {} if answer.meta is None else json.loads(answer.meta),
    )


def get(prompt: str | Callable[..., Any], arguments: Mapping[str, str] | None = None) -> Messages:
    """Fills in a prompt, by its name or its function. Raises like `call`."""
    filled = registry.get(prompt, dict(arguments or {}))
    return Messages(
        [Message(block, role) for role, block in filled.messages],
        filled.description,
        {} if filled.meta is None else json.loads(filled.meta),
    )


def read(uri: str) -> list[Contents]:
    """Reads a resource. Empty if there is no such resource. Raises like `call`."""
    return [
        Contents(
            item.text if item.text is not None else item.data or b"",
            item.mime_type,
            item.uri,
            {} if item.meta is None else json.loads(item.meta),
        )
        for item in registry.read(uri)
    ]


def complete(
    target: str | Callable[..., Any], argument: str, value: str = "", arguments: Mapping[str, str] | None = None
) -> Completions:
    """Suggests values of an argument of a prompt or a resource, by its function, or by the prompt's name or the URI.

    `value` is the text that the user has typed; `arguments` are those that are
    complete. Raises like `call`.
    """
    return registry.complete(target, argument, value, dict(arguments or {}))


def definition(tool: str | Callable[..., Any]) -> Tool:
    """Returns the definition of a tool. Raises a `DefinitionError` if it has an error."""
    found: Tool = registry.find(tool)
    found.check()
    return found


def tools() -> list[Tool]:
    """Returns every tool, sorted by name. Raises a `DefinitionError` with all errors of the plugin."""
    return registry.offers().tools


def prompts() -> list[Prompt]:
    """Returns every prompt, sorted by name. Raises a `DefinitionError` like `tools`."""
    return registry.offers().prompts


def resources() -> list[Readable]:
    """Returns every resource and template, sorted by URI. Raises a `DefinitionError` like `tools`."""
    return registry.offers().resources
