"""Semantic Kernel's plugins (`semantic-kernel[mcp]`) against the real server: see harness.py."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import types
from semantic_kernel import Kernel
from semantic_kernel.connectors.mcp import MCPSsePlugin, MCPStdioPlugin, MCPStreamableHttpPlugin
from semantic_kernel.functions import KernelArguments

import harness


class SemanticKernel:
    cannot = {"selfish": "has a parameter of that name itself"}

    def __init__(self, plugin: Any) -> None:
        self.plugin = plugin
        self.changed = harness.Changed()
        self.kernel = Kernel()
        handle = plugin.message_handler

        async def heard(message: Any) -> None:
            # It lists again before it continues to read, so it would wait forever for a response that
            # it does not read.
            self.handled = asyncio.create_task(handle(message))
            if isinstance(getattr(message, "root", None), types.ToolListChangedNotification):
                self.changed.heard()

        plugin.message_handler = heard

    async def names(self) -> list[str]:
        await self.plugin.load_tools()
        # It never removes a tool, so its registered tools are not those of the server.
        self.kernel.add_plugin(self.plugin)
        listed = {tool.name for tool in (await self.plugin.session.list_tools()).tools}
        return [name for name in self.kernel.plugins[self.plugin.name].functions if name in listed]

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        function = self.kernel.get_function(self.plugin.name, name)
        result = await self.kernel.invoke(function, KernelArguments(**arguments))
        return "".join(getattr(item, "text", None) or "" for item in result.value)


@asynccontextmanager
async def connect(target: harness.Target) -> AsyncIterator[SemanticKernel]:
    plugin = {
        "stdio": lambda: MCPStdioPlugin(name="toolbay", command=target.command, args=target.args, env=target.env),
        "http": lambda: MCPStreamableHttpPlugin(name="toolbay", url=target.url),
        "sse": lambda: MCPSsePlugin(name="toolbay", url=target.url),
    }[target.transport]()
    framework = SemanticKernel(plugin)
    async with plugin:
        yield framework


# It fails to list all tools if the name of a tool or an argument has another character.
harness.main(connect, without=lambda name: "." in name or name == "symbols")
