"""Google's Agent Development Kit (`google-adk[mcp]`) against the real server: see harness.py."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.sessions import InMemorySessionService
from google.adk.tools.mcp_tool.mcp_session_manager import (
    SseConnectionParams,
    StdioConnectionParams,
    StreamableHTTPConnectionParams,
)
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from google.adk.tools.tool_context import ToolContext
from mcp import StdioServerParameters

import harness


class Adk:
    def __init__(self, toolset: McpToolset, context: ToolContext) -> None:
        self.toolset, self.context, self.tools = toolset, context, {}

    async def names(self) -> list[str]:
        self.tools = {tool.name: tool for tool in await self.toolset.get_tools()}
        for tool in self.tools.values():
            # The declaration for the model, with the schema in Gemini's own form.
            tool._get_declaration()
        return list(self.tools)

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        result = await self.tools[name].run_async(args=arguments, tool_context=self.context)
        return "".join(block.get("text", "") for block in result["content"])


@asynccontextmanager
async def connect(target: harness.Target) -> AsyncIterator[Adk]:
    params = {
        "stdio": lambda: StdioConnectionParams(
            server_params=StdioServerParameters(command=target.command, args=target.args, env=target.env), timeout=60
        ),
        "http": lambda: StreamableHTTPConnectionParams(url=target.url, timeout=60),
        "sse": lambda: SseConnectionParams(url=target.url, timeout=60),
    }[target.transport]()
    sessions = InMemorySessionService()
    agent = LlmAgent(name="agent", model="none")
    invocation = InvocationContext(
        session_service=sessions,
        invocation_id="1",
        agent=agent,
        session=await sessions.create_session(app_name="toolbay", user_id="ada"),
    )
    toolset = McpToolset(connection_params=params)
    try:
        yield Adk(toolset, ToolContext(invocation))
    finally:
        await toolset.close()


harness.main(connect)
