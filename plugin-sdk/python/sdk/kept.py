"""Buckets of the host, over the contract. Exists only in a component."""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from componentize_py_types import Err
from wit_world.imports import atomics, store

from .errors import Failed
from .wire import text

T = TypeVar("T")


def open_bucket(name: str) -> Kept:
    return Kept(_said(lambda: store.open(text(name))))


class Kept:
    """A bucket of the host."""

    def __init__(self, bucket: Any) -> None:
        self._bucket = bucket

    def get(self, key: str) -> bytes | None:
        return _said(lambda: self._bucket.get(text(key)))

    def set(self, key: str, value: bytes) -> None:
        _said(lambda: self._bucket.set(text(key), value))

    def delete(self, key: str) -> None:
        _said(lambda: self._bucket.delete(text(key)))

    def exists(self, key: str) -> bool:
        return _said(lambda: self._bucket.exists(text(key)))

    def list_keys(self, cursor: int | None) -> tuple[list[str], int | None]:
        page = _said(lambda: self._bucket.list_keys(cursor))
        return page.keys, page.cursor

    def increment(self, key: str, by: int) -> int:
        return _said(lambda: atomics.increment(self._bucket, text(key), by))


def _said(act: Callable[[], T]) -> T:
    """Returns the result of `act`, or raises its error with a message that is the same in every language."""
    try:
        return act()
    except Err as error:
        match error.value:
            case store.Error_AccessDenied():
                words = "Keeping state is denied."
            case store.Error_NoSuchStore():
                words = "There is no such bucket."
            case other:
                words = f"The state cannot be used: {other.value}."
    raise Failed(words)
