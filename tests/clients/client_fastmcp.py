"""The fastmcp client against the real server: lists, calls, and sees progress.

    client_fastmcp.py MODE TRANSPORT SERVER PLUGINS NEWCOMER

As client.py.
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

import serving


async def converse(target: object, mode: str) -> list[tuple[str, bool, object]]:
    checks = []
    async with Client(target, mode=mode) as client:
        version = client.protocol_version
        checks.append((f"connects, with revision {version}", version >= "2025-11-25", version))
        names = {tool.name for tool in await client.list_tools()}
        checks.append(("lists tools", {"calculate_sum", "test_simple_text"} <= names, names))
        result = await client.call_tool("calculate_sum", {"numbers": [1, 2.5]})
        checks.append(("calls a tool", result.structured_content == {"sum": 3.5}, result))
        steps = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            steps.append(progress)

        await client.call_tool("test_tool_with_progress", {}, progress_handler=on_progress)
        checks.append(("progress comes as it is made", steps == [0, 50, 100], steps))
        failed = await client.call_tool("test_error_handling", {}, raise_on_error=False)
        checks.append(("a failure is a result", failed.is_error, failed))
    return checks


def main() -> int:
    mode, transport, server, plugins, newcomer = sys.argv[1:]
    checks = []
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolbay-")))
        folder = root / "plugins"
        folder.mkdir()
        shutil.copy(Path(plugins) / "calculator.wasm", folder)
        shutil.copy(Path(newcomer).with_name("conformance.wasm"), folder)
        cache = {"XDG_CACHE_HOME": str(root / "cache")}
        # So that all tools are there at once, however slow the machine is.
        subprocess.run([server, "compile", "--plugins", str(folder)], env=cache, check=True, capture_output=True)
        if transport == "http":
            target = stack.enter_context(serving.over_http(server, folder, cache))
        else:
            args = ["serve", "--plugins", str(folder), "--log", "warn"]
            target = StdioTransport(command=server, args=args, env=cache)
        try:
            checks = asyncio.run(converse(target, mode))
        except Exception as error:
            checks.append(("the conversation goes on to its end", False, f"{type(error).__name__}: {error}"))
    for what, ok, otherwise in checks:
        print(f"ok      {what}" if ok else f"FAILED  {what}: {otherwise}")
    failed = sum(not ok for _, ok, _ in checks)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
