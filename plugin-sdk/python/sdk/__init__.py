"""Write Toolbay plugins in Python: a typed function becomes an MCP tool.

    from typing import Annotated

    from toolbay import InvalidArguments, tool


    @tool(read_only=True)
    def greet(name: Annotated[str, "Who to greet."]) -> str:
        \"\"\"Greets somebody by name.\"\"\"
        if not name.strip():
            raise InvalidArguments("name is empty: say who to greet")
        return f"Hello, {name}."

The tools are the functions of `app.py`, and of the modules that it imports,
that have `@tool` above them. Each stays the function that you wrote: a test
just calls it.
"""

from . import keyvalue, log
from .constraints import Length, Pattern, Range
from .content import Audio, Content, Image, Output, Resource, ResourceLink, Text
from .definition import Icon
from .errors import DefinitionError, Failed, InvalidArguments
from .host import cancelled, config, config_all, progress
from .registry import tool

__all__ = [
    "Audio",
    "Content",
    "DefinitionError",
    "Failed",
    "Icon",
    "Image",
    "InvalidArguments",
    "Length",
    "Output",
    "Pattern",
    "Range",
    "Resource",
    "ResourceLink",
    "Text",
    "cancelled",
    "config",
    "config_all",
    "keyvalue",
    "log",
    "progress",
    "tool",
]
