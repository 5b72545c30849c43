"""The calls of the five tools, with the results that each server returns."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

import png

from connection import Connection

YES = {"action": "accept", "content": {"yes": True}}

PROPERTIES = {
    "get_weather": {"city": "string"},
    "remember": {"key": "string", "value": "string"},
    "index_files": {"files": "array"},
    "delete_all": {},
    "draw_swatch": {"red": "integer", "green": "integer", "blue": "integer"},
}
"""The arguments of the tools with their types. All are required."""

DESCRIPTIONS = {
    "get_weather": "Returns the temperature in a city.",
    "remember": "Remembers a value, and returns the one that it replaces.",
    "index_files": "Indexes files, and reports its progress.",
    "delete_all": "Deletes everything, if the user agrees.",
    "draw_swatch": "Draws a square of one color.",
}

READ_ONLY = {"get_weather", "index_files", "draw_swatch"}

FAILED = "failed"
"""Stands for a result that is an error, whose words differ."""


@dataclass
class Step:
    """A call, and what the client sees of it."""

    what: str
    tool: str
    arguments: dict[str, Any]
    expected: Any
    progress: list[list[Any]] = field(default_factory=list)
    answer: dict[str, Any] | None = None


def swatch(red: int, green: int, blue: int) -> dict[str, int]:
    return {"red": red, "green": green, "blue": blue}


def drawn(*color: int) -> dict[str, Any]:
    return {"type": "image/png", "width": 16, "height": 16, "colors": [list(color)]}


def weather(city: str, temperature: float) -> dict[str, Any]:
    return {"city": city, "temperature": temperature}


def remembers(what: str, key: str, value: str, before: str) -> Step:
    return Step(what, "remember", {"key": key, "value": value}, before)


def asks(what: str, answer: dict[str, Any], expected: str) -> Step:
    return Step(what, "delete_all", {}, expected, answer=answer)


SAO_TOME, HARD = "São Tomé & Príncipe", "100% + one/two?#"
FILES = ["a.txt", "b.txt", "ünï\n.txt"]

STEPS = [
    Step("gets the weather", "get_weather", {"city": "Bern"}, weather("Bern", 12.5)),
    Step("encodes the name of a city", "get_weather", {"city": SAO_TOME}, weather(SAO_TOME, 27)),
    Step("encodes each character of a URL", "get_weather", {"city": HARD}, weather(HARD, -3.25)),
    Step("fails if the service has no such city", "get_weather", {"city": "Atlantis"}, FAILED),
    Step("refuses a call without a city", "get_weather", {}, FAILED),
    Step("refuses a city that is a number", "get_weather", {"city": 1}, FAILED),
    remembers("remembers nothing at first", "milk", "one", "nothing"),
    remembers("remembers a value of another call", "milk", "two", "one"),
    remembers("remembers each key separately", "żółw 🐢", "", "nothing"),
    remembers("remembers an empty value", "żółw 🐢", "żółw 🐢", ""),
    remembers("remembers Unicode", "żółw 🐢", "three", "żółw 🐢"),
    remembers("remembers what it had", "milk", "four", "two"),
    Step(
        "reports progress",
        "index_files",
        {"files": FILES},
        "3 files are indexed",
        [[done, 3, file] for done, file in enumerate(FILES, 1)],
    ),
    Step("reports no progress without files", "index_files", {"files": []}, "0 files are indexed"),
    asks("deletes after a yes", YES, "deleted"),
    asks("deletes nothing after a no", {"action": "accept", "content": {"yes": False}}, "nothing was deleted"),
    asks("deletes nothing if the user declines", {"action": "decline"}, "nothing was deleted"),
    asks("ignores the fields of a refusal", {**YES, "action": "decline"}, "nothing was deleted"),
    asks("deletes nothing if the user cancels", {"action": "cancel"}, "nothing was deleted"),
    Step("draws", "draw_swatch", swatch(255, 128, 0), drawn(255, 128, 0)),
    Step("draws black", "draw_swatch", swatch(0, 0, 0), drawn(0, 0, 0)),
    Step("refuses a level of 256", "draw_swatch", swatch(0, 256, 0), FAILED),
    Step("refuses a level below 0", "draw_swatch", swatch(0, 0, -1), FAILED),
    Step("refuses half a level", "draw_swatch", {"red": 0.5, "green": 0, "blue": 0}, FAILED),
]


def seen_tools(tools: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Returns what the tools have in common in each server."""
    return {
        name: {
            "description": tool.get("description"),
            "properties": {
                key: schema.get("type") for key, schema in tool["inputSchema"].get("properties", {}).items()
            },
            "described": all(
                schema.get("description") for schema in tool["inputSchema"].get("properties", {}).values()
            ),
            "required": sorted(tool["inputSchema"].get("required", [])),
            "read only": tool.get("annotations", {}).get("readOnlyHint") is True,
        }
        for name, tool in tools.items()
    }


def expected_tools() -> dict[str, Any]:
    return {
        name: {
            "description": DESCRIPTIONS[name],
            "properties": properties,
            "described": True,
            "required": sorted(properties),
            "read only": name in READ_ONLY,
        }
        for name, properties in PROPERTIES.items()
    }


def seen_result(response: dict[str, Any]) -> Any:
    """Returns what a client uses of a result: the structured content, the text or the image."""
    if "error" in response or response["result"].get("isError"):
        return FAILED
    result = response["result"]
    blocks = result["content"]
    # fastmcp also returns a text as structured content.
    structured = result.get("structuredContent")
    if structured is not None and structured.keys() != {"result"}:
        return structured
    if len(blocks) != 1:
        return blocks
    if blocks[0]["type"] == "text":
        return blocks[0]["text"]
    return seen_image(blocks[0])


def seen_image(block: dict[str, Any]) -> Any:
    """Decodes a PNG, because each encoder writes other bytes."""
    width, height, rows, _ = png.Reader(bytes=base64.b64decode(block["data"])).asRGBA8()
    colors = set()
    for row in rows:
        values = list(row)
        for at in range(0, len(values), 4):
            red, green, blue, alpha = values[at : at + 4]
            # A color that is not opaque is another one.
            colors.add((red, green, blue) if alpha == 255 else (red, green, blue, alpha))
    listed = [list(color) for color in sorted(colors)]
    return {"type": block["mimeType"], "width": width, "height": height, "colors": listed}


def seen_questions(connection: Connection) -> list[Any]:
    return [
        {
            "message": asked["message"],
            "fields": {
                name: [schema.get("type"), schema.get("description")]
                for name, schema in asked["requestedSchema"]["properties"].items()
            },
            "required": asked["requestedSchema"].get("required"),
        }
        for asked in connection.asked
    ]


QUESTION = {
    "message": "This deletes everything.",
    "fields": {"yes": ["boolean", "Really delete it?"]},
    "required": ["yes"],
}


def take(step: Step, connection: Connection) -> tuple[Any, Any]:
    """Makes the call. Returns what the client saw, and what it expects."""
    response = connection.call(step.tool, step.arguments, step.answer)
    progress = [
        [message["params"].get(key) for key in ("progress", "total", "message")]
        for message in connection.notifications
        if message["method"] == "notifications/progress"
    ]
    expected = (step.expected, step.progress, [] if step.answer is None else [QUESTION])
    return (seen_result(response), progress, seen_questions(connection)), expected
