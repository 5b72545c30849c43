"""Haystack's toolset (`mcp-haystack`) against the real server: see harness.py."""

import asyncio
import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from haystack_integrations.tools.mcp import MCPToolset, SSEServerInfo, StdioServerInfo, StreamableHttpServerInfo

import harness


class Haystack:
    cannot = {"selfish": "has a parameter of that name itself"}

    def __init__(self, info: object) -> None:
        self.info, self.toolsets = info, []
        # Each call blocks a thread.
        self.threads = ThreadPoolExecutor(harness.AT_ONCE)

    def load(self) -> dict[str, Any]:
        toolset = MCPToolset(self.info)
        self.toolsets.append(toolset)
        toolset.warm_up()
        return {tool.name: tool for tool in toolset}

    async def names(self) -> list[str]:
        # A toolset lists only once, when it connects.
        self.close()
        self.tools = await self.thread(self.load)
        return list(self.tools)

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        result = json.loads(await self.thread(lambda: self.tools[name].invoke(**arguments)))
        return "".join(block.get("text", "") for block in result["content"])

    def thread(self, work: Any) -> Any:
        return asyncio.get_running_loop().run_in_executor(self.threads, work)

    def close(self) -> None:
        while self.toolsets:
            self.toolsets.pop().close()


@asynccontextmanager
async def connect(target: harness.Target) -> AsyncIterator[Haystack]:
    info = {
        "stdio": lambda: StdioServerInfo(command=target.command, args=target.args, env=target.env),
        "http": lambda: StreamableHttpServerInfo(url=target.url),
        "sse": lambda: SSEServerInfo(url=target.url),
    }[target.transport]()
    framework = Haystack(info)
    try:
        yield framework
    finally:
        framework.close()
        framework.threads.shutdown()


harness.main(connect)
