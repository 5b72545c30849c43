"""LlamaIndex's tools (`llama-index-tools-mcp`) against the real server: see harness.py."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from anyio import BrokenResourceError
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

import harness


class LlamaIndex:
    cannot = {"selfish": "has a parameter of that name itself"}
    # Each of its calls starts a separate session.
    at_once = 32

    def __init__(self, client: BasicMCPClient) -> None:
        self.client, self.tools = client, {}

    async def names(self) -> list[str]:
        tools = None
        while tools is None:
            try:
                tools = await McpToolSpec(self.client).to_tool_list_async()
            except ExceptionGroup as error:
                # Its session has ended, and a message of the server at that moment fails in the SDK's own SSE reader.
                if error.split(BrokenResourceError)[1] is not None:
                    raise
        self.tools = {tool.metadata.name: tool for tool in tools}
        return list(self.tools)

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        output = await self.tools[name].acall(**arguments)
        content = output.raw_output.content
        return "".join(getattr(block, "text", "") for block in content)

    async def uris(self) -> list[str]:
        return [str(resource.uri) for resource in (await self.client.list_resources()).resources]


@asynccontextmanager
async def connect(target: harness.Target) -> AsyncIterator[LlamaIndex]:
    if target.transport == "stdio":
        yield LlamaIndex(BasicMCPClient(target.command, target.args, target.env))
    else:
        yield LlamaIndex(BasicMCPClient(target.url))


# It fails to list all tools if the name of an argument begins with an underscore.
harness.main(connect, without=lambda name: name == "private")
