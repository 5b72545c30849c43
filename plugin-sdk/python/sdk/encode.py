"""Writes results as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Set
from enum import Enum
from typing import Any

from . import formats


def encode(value: Any) -> str:
    """Returns a value as JSON. Raises `TypeError` or `ValueError` if that is not possible."""
    try:
        return json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise ValueError("it contains itself, or is nested too deeply") from None


def _plain(value: Any) -> Any:
    """Returns the substitute for a value that JSON does not support."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # Not `asdict`, which copies all nested values.
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if (text := formats.write(value)) is not None:
        return text
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        # Sorted if possible, so that the order does not differ between runs.
        try:
            return sorted(value)
        except TypeError:
            return list(value)
    raise TypeError(f"a `{type(value).__name__}` cannot be written as JSON")
