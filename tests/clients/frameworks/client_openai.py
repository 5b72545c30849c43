"""The OpenAI Agents SDK (`openai-agents`) against the real server: see harness.py."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agents import Agent, RunContextWrapper, set_tracing_disabled
from agents.mcp import MCPServerSse, MCPServerStdio, MCPServerStreamableHttp, MCPUtil
from agents.tool_context import ToolContext

import harness

set_tracing_disabled(True)


class OpenAI:
    # It has a message handler, but uses 2026-07-28, and never subscribes to notifications.
    def __init__(self) -> None:
        self.tools = {}

    async def names(self) -> list[str]:
        # Strict schemas if possible, as for OpenAI's models.
        tools = await MCPUtil.get_all_function_tools(
            [self.server], True, RunContextWrapper(None), Agent("agent"), failure_error_function=None
        )
        self.tools = {tool.name: tool for tool in tools}
        return list(self.tools)

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        text = json.dumps(arguments)
        context = ToolContext(None, tool_name=name, tool_call_id="1", tool_arguments=text)
        output = await self.tools[name].on_invoke_tool(context, text)
        blocks = output if isinstance(output, list) else [output]
        return "".join(block if isinstance(block, str) else block.get("text", "") for block in blocks)

    async def uris(self) -> list[str]:
        return [str(resource.uri) for resource in (await self.server.list_resources()).resources]


@asynccontextmanager
async def connect(target: harness.Target) -> AsyncIterator[OpenAI]:
    framework = OpenAI()
    # Its own timeout is five seconds for each request, which 400 at once on a busy machine may exceed.
    options = {"client_session_timeout_seconds": 60}
    program = {"command": target.command, "args": target.args, "env": target.env}
    server = {
        "stdio": lambda: MCPServerStdio(program, **options),
        "http": lambda: MCPServerStreamableHttp({"url": target.url}, **options),
        "sse": lambda: MCPServerSse({"url": target.url}, **options),
    }[target.transport]()
    async with server as framework.server:
        yield framework


harness.main(connect)
