"""mcpo, which converts an MCP server to an OpenAPI server, against the real server: see harness.py.

It does not start if a schema contains itself, so it gets the portable form.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

import harness


class Mcpo:
    cannot = {
        "constructs_any-value": "takes the items of a list that may be anything for texts",
        "constructs_nullable": "leaves out what is null",
    }
    # It lists when it starts, and does not forward notifications.
    fixed = True

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def names(self) -> list[str]:
        paths = (await self.client.get("/openapi.json")).json()["paths"]
        return [path.removeprefix("/") for path in paths]

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        answer = await self.client.post(f"/{quote(name)}", json=arguments)
        content = answer.json()
        # It parses texts that are JSON.
        return content if isinstance(content, str) else json.dumps(content)


@asynccontextmanager
async def connect(target: harness.Target) -> AsyncIterator[Mcpo]:
    port = harness.free_port()
    command = [str(Path(sys.executable).with_name("mcpo")), "--host", "127.0.0.1", "--port", str(port)]
    command += {
        "stdio": ["--", target.command, *target.args],
        "http": ["--server-type", "streamable-http", "--", target.url],
        "sse": ["--server-type", "sse", "--", target.url],
    }[target.transport]
    process = await asyncio.create_subprocess_exec(*command, env=target.env, stderr=asyncio.subprocess.PIPE)
    said = []
    async for line in process.stderr:
        said.append(line.decode())
        if "Uvicorn running on" in said[-1]:
            break
    else:
        raise RuntimeError(f"mcpo did not start: {''.join(said)}")
    # Read its further output, so that it never blocks.
    drain = asyncio.create_task(process.stderr.read())
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
            yield Mcpo(client)
    finally:
        process.terminate()
        await process.wait()
        await drain


harness.main(connect)
