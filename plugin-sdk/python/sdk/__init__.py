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
that have the decorator `@tool`. The decorator does not change the function: a
test can call it directly.

`@prompt` turns a function into a prompt, `@resource("notes://{id}")` into a
resource that clients read, and `@completion(review, "language")` suggests
values of an argument. `ask` asks the user, the client's model or the client.
"""

from . import keyvalue, log
from .asking import (
    Accepted,
    Cancelled,
    Declined,
    Form,
    Question,
    Root,
    Roots,
    Sampled,
    Sampling,
    Visit,
    ask,
    ask_all,
    resource_updated,
)
from .completions import Completions, beginning_with
from .constraints import Field, Format, IntString, Length, Pattern, Range, Title
from .content import Audio, Content, Image, Output, Resource, ResourceLink, Text
from .definition import Icon
from .errors import AskError, DefinitionError, Failed, InvalidArguments, Unsupported
from .host import cancelled, config, config_all, progress
from .prompts import Message, Messages
from .registry import completion, prompt, resource, tool
from .resources import Contents
from .views import View

__all__ = [
    "Accepted",
    "AskError",
    "Audio",
    "Cancelled",
    "Completions",
    "Content",
    "Contents",
    "Declined",
    "DefinitionError",
    "Failed",
    "Field",
    "Form",
    "Format",
    "Icon",
    "Image",
    "IntString",
    "InvalidArguments",
    "Length",
    "Message",
    "Messages",
    "Output",
    "Pattern",
    "Question",
    "Range",
    "Resource",
    "ResourceLink",
    "Root",
    "Roots",
    "Sampled",
    "Sampling",
    "Text",
    "Title",
    "Unsupported",
    "View",
    "Visit",
    "ask",
    "ask_all",
    "beginning_with",
    "cancelled",
    "completion",
    "config",
    "config_all",
    "keyvalue",
    "log",
    "progress",
    "prompt",
    "resource",
    "resource_updated",
    "tool",
]
