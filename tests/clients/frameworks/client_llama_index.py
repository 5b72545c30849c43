"""LlamaIndex's tools (`llama-index-tools-mcp`) against the real server: see harness.py."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

import harness


class LlamaIndex:
    cannot = {"selfish": "has a parameter of that name itself"}
    # Each of its calls begins a session of its own.
    at_once = 32

    def __init__(self, client: BasicMCPClient) -> None:
        self.client, self.tools = client, {}

    async def names(self) -> list[str]:
        tools = await McpToolSpec(self.client).to_tool_list_async()
        self.tools = {tool.metadata.name: tool for tool in tools}
        return list(self.tools)

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        output = await self.tools[name].acall(**arguments)
        content = output.raw_output.content
        return "".join(getattr(block, "text", "") for block in content)


@asynccontextmanager
async def connect(target: harness.Target) -> AsyncIterator[LlamaIndex]:
    if target.transport == "stdio":
        yield LlamaIndex(BasicMCPClient(target.command, target.args, target.env))
    else:
        yield LlamaIndex(BasicMCPClient(target.url))


# The name of an argument that begins with an underscore costs it the whole list.
harness.main(connect, without=lambda name: name == "private")
