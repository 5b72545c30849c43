"""A small MCP client over standard input and output, without an SDK."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from pathlib import Path
from typing import Any

REVISION = "2025-11-25"

CHANGED = "notifications/tools/list_changed"

PATIENCE = 900
"""Seconds until a server that does not answer counts as failed. Compiling a large plugin has a low priority."""


class Connection:
    """A server that runs as a process, and the session with it."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(
                command,
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                bufsize=0,
            )
        self.output = self.process.stdout.fileno()
        self.poll = select.poll()
        self.poll.register(self.output, select.POLLIN)
        self.received = b""
        self.last_id = 0
        self.notifications: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []

    def __enter__(self) -> Connection:
        try:
            client = {"name": "five-tools", "version": "1.0.0"}
            capabilities = {"elicitation": {"form": {}}}
            params = {"protocolVersion": REVISION, "capabilities": capabilities, "clientInfo": client}
            self.request("initialize", params)
            self.send({"method": "notifications/initialized"})
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def send(self, message: dict[str, Any]) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def receive(self, until: float) -> dict[str, Any]:
        """Returns the next message. Fails at the time `until`, and if the server has ended."""
        while b"\n" not in self.received:
            if not self.poll.poll(max(0, until - time.monotonic()) * 1000):
                raise TimeoutError(f"the server did not answer\n{self.end_of_log()}")
            chunk = os.read(self.output, 1 << 20)
            if not chunk:
                raise ConnectionError(f"the server has ended\n{self.end_of_log()}")
            self.received += chunk
        line, _, self.received = self.received.partition(b"\n")
        return json.loads(line)

    def end_of_log(self) -> str:
        return self.log.read_text(errors="replace")[-2_000:]

    def request(self, method: str, params: dict[str, Any], answer: dict[str, Any] | None = None) -> dict[str, Any]:
        """Sends a request, answers the questions of the server with `answer`, and returns the response.

        What the server sends meanwhile is in `notifications` and `asked`.
        """
        self.notifications, self.asked = [], []
        self.last_id += 1
        self.send({"id": self.last_id, "method": method, "params": params})
        until = time.monotonic() + PATIENCE
        while True:
            message = self.receive(until)
            if "method" not in message:
                if message.get("id") == self.last_id:
                    return message
            elif "id" not in message:
                self.notifications.append(message)
            elif message["method"] == "elicitation/create" and answer is not None:
                self.asked.append(message["params"])
                self.send({"id": message["id"], "result": answer})
            else:
                error = {"code": -32601, "message": "this client cannot do that"}
                self.send({"id": message["id"], "error": error})

    def call(self, tool: str, arguments: dict[str, Any], answer: dict[str, Any] | None = None) -> dict[str, Any]:
        """Calls a tool, and asks for its progress."""
        meta = {"progressToken": self.last_id + 1}
        return self.request("tools/call", {"name": tool, "arguments": arguments, "_meta": meta}, answer)

    def list_tools(self) -> dict[str, dict[str, Any]]:
        tools: dict[str, dict[str, Any]] = {}
        params: dict[str, Any] = {}
        while True:
            result = self.request("tools/list", params)["result"]
            tools.update((tool["name"], tool) for tool in result["tools"])
            if "nextCursor" not in result:
                return tools
            params = {"cursor": result["nextCursor"]}

    def wait_for_tools(self, names: set[str]) -> dict[str, dict[str, Any]]:
        """Waits until the server offers these tools, and returns all of its tools."""
        until = time.monotonic() + PATIENCE
        while not names <= (tools := self.list_tools()).keys():
            changed = any(message["method"] == CHANGED for message in self.notifications)
            while not changed:
                changed = self.receive(until).get("method") == CHANGED
        return tools
