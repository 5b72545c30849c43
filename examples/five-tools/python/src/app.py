import io
import json
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote
from urllib.request import urlopen

import png
from toolbay import Accepted, Form, Image, Range, ask, config, keyvalue, progress, tool

SIZE = 16


@dataclass
class Weather:
    city: str
    temperature: float


@tool(read_only=True)
def get_weather(city: Annotated[str, "The city."]) -> Weather:
    """Returns the temperature in a city."""
    with urlopen(f"{config('service')}/weather?city={quote(city)}") as response:
        return Weather(city, json.load(response)["temperature"])


@tool
def remember(key: Annotated[str, "The name of the value."], value: Annotated[str, "The value."]) -> str:
    """Remembers a value, and returns the one that it replaces."""
    memory = keyvalue.open("memory")
    before = memory.text(key, "nothing")
    memory[key] = value
    return before


@tool(read_only=True)
def index_files(files: Annotated[list[str], "The names of the files."]) -> str:
    """Indexes files, and reports its progress."""
    for done, file in enumerate(files, 1):
        progress(done, len(files), file)
    return f"{len(files)} files are indexed"


@dataclass
class Confirmation:
    yes: Annotated[bool, "Really delete it?"]


@tool(destructive=True)
def delete_all() -> str:
    """Deletes everything, if the user agrees."""
    match ask("sure", Form("This deletes everything.", Confirmation)):
        case Accepted(Confirmation(yes=True)):
            return "deleted"
    return "nothing was deleted"


@tool(read_only=True)
def draw_swatch(
    red: Annotated[int, "The level of red.", Range(0, 255)],
    green: Annotated[int, "The level of green.", Range(0, 255)],
    blue: Annotated[int, "The level of blue.", Range(0, 255)],
) -> Image:
    """Draws a square of one color."""
    file = io.BytesIO()
    png.Writer(SIZE, SIZE, greyscale=False).write(file, [[red, green, blue] * SIZE] * SIZE)
    return Image(file.getvalue(), "image/png")
