"""The official Python client against the real server.

    client.py MODE TRANSPORT SERVER PLUGINS NEWCOMER

MODE is `legacy` or `auto`; TRANSPORT `stdio`, `http` or `sse`; SERVER the binary; PLUGINS a folder with the sample
plugins; NEWCOMER a further plugin, with the tool `shout`, which the test adds later.
"""

import base64
import json
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urljoin

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp_types import ListRootsResult

import png
import serving
from metrics import metrics
from surface import Person, surface

SAMPLES = ["calculator", "chart", "qr", "text", "time"]
CALLS = json.loads(Path(__file__).with_name("calls.json").read_text())

STREAMS_SINCE = "2026-07-28"
"""The revision from which a client asks for news with `subscriptions/listen`."""

AT_ONCE = 5.0
"""Seconds from a change in the folder until the client has been told, on a machine that is busy. How fast it is on one
that is not is printed, and `cargo xtask demo` shows it."""

ATTEMPTS = 3
"""How often a change that took longer is made anew."""

PATIENCE = 180
"""Seconds that anything may take before it counts as never."""


class Checks:
    """Counts and prints the checks."""

    passed = 0
    failed = 0

    def check(self, what: str, ok: bool, otherwise: object = "") -> None:
        if ok:
            self.passed += 1
            print(f"ok      {what}")
        else:
            self.failed += 1
            print(f"FAILED  {what}: {otherwise}")


class News:
    """The times of the server's notifications that its tools changed, and the resources that changed."""

    def __init__(self) -> None:
        self.at: float | None = None
        self.event = anyio.Event()
        self.tell, self.updates = anyio.create_memory_object_stream[str](16)

    def take(self) -> None:
        self.at = time.monotonic()
        self.event.set()

    async def wait(self) -> float:
        """Waits for the next notification, and returns its time."""
        with anyio.fail_after(PATIENCE):
            await self.event.wait()
        self.event = anyio.Event()
        return self.at

    async def on_message(self, message: object) -> None:
        if getattr(message, "method", None) == "notifications/tools/list_changed":
            self.take()
        if getattr(message, "method", None) == "notifications/resources/updated":
            self.tell.send_nowait(str(message.params.uri))

    @asynccontextmanager
    async def subscribe(self, client: Client, uri: str) -> AsyncIterator[Callable[[], Awaitable[str]]]:
        """Subscribes to a resource, in the form of the revision; see `surface`."""
        if client.protocol_version >= STREAMS_SINCE:
            async with client.listen(resource_subscriptions=[uri]) as events:

                async def update() -> str:
                    return str((await anext(aiter(events))).uri)

                yield update
        else:
            await client.subscribe_resource(uri)
            yield self.updates.receive

    async def listen(self, client: Client, *, task_status=anyio.TASK_STATUS_IGNORED) -> None:
        async with client.listen(tools_list_changed=True) as events:
            task_status.started()
            async for _ in events:
                self.take()


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}


async def told_after(client: Client, news: News, change, fits) -> float:
    """Makes a change. Returns the seconds from its end to the notification after which the list of tools is correct."""
    begun = time.monotonic()
    change()
    ended = time.monotonic()
    while True:
        at = await news.wait()
        if at >= begun and fits(await names(client)):
            return max(at - ended, 0)


