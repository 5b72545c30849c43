"""The plugins of each language through the official Python client, over stdio.

    languages.py SERVER PLUGINS LANGUAGE...

SERVER is the binary; PLUGINS a folder with `sample-LANGUAGE` and
`LANGUAGE-acceptance`, with `plain-LANGUAGE` and `server-LANGUAGE` if the
language has these forms, with the examples in the language, and with grants that set `config.units`.
"""

import base64
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters

import examples
import offers
from client import PATIENCE, Checks, names
from site_for_plugins import Site

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"

TEXTS = {
    "a short text": "Hello",
    "an empty text": "",
    "every plane of Unicode": "naïve Ω 日本語 👩‍🚀 \U0010ffff \ufffd",
    "quotes and backslashes": "\t\n\"quoted\" \\u0041 \\ / </script> \u2028",
    "100 KB": "0123456789 äöü 👋\n" * 4_000,
}

ACTING = "a\u0001b\u0000c\u202ed"
"""Characters that a plugin gets, and that the server keeps out of answers."""

COUNTS = {
    "": (0, 0, 0),
    "one": (3, 1, 1),
    "one two\nthrée": (13, 3, 2),
    "two words\nand 👋\n": (16, 4, 3),
    ACTING: (7, 1, 1),
}

KEEPING = {"rust", "javascript", "python", "go"}
"""Languages whose SDK keeps state."""

SENDING = KEEPING | {"c"}
"""Languages whose SDK sends requests."""

WITH_TOOLS_ONLY = {"kotlin"}
"""Languages whose SDK has tools, and neither prompts, resources, completion nor questions."""

TIMED = 15
"""Calls whose median is the time of one."""


