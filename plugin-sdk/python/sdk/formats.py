"""Types that JSON has no form for, and that are written as strings: dates, identifiers, numbers, paths, bytes."""

from __future__ import annotations

import base64
import binascii
import datetime
import decimal
import pathlib
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .shapes import Definitions, Mismatch, Schema, Shape, quote

_DURATION = re.compile(
    r"(?P<sign>[+-]?)P(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)(?:[.,](?P<fraction>\d{1,6})\d*)?S)?)?"
)
_DECIMAL = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


@dataclass(frozen=True)
class Formatted(Shape):
    """A type that is written as a string of some format."""

    read_text: Callable[[str], Any]
    #: What the text is, with an example, for messages.
    expected: str
    keywords: tuple[tuple[str, str], ...]

    def schema(self, definitions: Definitions) -> Schema:
        return {"type": "string", **dict(self.keywords)}

    def read(self, value: Any, path: str) -> Any:
        if isinstance(value, str):
            try:
                return self.read_text(value)
            except (ValueError, ArithmeticError):
                pass
        raise Mismatch(path, f"expected {self.expected}, got {quote(value)}")


def _read_zone(text: str) -> str:
    """Returns a time as every version of Python reads it: `Z` only since 3.11."""
    return f"{text[:-1]}+00:00" if text[-1:] in ("Z", "z") else text


def _read_datetime(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(_read_zone(text))


def _read_time(text: str) -> datetime.time:
    return datetime.time.fromisoformat(_read_zone(text))


def _read_duration(text: str) -> datetime.timedelta:
    found = _DURATION.fullmatch(text)
    if found is None or text[-1:] in ("P", "T"):
        raise ValueError(text)
    parts = {name: int(found[name] or 0) for name in ("weeks", "days", "hours", "minutes", "seconds")}
    whole = datetime.timedelta(**parts, microseconds=int((found["fraction"] or "0").ljust(6, "0")))
    return -whole if found["sign"] == "-" else whole


def _read_decimal(text: str) -> decimal.Decimal:
    if not re.match(_DECIMAL, text):
        raise ValueError(text)
    return decimal.Decimal(text)


def _read_path(kind: type) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        if "\0" in text:
            raise ValueError(text)
        return kind(text)

    return read


def _read_bytes(kind: type) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return kind(base64.b64decode(text, validate=True))
        except binascii.Error as error:
            raise ValueError(text) from error

    return read


def _formatted(read: Callable[[str], Any], expected: str, format: str, **keywords: str) -> Formatted:
    return Formatted(read, expected, (("format", format), *keywords.items()))


#: The types, and how each is written.
FORMATS: dict[Any, Formatted] = {
    datetime.datetime: _formatted(_read_datetime, "a date and a time, such as 2026-01-31T12:00:00Z", "date-time"),
    datetime.date: _formatted(datetime.date.fromisoformat, "a date, such as 2026-01-31", "date"),
    datetime.time: _formatted(_read_time, "a time of day, such as 12:00:00", "time"),
    datetime.timedelta: _formatted(_read_duration, "a duration, such as P1DT2H or PT30S", "duration"),
    uuid.UUID: _formatted(uuid.UUID, "a UUID, such as 6fa459ea-ee8a-3ca4-894e-db77e160355e", "uuid"),
    decimal.Decimal: _formatted(_read_decimal, "a decimal number as a string, such as 12.50", "decimal", pattern=_DECIMAL),
    bytes: _formatted(_read_bytes(bytes), "bytes in base64", "byte", contentEncoding="base64"),
    bytearray: _formatted(_read_bytes(bytearray), "bytes in base64", "byte", contentEncoding="base64"),
    pathlib.Path: _formatted(_read_path(pathlib.Path), "a path", "path"),
    pathlib.PurePath: _formatted(_read_path(pathlib.PurePath), "a path", "path"),
    pathlib.PurePosixPath: _formatted(_read_path(pathlib.PurePosixPath), "a path", "path"),
}


def write(value: Any) -> str | None:
    """Returns the text of a value of one of these types; `None` if it is of another type."""
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return _write_duration(value)
    if isinstance(value, (uuid.UUID, pathlib.PurePath)):
        return str(value)
    if isinstance(value, decimal.Decimal):
        if not value.is_finite():
            raise ValueError(f"{value} cannot be written as JSON")
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    return None


def _write_duration(value: datetime.timedelta) -> str:
    sign = "-" if value < datetime.timedelta(0) else ""
    value = abs(value)
    text = f"{value.days}D" if value.days else ""
    seconds = str(value.seconds)
    if value.microseconds:
        seconds += f".{value.microseconds:06}".rstrip("0")
    if seconds != "0" or not text:
        text += f"T{seconds}S"
    return f"{sign}P{text}"
