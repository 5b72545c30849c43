"""LangChain's adapters (`langchain-mcp-adapters`) against the real server: see harness.py."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from mcp import types

import harness


class LangChain:
    cannot = {"selfish": "has a parameter of that name itself"}

    def __init__(self) -> None:
        self.changed = harness.Changed()
        self.tools = {}

    async def heard(self, message: object) -> None:
        if isinstance(getattr(message, "root", None), types.ToolListChangedNotification):
            self.changed.heard()

    async def names(self) -> list[str]:
        self.tools = {tool.name: tool for tool in await load_mcp_tools(self.session)}
        return list(self.tools)

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        content = await self.tools[name].ainvoke(arguments)
        return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


@asynccontextmanager
async def connect(target: harness.Target) -> AsyncIterator[LangChain]:
    framework = LangChain()
    connection = {
        "stdio": {"transport": "stdio", "command": target.command, "args": target.args, "env": target.env},
        "http": {"transport": "http", "url": target.url},
        "sse": {"transport": "sse", "url": target.url},
    }[target.transport]
    client = MultiServerMCPClient({"toolbay": {**connection, "session_kwargs": {"message_handler": framework.heard}}})
    async with client.session("toolbay") as framework.session:
        yield framework


harness.main(connect)
