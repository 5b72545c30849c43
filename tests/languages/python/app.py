"""An acceptance plugin: every way in which a tool can answer."""

from typing import TypedDict

from toolbay import Image, InvalidArguments, Text, cancelled, config, log, progress, tool


@tool(read_only=True)
def python_echo(text: str) -> str:
    """Says a text back."""
    return text


@tool
def python_boom() -> str:
    """Raises an exception that nothing catches."""
    raise ValueError("kaboom: 42")


@tool
def python_refuse() -> str:
    """Refuses its arguments."""
    raise InvalidArguments("not today")


@tool(read_only=True)
def python_image() -> tuple[Image, Text]:
    """Shows a picture, and says that it is one."""
    return Image(b"\x89PNG\r\n\x1a\n"), Text("a picture")


class Report(TypedDict):
    units: str | None
    cancelled: bool


@tool(read_only=True)
def python_report() -> Report:
    """Says how it gets on, and what the operator configured."""
    log.info("working")
    progress(1, 2)
    progress(2, 2)
    return {"units": config("units"), "cancelled": cancelled()}
