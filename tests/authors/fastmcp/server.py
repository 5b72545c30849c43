import io
import json
import os
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote
from urllib.request import urlopen

import png
from fastmcp import Context, FastMCP
from fastmcp.server.elicitation import AcceptedElicitation
from fastmcp.utilities.types import Image
from pydantic import Field

SIZE = 16
SERVICE = os.environ["SERVICE"]

mcp = FastMCP("five-tools")
memory: dict[str, str] = {}


@dataclass
class Weather:
    city: str
    temperature: float


@mcp.tool(annotations={"readOnlyHint": True})
def get_weather(city: Annotated[str, "The city."]) -> Weather:
    """Returns the temperature in a city."""
    with urlopen(f"{SERVICE}/weather?city={quote(city)}") as response:
        return Weather(city, json.load(response)["temperature"])


@mcp.tool
def remember(key: Annotated[str, "The name of the value."], value: Annotated[str, "The value."]) -> str:
    """Remembers a value, and returns the one that it replaces."""
    before = memory.get(key, "nothing")
    memory[key] = value
    return before


@mcp.tool(annotations={"readOnlyHint": True})
async def index_files(files: Annotated[list[str], "The names of the files."], ctx: Context) -> str:
    """Indexes files, and reports its progress."""
    for done, file in enumerate(files, 1):
        await ctx.report_progress(done, len(files), file)
    return f"{len(files)} files are indexed"


@dataclass
class Confirmation:
    yes: Annotated[bool, Field(description="Really delete it?")]


@mcp.tool(annotations={"destructiveHint": True})
async def delete_all(ctx: Context) -> str:
    """Deletes everything, if the user agrees."""
    match await ctx.elicit("This deletes everything.", Confirmation):
        case AcceptedElicitation(data=Confirmation(yes=True)):
            return "deleted"
    return "nothing was deleted"


@mcp.tool(annotations={"readOnlyHint": True})
def draw_swatch(
    red: Annotated[int, Field(description="The level of red.", ge=0, le=255)],
    green: Annotated[int, Field(description="The level of green.", ge=0, le=255)],
    blue: Annotated[int, Field(description="The level of blue.", ge=0, le=255)],
) -> Image:
    """Draws a square of one color."""
    file = io.BytesIO()
    png.Writer(SIZE, SIZE, greyscale=False).write(file, [[red, green, blue] * SIZE] * SIZE)
    return Image(data=file.getvalue(), format="png")


if __name__ == "__main__":
    mcp.run(show_banner=False)
