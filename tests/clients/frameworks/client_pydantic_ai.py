"""Pydantic AI's toolset (`pydantic-ai-slim[mcp]`) against the real server: see harness.py."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from pydantic_ai import RunContext
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage

import harness


class PydanticAI:
    # It has a message handler, but uses 2026-07-28, and never subscribes to notifications.
    def __init__(self) -> None:
        self.context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
        self.tools = {}

    async def names(self) -> list[str]:
        self.tools = await self.toolset.get_tools(self.context)
        return list(self.tools)

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        tool = self.tools[name]
        checked = tool.args_validator.validate_python(arguments)
        result = await self.toolset.call_tool(name, checked, self.context, tool)
        return result if isinstance(result, str) else json.dumps(result, default=str)

    async def uris(self) -> list[str]:
        return [resource.uri for resource in await self.toolset.list_resources()]


@asynccontextmanager
async def connect(target: harness.Target) -> AsyncIterator[PydanticAI]:
    framework = PydanticAI()
    transport = {
        "stdio": lambda: StdioTransport(command=target.command, args=target.args, env=target.env),
        "http": lambda: StreamableHttpTransport(target.url),
        "sse": lambda: SSETransport(target.url),
    }[target.transport]()
    # Its cache is also invalidated only by a notification.
    async with MCPToolset(transport, cache_tools=False) as framework.toolset:
        yield framework


harness.main(connect)
