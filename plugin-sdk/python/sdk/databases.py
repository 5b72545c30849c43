"""Gives SQLite random numbers in a component, where its own are the same in every call.

SQLite has no source of randomness there. Used only in a component.
"""

from __future__ import annotations

import functools
import os
from types import ModuleType
from typing import Any


def adapt(sqlite3: ModuleType) -> None:
    """Makes each connection take the numbers of `random()` and `randomblob(n)` from the system."""
    connect = sqlite3.connect

    @functools.wraps(connect)
    def connected(*arguments: Any, **options: Any) -> Any:
        connection = connect(*arguments, **options)
        connection.create_function("random", 0, _number)
        connection.create_function("randomblob", 1, _blob)
        return connection

    for module in (sqlite3, sqlite3.dbapi2):
        module.connect = connected  # type: ignore[attr-defined]


def _number() -> int:
    return int.from_bytes(os.urandom(8), "little", signed=True)


def _blob(size: Any) -> bytes:
    # As in SQLite, at least one byte.
    return os.urandom(max(int(size or 0), 1))
