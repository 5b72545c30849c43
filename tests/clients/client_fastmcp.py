"""The fastmcp client against the real server: lists, calls, progress, cancellation, questions, and notifications of
changes.

    client_fastmcp.py MODE TRANSPORT SERVER PLUGINS NEWCOMER

The arguments are those of client.py.
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urljoin

from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport
from mcp.client.subscriptions import listen

import serving
from surface import Person, surface
from tasks import tasks

STREAMS_SINCE = "2026-07-28"
"""The revision from which a client asks for news with `subscriptions/listen`."""

PATIENCE = 180
"""Seconds that the whole conversation may take."""


async def converse(target: object, mode: str, folder: Path, newcomer: Path, checks: list) -> None:
    changed = asyncio.Event()
    updates = asyncio.Queue()
    person = Person()

    async def on_message(message: object) -> None:
        if getattr(message, "method", None) == "notifications/tools/list_changed":
            changed.set()
        if getattr(message, "method", None) == "notifications/resources/updated":
            updates.put_nowait(str(message.params.uri))

    async def hear(events: object) -> None:
        async for _ in events:
            changed.set()

    async def elicit(message: str, response_type: type | None, params: object, context: object) -> object:
        return person.elicit(params)

    def sample(messages: list, params: object, context: object) -> object:
        return person.sample(params)

    async with AsyncExitStack() as stack:
        client = Client(
            target,
            mode=mode,
            message_handler=on_message,
            elicitation_handler=elicit,
            sampling_handler=sample,
            roots=lambda context: person.roots(),
        )
        await stack.enter_async_context(client)
        version = client.protocol_version
        fitting = version == STREAMS_SINCE if mode == "auto" else version == "2025-11-25"
        checks.append((f"connects, with revision {version}", fitting, version))
        names = {tool.name for tool in await client.list_tools()}
        checks.append(("lists tools", {"calculate_sum", *serving.GUESTS} <= names, names))
        result = await client.call_tool("calculate_sum", {"a": 1, "b": 2.5})
        checks.append(("calls a tool", result.structured_content == {"sum": 3.5}, result))
        failed = await client.call_tool("test_error_handling", {}, raise_on_error=False)
        checks.append(("a failure is a result", failed.is_error, failed))
        steps = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            steps.append(progress)

        await client.call_tool("test_tool_with_progress", {}, progress_handler=on_progress)
        checks.append(("progress comes as it is made", steps == [0, 50, 100], steps))

        # It computes forever, and blocks all other calls of its plugin.
        begun = asyncio.Event()

        async def on_begin(progress: float, total: float | None, message: str | None) -> None:
            begun.set()

        endless = asyncio.create_task(client.call_tool("loop_forever", {}, progress_handler=on_begin))
        await begun.wait()
        endless.cancel()
        await asyncio.wait([endless])
        checks.append(("a call can be given up", endless.cancelled(), endless))
        following = await client.call_tool("count", {})
        fitting = following.content[0].text == "1"
        checks.append(("it ends, so that the next one gets its turn", fitting, following))

        @asynccontextmanager
        async def subscribe(uri: str) -> AsyncIterator[Callable[[], Awaitable[str]]]:
            # fastmcp has no function for this, only the session of the official client.
            if version >= STREAMS_SINCE:
                async with listen(client.session, resource_subscriptions=[uri]) as events:

                    async def update() -> str:
                        return str((await anext(aiter(events))).uri)

                    yield update
            else:
                await client.session.subscribe_resource(uri)
                yield updates.get

        await surface(client, person, subscribe, lambda *check: checks.append(check))

        await tasks(client, version >= STREAMS_SINCE, person, lambda *check: checks.append(check))

        if version >= STREAMS_SINCE:
            events = await stack.enter_async_context(listen(client.session, tools_list_changed=True))
            hearing = asyncio.create_task(hear(events))
            stack.callback(hearing.cancel)
        shutil.copy(newcomer, folder)
        while "shout" not in {tool.name for tool in await client.list_tools()}:
            await changed.wait()
            changed.clear()
        checks.append(("is told of a new tool", True, None))


def main() -> int:
    mode, transport, server, plugins, newcomer = sys.argv[1:]
    checks = []
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolbay-")))
        folder = root / "plugins"
        folder.mkdir()
        shutil.copy(Path(plugins) / "calculator.wasm", folder)
        serving.add_guests(Path(newcomer), folder)
        cache = {"XDG_CACHE_HOME": str(root / "cache")}
        # So that all tools are available immediately, even on a slow machine.
        subprocess.run([server, "compile", "--plugins", str(folder)], env=cache, check=True, capture_output=True)
        if transport == "stdio":
            args = ["serve", "--plugins", str(folder), "--log", "warn"]
            target = StdioTransport(command=server, args=args, env=cache)
        else:
            target = stack.enter_context(serving.over_http(server, folder, cache))
            if transport == "sse":
                target = SSETransport(urljoin(target, "/sse"))
        try:
            asyncio.run(asyncio.wait_for(converse(target, mode, folder, Path(newcomer), checks), PATIENCE))
        except Exception as error:
            checks.append(("the conversation goes on to its end", False, f"{type(error).__name__}: {error}"))
    for what, ok, otherwise in checks:
        print(f"ok      {what}" if ok else f"FAILED  {what}: {otherwise}")
    failed = sum(not ok for _, ok, _ in checks)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
