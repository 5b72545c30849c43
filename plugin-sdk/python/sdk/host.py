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


#: What is asked: a form, a page to visit, a text of the client's model, or the user's folders.
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
    """What is on the other side: the host, a test's recorder, or nothing."""

    def log(self, level: Level, message: str) -> None: ...

    def progress(self, done: float, total: float | None, message: str | None) -> None: ...

    def cancelled(self) -> bool: ...

    def config(self, key: str) -> str | None: ...

    def config_all(self) -> dict[str, str]: ...

    def ask(self, questions: Sequence[Asked]) -> list[Any]: ...

    def resource_updated(self, uri: str) -> None: ...


class Nothing:
    """Stands in where there is no host: a tool that is called as a function."""

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
    """The host at the moment."""
    return _current


def use(host: Host) -> Host:
    """Puts a host in place and returns the one before it."""
    global _current
    before, _current = _current, host
    return before


def progress(done: float, total: float | None = None, message: str | None = None) -> None:
    """Tells the client how far the call is: `progress(3, 10)`.

    Leave `total` out if the end is unknown. Each `done` must be greater than
    the last. Does nothing if the client did not ask.
    """
    _current.progress(done, total, message)


def cancelled() -> bool:
    """Whether the client no longer wants the answer.

    The host stops the call in any case: ask only if there is something to put
    in order.
    """
    return _current.cancelled()


def config_all() -> dict[str, str]:
    """Every key and value of `[config]` in the operator's grant."""
    return _current.config_all()


@overload
def config(key: str) -> str | None: ...


@overload
def config(key: str, hint: type[T]) -> T | None: ...


@overload
def config(key: str, hint: Any) -> Any: ...


def config(key: str, hint: Any = str) -> Any:
    """The value of a key in `[config]` of the operator's grant; `None` if it is not there.

    A string comes as it is, any other value as JSON text. With a type hint it
    is read as that: `config("hosts", list[str])`, `config("port", int)`.
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
