"""The schemas, as the server lists them, that the converters for the APIs of models accept: a table of the book.

    python models.py SERVER PLUGINS BOOK [update]

SERVER is the binary; PLUGINS a folder with one plugin, each of whose tools has a schema of one kind; BOOK the page that has the
table. Nothing is sent to an API: the converters and validators of the official packages decide.
"""

import copy
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anthropic import transform_schema
from google.genai import types
from openai.lib._pydantic import _ensure_strict_json_schema

BEGIN, END = "<!-- schemas × models: begin -->", "<!-- schemas × models: end -->"
"""What stands around the table in the book."""


def tools(server: str, plugins: str, form: str) -> dict[str, dict[str, Any]]:
    """Returns the schemas of a server that lists them in this form, by the names of the tools."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "toolbay.toml")
        config.write_text(f'[server]\nschemas = "{form}"\n', encoding="utf-8")
        client = {"name": "models", "version": "1"}
        asked = [
            ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}),
            ("tools/list", {}),
        ]
        lines = [{"jsonrpc": "2.0", "id": at, "method": method, "params": params} for at, (method, params) in enumerate(asked)]
        lines.insert(1, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        started = [server, "serve", "--plugins", plugins, "--config", str(config)]
        said = subprocess.run(
            started, input="".join(json.dumps(line) + "\n" for line in lines), capture_output=True, text=True, timeout=120
        ).stdout
        answers = [json.loads(line) for line in said.splitlines()]
        listed = next(answer["result"]["tools"] for answer in answers if answer.get("id") == 1)
    return {tool["name"]: tool["inputSchema"] for tool in listed}


def keywords(schema: object, found: set[str]) -> set[str]:
    """Adds all keywords of a schema and its subschemas to `found`, and returns it."""
    if isinstance(schema, dict):
        found.update(schema)
        for value in schema.values():
            keywords(value, found)
    elif isinstance(schema, list):
        for value in schema:
            keywords(value, found)
    return found


def openai(schema: dict[str, Any]) -> None:
    """OpenAI's strict mode: its converter must accept the schema, and the result must be valid in strict mode."""
    made = _ensure_strict_json_schema(copy.deepcopy(schema), path=(), root=copy.deepcopy(schema))
    refuse(made, {"oneOf", "allOf", "not", "prefixItems", "uniqueItems", "contentEncoding", "default", "patternProperties"})

    def closed(part: object) -> None:
        if isinstance(part, dict):
            if part.get("type") == "object":
                if part.get("additionalProperties") is not False:
                    raise ValueError("additionalProperties")
                if set(part.get("required", [])) != set(part.get("properties", {})):
                    raise ValueError("required")
            for name, schema in part.get("properties", {}).items():
                if isinstance(schema, dict) and not {"type", "anyOf", "$ref", "enum", "const"} & set(schema):
                    raise ValueError(f"no type: {name}")
            for value in part.values():
                closed(value)
        elif isinstance(part, list):
            for value in part:
                closed(value)

    closed(made)


def anthropic(schema: dict[str, Any]) -> None:
    """Anthropic's structured outputs: its converter must accept the schema without a warning about lost keywords."""
    transform_schema(copy.deepcopy(schema))


def gemini(schema: dict[str, Any]) -> None:
    """Gemini: its own class must read the complete schema, and preserve it."""
    read = types.JSONSchema.model_validate(copy.deepcopy(schema))
    made = types.Schema.from_json_schema(json_schema=read, api_option="GEMINI_API", raise_error_on_unsupported_field=True)
    kept = keywords(made.model_dump(exclude_none=True), set())
    for keyword, name in [("enum", "enum"), ("minimum", "minimum"), ("pattern", "pattern")]:
        if keyword in keywords(schema, set()) and name not in kept:
            raise ValueError(f"{keyword} is lost")


def refuse(schema: dict[str, Any], refused: set[str]) -> None:
    """Raises `ValueError` if the schema has an unsupported keyword."""
    if found := sorted(keywords(schema, set()) & refused):
        raise ValueError(", ".join(found))


MODELS: dict[str, Callable[[dict[str, Any]], None]] = {"OpenAI strict": openai, "Anthropic": anthropic, "Gemini": gemini}


def cell(accepts: Callable[[dict[str, Any]], None], schema: dict[str, Any]) -> str:
    """Returns whether a converter accepts a schema."""
    try:
        accepts(schema)
    except Exception as error:
        print(f"  {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
        return "no"
    return "yes"


def table(server: str, plugins: str) -> str:
    """Returns the table in Markdown."""
    forms = {form: tools(server, plugins, form) for form in ("standard", "portable")}
    head = " | ".join(f"{model}, {form}" for model in MODELS for form in forms)
    lines = [f"| construct | {head} |", f"| --- |{' :---: |' * (len(MODELS) * len(forms))}"]
    for name in sorted(forms["standard"]):
        cells = []
        for model, accepts in MODELS.items():
            for form, schemas in forms.items():
                print(f"{name}, {model}, {form}", file=sys.stderr)
                cells.append(cell(accepts, schemas[name]))
        lines.append(f"| {name.replace('-', ' ')} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(server: str, plugins: str, book: str, *update: str) -> int:
    """Compares the table with that of the book."""
    page = Path(book)
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    known, after = rest.split(END)
    found = table(server, plugins)
    if update:
        page.write_text(f"{before}{BEGIN}\n{found}\n{END}{after}", encoding="utf-8")
    same = bool(update) or known.strip() == found
    print(f"{'ok' if same else 'FAILED':7} the table of schemas and models in {page.name} is what the converters say")
    if not same:
        print(found)
    print(f"{int(same)} passed, {int(not same)} failed")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
