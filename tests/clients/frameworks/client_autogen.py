"""AutoGen (`autogen-ext[mcp]`) against the real server: see harness.py.

If MODE is `portable`, with its tools, which create a Pydantic model for each schema; otherwise with
its workbench.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from autogen_core import CancellationToken
from autogen_ext.tools.mcp import (
    McpWorkbench,
    SseServerParams,
    StdioServerParams,
    StreamableHttpServerParams,
    create_mcp_server_session,
    mcp_server_tools,
)

import harness


class Tools:
    # Values that its models do not preserve.
    cannot = {
        "acme.do": "drops what is in a map",
        "booleans": "takes the items of a list that may be anything for those of one type",
        "constructs_map": "drops what is in a map",
        "constructs_any-value": "takes the items of a list that may be anything for those of one type",
        "constructs_tuple": "takes the items of a tuple for those of the first type",
        "tuple": "takes the items of a tuple for those of the first type",
    }

    def __init__(self, params: object, session: object) -> None:
        self.params, self.session, self.tools = params, session, {}

    async def names(self) -> list[str]:
        self.tools = {tool.name: tool for tool in await mcp_server_tools(self.params, self.session)}
        return list(self.tools)

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        # Called like an agent: the arguments are read into a model of the schema.
        content = await self.tools[name].run_json(arguments, CancellationToken())
        return "".join(getattr(block, "text", "") for block in content)


class Workbench:
    def __init__(self, workbench: McpWorkbench) -> None:
        self.workbench = workbench

    async def names(self) -> list[str]:
        return [tool["name"] for tool in await self.workbench.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        return (await self.workbench.call_tool(name, arguments)).to_text()

    async def uris(self) -> list[str]:
        return [str(resource.uri) for resource in (await self.workbench.list_resources()).resources]


@asynccontextmanager
async def connect(target: harness.Target) -> AsyncIterator[Tools | Workbench]:
    params = {
        "stdio": lambda: StdioServerParams(
            command=target.command, args=target.args, env=target.env, read_timeout_seconds=60
        ),
        "http": lambda: StreamableHttpServerParams(url=target.url),
        "sse": lambda: SseServerParams(url=target.url),
    }[target.transport]()
    if target.mode == "portable":
        async with create_mcp_server_session(params) as session:
            await session.initialize()
            yield Tools(params, session)
    else:
        async with McpWorkbench(params) as workbench:
            yield Workbench(workbench)


# It fails to list all tools if the name of an argument begins with an underscore.
harness.main(connect, without=lambda name: name == "private")