def contains(whole: object, part: object) -> bool:
    """Returns whether `whole` contains all members of `part`."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and contains(whole[key], part[key]) for key in part)
    return whole == part


def judge(call: dict, result) -> str:
    """Returns the difference between a result and the expected one; nothing if there is none."""
    if result.is_error:
        return f"isError: {result.content}"
    if "structured" in call and not contains(result.structured_content, call["structured"]):
        return f"structured content {result.structured_content}"
    texts = [block.text for block in result.content if block.type == "text"]
    if "text" in call and not any(text.startswith(call["text"]) for text in texts):
        return f"texts {texts}"
    if "image" in call:
        images = [block for block in result.content if block.type == "image"]
        if [image.mime_type for image in images] != ["image/png"]:
            return f"not one PNG: {[image.mime_type for image in images]}"
        try:
            width, height = png.size(base64.b64decode(images[0].data, validate=True))
        except ValueError as error:
            return f"the picture is broken: {error}"
        if {"width": width, "height": height} != call["image"]:
            return f"the picture is {width} by {height}"
    return ""


async def converse(client: Client, news: News, folder: Path, newcomer: Path, mode: str, checks: Checks) -> None:
    check = checks.check
    version = client.protocol_version
    check(f"connects, with revision {version}", version >= "2025-11-25" and (mode == "auto" or version == "2025-11-25"))

    expected = {call["tool"] for call in CALLS}
    while (found := await names(client)) < expected:
        await news.wait()
    check(f"lists the {len(expected)} tools of the five samples", found == expected, found ^ expected)
    tools = (await client.list_tools()).tools
    bare = [tool.name for tool in tools if not (tool.description and tool.input_schema.get("type") == "object")]
    check("every tool has a description and an input schema", not bare, bare)
    structured = {tool.name for tool in tools if tool.output_schema}
    promised = {call["tool"] for call in CALLS if "structured" in call}
    check("tools that return data declare its schema", structured == promised, structured ^ promised)

    for call in CALLS:
        problem = judge(call, await client.call_tool(call["tool"], call["arguments"]))
        does = "draws a PNG that decodes" if "image" in call else "returns what it should"
        check(f"{call['tool']} {does}", not problem, problem)

    try:
        answer = await client.call_tool("no_such_tool", {})
        check("an unknown tool is error -32602", False, answer)
    except MCPError as error:
        check("an unknown tool is error -32602", error.code == -32602, error)
    refused = await client.call_tool("calculate_sum", {"a": "many", "b": 1})
    text = refused.content[0].text
    check("bad arguments are a result with isError that names them", refused.is_error and "/a" in text, refused)

    target = folder / newcomer.name
    times = await time_changes(client, news, newcomer, target)
    for what, took in times.items():
        check(f"told {took * 1000:.0f} ms after {what}", took < AT_ONCE, f"not within {AT_ONCE * 1000:.0f} ms")
    shouted = await client.call_tool("shout", {"text": "hello"})
    check("the new tool works", "HELLO" in shouted.content[0].text, shouted)
    await told_after(client, news, target.unlink, lambda found: "shout" not in found)
    try:
        answer = await client.call_tool("shout", {"text": "hello"})
        check("a removed tool is unknown", False, answer)
    except MCPError as error:
        check("a removed tool is unknown", error.code == -32602, error)


async def time_changes(client: Client, news: News, newcomer: Path, target: Path) -> dict[str, float]:
    """Measures the minimum time until the client is notified of each kind of change.

    Delays by other work on the machine are not counted. The plugin is loaded at the end.
    """

    def there(found: set[str]) -> bool:
        return "shout" in found

    def gone(found: set[str]) -> bool:
        return "shout" not in found

    best: dict[str, float] = {}
    for attempt in range(ATTEMPTS):
        # With a custom section, it is a different file, which must be compiled.
        fresh = newcomer.read_bytes() + bytes([0, 2, 1, ord("a") + attempt])
        if attempt:
            await told_after(client, news, target.unlink, gone)
        times = {
            "a plugin was copied in": await told_after(client, news, lambda: target.write_bytes(fresh), there),
            "it was removed": await told_after(client, news, target.unlink, gone),
            "it was copied in again": await told_after(client, news, lambda: target.write_bytes(fresh), there),
        }
        best = {what: min(took, best.get(what, took)) for what, took in times.items()}
        if max(best.values()) < AT_ONCE:
            break
    return best


async def call_and_cancel(client: Client, checks: Checks) -> None:
    """Calls a tool of the conformance suite that reports progress, and cancels a call that never ends."""
    steps: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    await client.call_tool("test_tool_with_progress", {}, progress_callback=on_progress)
    checks.check("progress comes as it is made", steps == [0, 50, 100], steps)
    # It computes forever, and blocks all other calls of its plugin.
    with anyio.CancelScope() as scope:

        async def give_up(progress: float, total: float | None, message: str | None) -> None:
            scope.cancel()

        await client.call_tool("loop_forever", {}, progress_callback=give_up)
    checks.check("a call can be given up", scope.cancelled_caught)
    following = await client.call_tool("count", {})
    checks.check("it ends, so that the next one gets its turn", following.content[0].text == "1", following)


async def run(mode: str, transport: str, server: str, plugins: Path, newcomer: Path, checks: Checks) -> None:
    async with AsyncExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolbay-")))
        folder = root / "plugins"
        folder.mkdir()
        for sample in SAMPLES:
            shutil.copy(plugins / f"{sample}.wasm", folder)
        # The cache has no code from before this run.
        cache = {"XDG_CACHE_HOME": str(root / "cache")}
        if transport == "stdio":
            args = ["serve", "--plugins", str(folder), "--log", "warn"]
            target = StdioServerParameters(command=server, args=args, env=cache, cwd=root)
        else:
            target = stack.enter_context(serving.over_http(server, folder, cache))
            if transport == "sse":
                target = sse_client(urljoin(target, "/sse"))
        news, person = News(), Person()

        async def elicit(context: object, params: object) -> object:
            return person.elicit(params)

        async def sample(context: object, params: object) -> object:
            return person.sample(params)

        async def roots(context: object) -> ListRootsResult:
            return ListRootsResult(roots=person.roots())

        client = Client(
            target,
            mode=mode,
            message_handler=news.on_message,
            elicitation_callback=elicit,
            sampling_callback=sample,
            list_roots_callback=roots,
        )
        await stack.enter_async_context(client)
        async with anyio.create_task_group() as tasks:
            if client.protocol_version >= STREAMS_SINCE:
                await tasks.start(news.listen, client)
            with anyio.fail_after(PATIENCE):
                await converse(client, news, folder, newcomer, mode, checks)
                add = lambda: serving.add_guests(newcomer, folder)
                await told_after(client, news, add, lambda found: serving.GUESTS <= found)
                await call_and_cancel(client, checks)
                await surface(client, person, lambda uri: news.subscribe(client, uri), checks.check)
                if transport == "http":
                    await anyio.to_thread.run_sync(metrics, target, checks.check)
            tasks.cancel_scope.cancel()


def main() -> int:
    mode, transport, server, plugins, newcomer = sys.argv[1:]
    checks = Checks()
    try:
        anyio.run(run, mode, transport, server, Path(plugins), Path(newcomer), checks)
    except Exception as error:
        # Task groups wrap their exceptions.
        while nested := getattr(error, "exceptions", None):
            error = nested[0]
        checks.check("the conversation goes on to its end", False, f"{type(error).__name__}: {error}")
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
