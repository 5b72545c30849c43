"""The default output of toolchains, called by the official Python client, over stdio.

    toolchains.py SERVER PLUGINS CALLS

SERVER is the binary; PLUGINS a folder with one plugin for each toolchain, whose grant has its name as prefix; CALLS the
file with the calls and their results, by kind of plugin. The file marks calls that only some plugins support. Each
plugin may use a server of this script, store state, and write to its own folder.
"""

import json
import sys
import tempfile
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anyio
from fastmcp import Client as FastClient
from fastmcp.client.transports import StdioTransport
from mcp import Client, StdioServerParameters

from client import PATIENCE, Checks, names

COLUMNS = ["loads", "lists", "calls", "structured", "async", "http", "state"]

# The abilities that every successful call demonstrates, in addition to its own.
CALLS = "calls"


class Hello(BaseHTTPRequestHandler):
    """Responds to every request."""

    def do_GET(self) -> None:
        body = b"Hello over HTTP."
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def website():
    """Starts a server on its own port, and returns its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hello)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def allow(plugins: Path, name: str, address: str, data: Path) -> None:
    """Adds the permissions that its tools need to a plugin's grant."""
    folder = data / name
    folder.mkdir()
    grant = plugins / f"{name}.toml"
    grant.write_text(
        f"""prefix = "{name}"
[permissions]
http = ["http://{address}"]
tcp = ["{address}"]
private_networks = ["127.0.0.0/8"]
[permissions.state]
[[permissions.mounts]]
host = "{folder}"
guest = "/data"
access = "read-write"
""",
        encoding="utf-8",
    )


def form(tools: set[str]) -> str:
    """Returns the kind of a plugin: functions of numbers or texts, tools of an MCP server, or a command as a tool."""
    if "divide" in tools:
        return "calculator"
    if "add" in tools:
        return "sums"
    return "texts" if "greet" in tools else "command"


def fits(result: object, call: dict) -> bool:
    text = "".join(block.text for block in result.content if block.type == "text")
    if "fails" in call:
        return bool(result.is_error) and call["fails"] in text
    if result.is_error or ("text" in call and text != call["text"]):
        return False
    return "structured" not in call or result.structured_content == call["structured"]


async def toolchain(client: Client, name: str, tools: set[str], calls: dict, url: str, checks: Checks) -> dict[str, bool]:
    """Calls the tools of one plugin. Returns its demonstrated abilities."""
    checks.check(f"{name} loads", bool(tools), "it offers nothing")
    seen = {"loads": bool(tools)}
    if not tools:
        return seen
    mine = form(tools)
    its = [call for call in calls[mine] if name in call.get("only", [name])]
    wanted = {call["tool"] for call in its} if mine != "command" else tools
    seen["lists"] = tools == wanted and len(tools) > 0
    checks.check(f"{name} lists its tools", seen["lists"], sorted(tools))
    for call in its:
        tool = f"{name}_{call['tool'] or next(iter(tools))}"
        arguments = {key: url if value == "URL" else value for key, value in call["arguments"].items()}
        result = await client.call_tool(tool, arguments)
        ok = fits(result, call)
        checks.check(f"{tool} {json.dumps(call['arguments'], ensure_ascii=False)}", ok, str(result)[:500])
        shows = {CALLS, call["shows"], *(["structured"] if "structured" in call else [])}
        for column in shows:
            seen[column] = seen.get(column, True) and ok
    return seen


async def fast(parameters: StdioServerParameters, name: str, checks: Checks) -> None:
    """Calls the tools of an MCP server with fastmcp's client."""
    async with FastClient(StdioTransport(command=parameters.command, args=parameters.args)) as client:
        added = await client.call_tool(f"{name}_add", {"a": 1, "b": 2.5})
        checks.check(f"fastmcp: {name}_add", added.structured_content == {"sum": 3.5}, str(added)[:500])
        divided = await client.call_tool(f"{name}_divide", {"a": 1, "b": 0}, raise_on_error=False)
        said = "".join(block.text for block in divided.content)
        ok = divided.is_error and said == "Nothing can be divided by zero."
        checks.check(f"fastmcp: {name}_divide", ok, str(divided)[:500])


async def run(server: str, plugins: Path, calls: dict, checks: Checks) -> None:
    toolchains = sorted(file.stem for file in plugins.glob("*.wasm"))
    # Some plugins take a minute to compile.
    arguments = ["compile", "--plugins", str(plugins)]
    await anyio.run_process([server, *arguments], check=False)
    rows = []
    with tempfile.TemporaryDirectory() as scratch, website() as address:
        data = Path(scratch)
        for name in toolchains:
            allow(plugins, name, address, data)
        config = data / "toolbay.toml"
        config.write_text(f'[state]\nfolder = "{data}"\n', encoding="utf-8")
        started = ["serve", "--plugins", str(plugins), "--config", str(config)]
        parameters = StdioServerParameters(command=server, args=started)
        with anyio.fail_after(PATIENCE):
            async with Client(parameters) as client:
                offered = await names(client)
                for name in toolchains:
                    prefix = f"{name}_"
                    tools = {tool.removeprefix(prefix) for tool in offered if tool.startswith(prefix)}
                    url = f"http://{address}/"
                    rows.append((name, await toolchain(client, name, tools, calls, url, checks)))
                for name in (name for name, _ in rows if name.startswith("mcp-")):
                    await fast(parameters, name, checks)
    print(f"| toolchain | {' | '.join(COLUMNS)} |")
    print(f"| --- |{' :---: |' * len(COLUMNS)}")
    for name, seen in rows:
        marks = {None: "", True: "yes", False: "no"}
        print(f"| {name} | {' | '.join(marks[seen.get(column)] for column in COLUMNS)} |")


def main() -> int:
    server, plugins, calls = sys.argv[1:]
    checks = Checks()
    try:
        anyio.run(run, server, Path(plugins), json.loads(Path(calls).read_text()), checks)
    except Exception as error:
        # Task groups wrap their exceptions.
        while nested := getattr(error, "exceptions", None):
            error = nested[0]
        checks.check("the conversation goes on to its end", False, f"{type(error).__name__}: {error}")
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