class Plugins:
    """Calls the tools of the plugins of one language, and checks the results."""

    def __init__(self, client: Client, language: str, site: Site, logged: list[str], checks: Checks) -> None:
        self.client = client
        self.site = site
        self.language = language
        self.logged = logged
        self.checks = checks

    def check(self, what: str, ok: bool, otherwise: object = "") -> None:
        self.checks.check(f"{self.language}: {what}", ok, str(otherwise)[:1_000])

    async def succeeds(self, what: str, tool: str, arguments: dict, text: str | None, structured: object) -> None:
        result = await self.client.call_tool(tool, arguments)
        texts = [block.text for block in result.content if block.type == "text"]
        fits = text is None or texts == [text]
        self.check(what, not result.is_error and fits and result.structured_content == structured, result)

    async def fails(self, what: str, tool: str, arguments: dict, words: str) -> None:
        result = await self.client.call_tool(tool, arguments)
        said = "".join(block.text for block in result.content if block.type == "text")
        self.check(what, bool(result.is_error) and words in said, result)

    async def sample(self) -> None:
        greet, count = f"sample_{self.language}_greet", f"sample_{self.language}_count"
        await self.definitions(greet, count)
        await self.greets(greet)
        await self.fails("refuses a greeting of a number", greet, {"name": 1}, "/name")
        await self.fails("refuses a greeting without a name", greet, {}, "name")
        await self.fails("refuses what the schema does not know", greet, {"name": "Ada", "nmae": "Ada"}, "nmae")
        await self.counts(count)
        await self.time(f"sample-{self.language}", greet)

    async def plain(self) -> None:
        await self.greets(f"plain-{self.language}_greet")
        await self.counts(f"plain-{self.language}_count")
        await self.time(f"plain-{self.language}", f"plain-{self.language}_greet")

    async def server(self) -> None:
        greet, count = f"server_{self.language}_greet", f"server_{self.language}_count"
        await self.greets(greet)
        await self.counts(count)
        await self.fails("a server refuses a greeting without a name", greet, {}, "name")
        await self.time(f"server-{self.language}", greet)

    async def time(self, plugin: str, greet: str) -> None:
        took = []
        for _ in range(TIMED):
            begun = time.perf_counter()
            await self.client.call_tool(greet, {"name": "Ada"})
            took.append(time.perf_counter() - begun)
        print(f"call {plugin} {statistics.median(took) * 1000:.2f}")

    async def greets(self, greet: str) -> None:
        await self.succeeds(f"{greet} greets", greet, {"name": "Ada"}, "Hello, Ada.", None)
        shout = {"name": "Ada", "excited": True}
        await self.succeeds(f"{greet} shouts", greet, shout, "HELLO, ADA!", None)
        await self.fails(f"{greet} refuses a blank name", greet, {"name": " \t"}, "name is empty: say who to greet")

    async def counts(self, count: str) -> None:
        for text, (characters, words, lines) in COUNTS.items():
            expected = {"characters": characters, "words": words, "lines": lines}
            await self.succeeds(f"{count} counts {text!r}", count, {"text": text}, None, expected)

    async def definitions(self, greet: str, count: str) -> None:
        tools = {tool.name: tool for tool in (await self.client.list_tools()).tools}
        described = tools[greet].description, tools[count].description
        expected = "Greets somebody by name.", "Counts the characters, words and lines of a text."
        self.check("its tools are described", described == expected, described)
        schema = tools[greet].input_schema
        exact = schema["required"] == ["name"] and schema["additionalProperties"] is False
        types = {name: part.get("type") for name, part in schema["properties"].items()}
        self.check("its schema is exact", exact and types == {"name": "string", "excited": "boolean"}, schema)
        output = tools[count].output_schema or {}
        self.check("its output has a schema", set(output.get("properties", {})) == {"characters", "words", "lines"})

    async def acceptance(self) -> None:
        def tool(name: str) -> str:
            return f"{self.language}_{name}"

        for what, text in TEXTS.items():
            await self.succeeds(f"{what} comes back unchanged", tool("echo"), {"text": text}, text, None)
        await self.succeeds("an answer is without controls", tool("echo"), {"text": ACTING}, "abcd", None)
        await self.boom(tool("boom"))
        await self.succeeds("the next call works", tool("echo"), {"text": "still here"}, "still here", None)
        await self.fails("refused arguments say why", tool("refuse"), {}, "not today")
        await self.image(tool("image"))
        await self.report(tool("report"))
        if self.language in SENDING:
            await self.sends(tool("send"))
        if self.language in KEEPING:
            await self.keeps(tool("keep"))
        if self.language == "python":
            await self.library()
            await self.libraries(tool)
        if self.language == "kotlin":
            await self.memory(tool("many"))
            await self.fails("an index beyond the end is a failure", tool("index"), {"text": "long"}, "IndexOutOfBounds")
            await self.fails("a rounded integer is a failure", tool("overflow"), {}, "9007199254740992 is not within")
            await self.fails("a record without its value is a failure", tool("unset"), {}, "`value` has no value")
        if self.language == "javascript":
            await self.waits(tool)

    async def memory(self, tool: str) -> None:
        """Calls a tool in which the host, the SDK, Kotlin's library and the adapter for WASI share linear memory."""
        for blocks, size in (0, 0), (1, 0), (3, 65_536), (3, 300_000), (150, 1_000):
            content = (await self.client.call_tool(tool, {"blocks": blocks, "bytes": size})).content
            filled = [block.text if block.type == "text" else base64.b64decode(block.data).decode() for block in content]
            expected = [chr(ord("a") + index % 26) * size for index in range(blocks)]
            self.check(f"{blocks} blocks of {size} bytes are exact", filled == expected, [len(text) for text in filled])

    async def sends(self, tool: str) -> None:
        body = "0123456789 äöü 👋\n" * 1_000
        request = {"url": f"{self.site.origin}/echo?a=b", "method": "POST", "body": body}
        answered = {"status": 200, "header": "value", "text": f"POST /echo?a=b {body}"}
        await self.succeeds("a request is sent and answered", tool, request, None, answered)
        request = {"url": f"{self.site.origin}/missing"}
        missing = {"status": 404, "header": "", "text": "missing"}
        await self.succeeds("a response with an error is a response", tool, request, None, missing)
        denied = {"url": "https://example.com/"}
        await self.fails("a request that the grant does not allow is denied", tool, denied, "The request is denied.")
        cut = {"url": f"{self.site.origin}/cut"}
        await self.fails("a response that is cut off fails", tool, cut, "The ")
        if self.language == "c":
            large = {"url": f"{self.site.origin}/missing", "limit": 6}
            words = "The response is larger than the tool's limit of 6 bytes."
            await self.fails("a response that is larger than the tool wants fails", tool, large, words)
            fits = {"url": f"{self.site.origin}/missing", "limit": 7}
            await self.succeeds("one of just that size is taken", tool, fits, None, missing)
            broken = {"url": f"{self.site.origin}/missing", "method": "G T"}
            words = "The request cannot be sent: its method is no HTTP method."
            await self.fails("what is wrong with a request is said", tool, broken, words)

    async def library(self) -> None:
        """Checks what a component in Python contains."""
        expected = {
            "zone": "2026-07-01T12:00:00+02:00",
            "codecs": "ff" "93fa" "786e2d2d746461",
            "computed": "228",
            "data": "componentize-py",
            "database": "42",
            "native": "`ctypes.CDLL` is not available in a component",
        }
        await self.succeeds("the library is complete", "python_library", {}, None, expected)
        drawn = [(await self.client.call_tool("python_draw", {})).structured_content for _ in range(2)]
        differ = len(drawn[0]) == 5 and all(drawn[0][key] != drawn[1][key] for key in drawn[0])
        self.check("random numbers differ between calls", differ, drawn)

    async def libraries(self, tool: Callable[[str], str]) -> None:
        """Checks `asyncio`, and the packages that send requests."""
        origin = self.site.origin
        together = ["together"] * 3
        overlap = "three requests of an async tool overlap"
        await self.succeeds_with(overlap, tool("meet"), {"url": f"{origin}/meet"}, together)
        late = {"day": "2026-02-27", "days": 3}
        await self.succeeds_with("an async tool waits", tool("later"), late, "2026-03-02")
        await self.fails("a date that is none is refused", tool("later"), late | {"day": "soon"}, "`day`: expected a date")
        said = [
            "GET /echo?a=%C3%A9 ",
            "x" * 10,
            "302 GET /echo?to=here ",
            "GET /echo ",
            "PUT /echo ab",
            "302 GET /echo?to=here ",
            "GET /echo ",
        ]
        await self.succeeds_with("requests, httpx and http.client send requests", tool("libraries"), {"base": origin}, said)
        result = await self.client.call_tool(tool("denials"), {"base": origin})
        ends = (result.structured_content or {}).get("result", [])
        expected = [
            "ConnectionError: The request is denied.",
            "ConnectError: The request is denied.",
            "ConnectError: The request is denied.",
            "ChunkedEncodingError: ",
            "ReadError: The connection to the server failed.",
            "PermissionError: ",
            "RuntimeError: a plugin has no threads",
            "FileNotFoundError: [Errno 44] there is no folder for temporary files",
            "RuntimeError: the tool would wait forever",
        ]
        fits = len(ends) == len(expected) and all(end.startswith(words) for end, words in zip(ends, expected))
        self.check("what is denied is an exception in words", fits, ends)

    async def succeeds_with(self, what: str, tool: str, arguments: dict, value: object) -> None:
        await self.succeeds(what, tool, arguments, None, {"result": value})

    async def waits(self, tool: Callable[[str], str]) -> None:
        url = f"{self.site.origin}/together"
        answered = {"texts": ["/together?a", "/together?b", "/together?c"]}
        await self.succeeds("three requests overlap", tool("together"), {"url": url}, None, answered)
        urls = {"silent": f"{self.site.origin}/silent", "endless": f"{self.site.origin}/endless"}
        ended = {"names": ["TimeoutError", "AbortError"], "read": "begun"}
        await self.succeeds("signals end requests and responses", tool("abort"), urls, None, ended)
        order = {"order": ["a 1", "b 1", "a 2", "b 2", "ticks 3", "job", "nested"]}
        await self.succeeds("timers interleave", tool("wait"), {}, None, order)
        await self.fails("a promise that never settles is an error", tool("never"), {}, "never settles")
        await self.succeeds("timers work in the next call", tool("wait"), {}, None, order)

    async def keeps(self, tool: str) -> None:
        kept = {"before": "", "count": 2, "keys": ["count", "é"]}
        await self.succeeds("state is kept", tool, {"key": "é", "value": "one 👋"}, None, kept)
        kept = {"before": "one 👋", "count": 4, "keys": ["count", "é"]}
        await self.succeeds("state outlives the call", tool, {"key": "é", "value": "two"}, None, kept)
        large = {"key": "large", "value": "x" * 20_000}
        await self.fails("state has a quota", tool, large, "more than 10.0 KiB of state")

    async def boom(self, tool: str) -> None:
        result = await self.client.call_tool(tool, {})
        said = "".join(block.text for block in result.content if block.type == "text")
        self.check("what nobody caught is a failure with its message", bool(result.is_error) and "kaboom: 42" in said, result)
        # A panic in Rust is a trap. In other languages, the SDK or the language reports the error.
        crashed = "dev.toolbay/error" in (result.meta or {})
        self.check("it is told as a crash in Rust alone", crashed == (self.language == "rust"), result)

    async def image(self, tool: str) -> None:
        content = (await self.client.call_tool(tool, {})).content
        images = [(block.mime_type, base64.b64decode(block.data)) for block in content if block.type == "image"]
        texts = [block.text for block in content if block.type == "text"]
        fits = (images, texts) == ([("image/png", PNG_SIGNATURE)], ["a picture"])
        self.check("a picture comes with its text", fits, content)

    async def report(self, tool: str) -> None:
        progress = []

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            progress.append((done, total))

        self.logged.clear()
        result = await self.client.call_tool(tool, {}, progress_callback=on_progress)
        expected = {"units": "metric", "cancelled": False}
        self.check("it reads the configuration", result.structured_content == expected, result)
        # The last step may be reported by the result itself.
        self.check("it reports progress", (1, 2) in progress, progress)
        self.check("it logs", any("working" in line for line in self.logged), self.logged)


