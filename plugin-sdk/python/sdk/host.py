"""The host's functions for a running tool. None of them requires a permission."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, Protocol, TypeVar, overload

from . import texts
from .errors import AskError, Failed, Unsupported
from .hints import Reader
from .shapes import Mismatch

T = TypeVar("T")


class Level(Enum):
    """The severity of a log message: the levels of syslog, as in MCP."""

    DEBUG = "debug"
    INFO = "info"
    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"
    ALERT = "alert"
    EMERGENCY = "emergency"


#: The kind of a question: a form, a page to visit, a text of the client's model, or the user's
#folders.
Kind = Literal["form", "url", "sampling", "roots"]


@dataclass(frozen=True)
class Asked:
    """A question in the contract's form."""

    key: str
    kind: Kind
    #: The parameters, as in MCP.
    params: dict[str, Any]
    required: bool


class Host(Protocol):
    """Interface to the host, implemented by the host, by a test's recorder, or by a stub."""

    def log(self, level: Level, message: str) -> None: ...

    def progress(self, done: float, total: float | None, message: str | None) -> None: ...

    def cancelled(self) -> bool: ...

    def config(self, key: str) -> str | None: ...

    def config_all(self) -> dict[str, str]: ...

    def ask(self, questions: Sequence[Asked]) -> list[Any]: ...

    def resource_updated(self, uri: str) -> None: ...


class Nothing:
    """The stub for tools that are called as functions, without a host."""

    def log(self, level: Level, message: str) -> None:
        print(f"{level.value}: {message}", file=sys.stderr)

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        pass

    def cancelled(self) -> bool:
        return False

    def config(self, key: str) -> str | None:
        return None

    def config_all(self) -> dict[str, str]:
        return {}

    def ask(self, questions: Sequence[Asked]) -> list[Any]:
        for question in questions:
            if not question.required:
                raise Unsupported("there is no client")
        raise AskError("there is no client: in a test, `testing.recorder(answers={…})` answers")

    def resource_updated(self, uri: str) -> None:
        pass


_current: Host = Nothing()


def current() -> Host:
    """Returns the current host."""
    return _current


def use(host: Host) -> Host:
    """Sets the host, and returns the previous one."""
    global _current
    before, _current = _current, host
    return before


def progress(done: float, total: float | None = None, message: str | None = None) -> None:
    """Reports the progress of the call to the client: `progress(3, 10)`.

    Leave out `total` if it is unknown. Each `done` must be greater than the
    last one. Has no effect if the client did not request progress.
    """
    _current.progress(done, total, message)


def cancelled() -> bool:
    """Returns whether the client has cancelled the call.

    The host ends the call in any case. Use this function only if the tool has
    to clean up.
    """
    return _current.cancelled()


def config_all() -> dict[str, str]:
    """Returns every key and value of `[config]` in the operator's grant."""
    return _current.config_all()


@overload
def config(key: str) -> str | None: ...


@overload
def config(key: str, hint: type[T]) -> T | None: ...


@overload
def config(key: str, hint: Any) -> Any: ...


def config(key: str, hint: Any = str) -> Any:
    """Returns the value of a key in `[config]` of the operator's grant; `None` if it is missing.

    A string is returned unchanged, any other value as JSON text. With a type
    hint, the value is converted: `config("hosts", list[str])`, `config("port", int)`.
    """
    text = _current.config(key)
    if text is None or hint is str:
        return text
    shape = Reader().shape(hint, f"config({key!r})")
    path = f"config.{key}"
    try:
        return texts.read(shape, text, path)
    except Mismatch as error:
        raise Failed(f"the operator's {error}") from None
