"""Strands Agents (`strands-agents`) against the real server: see harness.py."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from mcp import StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from strands.tools.mcp import MCPClient

import harness


class Strands:
    def __init__(self) -> None:
        self.changed = harness.Changed()
        self.ids = count()

    async def names(self) -> list[str]:
        tools = await asyncio.to_thread(self.client._list_all_tools_sync)
        for tool in tools:
            # The specification for the model.
            tool.tool_spec
        return [tool.tool_name for tool in tools]

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        result = await self.client.call_tool_async(str(next(self.ids)), name, arguments)
        return "".join(block.get("text", "") for block in result["content"])

    async def uris(self) -> list[str]:
        listed = await asyncio.to_thread(self.client.list_resources_sync)
        return [str(resource.uri) for resource in listed.resources]


@asynccontextmanager
async def connect(target: harness.Target) -> AsyncIterator[Strands]:
    framework = Strands()
    options = {"on_tools_changed": lambda before, tools: framework.changed.heard()}
    program = StdioServerParameters(command=target.command, args=target.args, env=target.env)
    framework.client = {
        "stdio": lambda: MCPClient(lambda: stdio_client(program), **options),
        "http": lambda: MCPClient(url=target.url, **options),
        "sse": lambda: MCPClient(lambda: sse_client(target.url), **options),
    }[target.transport]()
    await asyncio.to_thread(framework.client.start)
    try:
        yield framework
    finally:
        await asyncio.to_thread(framework.client.stop, None, None, None)


harness.main(connect)