def grant(plugins: Path, language: str, site: Site) -> None:
    """Adds the permissions of the acceptance plugin to its grant."""
    file = plugins / f"{language}-acceptance.toml"
    permissions = f"""
[permissions]
http = ["{site.origin}"]
private_networks = ["127.0.0.1"]

[permissions.state]
size = "10KiB"
"""
    file.write_text(file.read_text() + permissions)


async def run(server: str, plugins: Path, languages: list[str], checks: Checks) -> None:
    with Site() as site, tempfile.TemporaryDirectory() as state:
        for language in languages:
            grant(plugins, language, site)
        examples.prepare(plugins, site)
        await converse(server, plugins, languages, Path(state), site, checks)


async def converse(
    server: str, plugins: Path, languages: list[str], state: Path, site: Site, checks: Checks
) -> None:
    logged: list[str] = []

    async def on_log(params) -> None:
        logged.append(str(params.data))

    parameters = StdioServerParameters(
        command=server, args=["serve", "--plugins", str(plugins), "--log", "warn"], cwd=plugins,
        env={"XDG_CACHE_HOME": str(plugins.parent / "cache"), "XDG_STATE_HOME": str(state)},
    )
    client = Client(parameters, read_timeout_seconds=PATIENCE, logging_callback=on_log, log_level="info")
    async with client:
        expected = {name for language in languages for name in (f"sample_{language}_greet", f"{language}_report")}
        found = await names(client)
        checks.check("every plugin is served", found >= expected, expected - found)
        for language in languages:
            each = Plugins(client, language, site, logged, checks)
            await each.sample()
            await each.acceptance()
            if (plugins / f"plain-{language}.wasm").exists():
                await each.plain()
            if (plugins / f"server-{language}.wasm").exists():
                await each.server()
        await examples.check(client, plugins, site, checks)
    await offers.check(parameters, [language for language in languages if language not in WITH_TOOLS_ONLY], checks)


def main() -> int:
    server, plugins, *languages = sys.argv[1:]
    checks = Checks()
    try:
        anyio.run(run, server, Path(plugins), languages, checks)
    except Exception as error:
        # Task groups wrap their exceptions.
        while nested := getattr(error, "exceptions", None):
            error = nested[0]
        checks.check("the conversation goes on to its end", False, f"{type(error).__name__}: {error}")
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
