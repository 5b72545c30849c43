"""A server with the official Python SDK, with the tools that `cargo xtask bench` calls.

Without arguments, it uses standard input and output; with a port, HTTP at /mcp.
"""

import sys

from mcp.server import MCPServer

server = MCPServer("python-peer", log_level="ERROR")


@server.tool(structured_output=False)
def echo(message: str) -> str:
    """Returns the message."""
    return message


@server.tool(structured_output=False)
def burn(rounds: int) -> str:
    """Computes for so many rounds."""
    number = 1
    for _ in range(rounds):
        number = number * 48271 % 2147483647
    return str(number)


if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run("stdio")
