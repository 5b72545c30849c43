"""State that outlives a call, if the operator's grant has `[permissions.state]`.

    from toolbay import keyvalue

    notes = keyvalue.open("notes")
    notes["milk"] = "buy some"
    notes.text("milk")

In tests, it is stored in memory. `keyvalue.forget()` deletes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Protocol

__all__ = ["Bucket", "forget", "open"]


class Store(Protocol):
    """Interface to a bucket, implemented by the host, or in a test's memory."""

    def get(self, key: str) -> bytes | None: ...

    def set(self, key: str, value: bytes) -> None: ...

    def delete(self, key: str) -> None: ...

    def exists(self, key: str) -> bool: ...

    def list_keys(self, cursor: int | None) -> tuple[list[str], int | None]: ...

    def increment(self, key: str, by: int) -> int: ...


class Bucket(MutableMapping[str, bytes]):
    """Keys and values. A value that is set as text is stored in UTF-8."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getitem__(self, key: str) -> bytes:
        value = self._store.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: bytes | str) -> None:
        self._store.set(key, value.encode() if isinstance(value, str) else bytes(value))

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._store.delete(key)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._store.exists(key)

    def __iter__(self) -> Iterator[str]:
        keys, cursor = self._store.list_keys(None)
        yield from keys
        while cursor is not None:
            keys, cursor = self._store.list_keys(cursor)
            yield from keys

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def text(self, key: str, default: str | None = None) -> str | None:
        """Returns the value of a key as text; `default` if it has none."""
        value = self._store.get(key)
        return default if value is None else value.decode()

    def increment(self, key: str, by: int = 1) -> int:
        """Adds to the number that a key has, which is initially 0. The operation is atomic."""
        return self._store.increment(key, by)


class _Memory:
    """Stores a bucket in memory."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        return self.values.get(key)

    def set(self, key: str, value: bytes) -> None:
        self.values[key] = value

    def delete(self, key: str) -> None:
        self.values.pop(key, None)

    def exists(self, key: str) -> bool:
        return key in self.values

    def list_keys(self, cursor: int | None) -> tuple[list[str], int | None]:
        # Returned in two pages, which the host may also do.
        keys = sorted(self.values)
        half = len(keys) // 2
        return (keys[:half], half) if cursor is None else (keys[cursor:], None)

    def increment(self, key: str, by: int) -> int:
        total = int(self.values.get(key, b"0")) + by
        self.values[key] = str(total).encode()
        return total


_memory: dict[str, _Memory] = {}


def _in_memory(name: str) -> Store:
    return _memory.setdefault(name, _Memory())


_open: Callable[[str], Store] = _in_memory


def use(opener: Callable[[str], Store]) -> None:
    """Replaces memory by the host."""
    global _open
    _open = opener


def open(name: str = "default") -> Bucket:
    """Opens a bucket of the plugin. Raises a `Failed` if the grant does not allow it."""
    return Bucket(_open(name))


def forget() -> None:
    """Empties every bucket, in tests."""
    _memory.clear()
