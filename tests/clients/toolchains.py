"""What toolchains make by default, through the official Python client, over stdio.

    toolchains.py SERVER PLUGINS CALLS

SERVER is the binary; PLUGINS a folder with one plugin for each toolchain, whose grant gives its name as prefix; CALLS the
file with the calls and what they must answer, by what a plugin offers.
"""

import json
import sys
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters

from client import PATIENCE, Checks, names

COLUMNS = ["loads", "lists", "calls", "structured"]


def form(tools: set[str]) -> str:
    """What a plugin offers: functions of numbers, of texts, the tools of an MCP server, or one tool that is a command."""
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


async def toolchain(client: Client, name: str, tools: set[str], calls: dict, checks: Checks) -> dict[str, bool]:
    """Calls the tools of one plugin. Returns what it is seen to do."""
    checks.check(f"{name} loads", bool(tools), "it offers nothing")
    seen = {"loads": bool(tools)}
    if not tools:
        return seen
    mine = form(tools)
    wanted = {call["tool"] for call in calls[mine]} if mine != "command" else tools
    seen["lists"] = tools == wanted and len(tools) > 0
    checks.check(f"{name} lists its tools", seen["lists"], sorted(tools))
    for call in calls[mine]:
        tool = f"{name}.{call['tool'] or next(iter(tools))}"
        result = await client.call_tool(tool, call["arguments"])
        ok = fits(result, call)
        checks.check(f"{tool} {json.dumps(call['arguments'], ensure_ascii=False)}", ok, str(result)[:500])
        seen[call["shows"]] = seen.get(call["shows"], True) and ok
        if "structured" in call:
            seen["structured"] = seen.get("structured", True) and ok
    return seen


async def run(server: str, plugins: Path, calls: dict, checks: Checks) -> None:
    toolchains = sorted(file.stem for file in plugins.glob("*.wasm"))
    # Some of them take a minute to compile.
    arguments = ["compile", "--plugins", str(plugins)]
    await anyio.run_process([server, *arguments], check=False)
    parameters = StdioServerParameters(command=server, args=["serve", "--plugins", str(plugins)])
    rows = []
    with anyio.fail_after(PATIENCE):
        async with Client(parameters) as client:
            offered = await names(client)
            for name in toolchains:
                prefix = f"{name}."
                tools = {tool.removeprefix(prefix) for tool in offered if tool.startswith(prefix)}
                rows.append((name, await toolchain(client, name, tools, calls, checks)))
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
        # Task groups wrap what went wrong in them.
        while nested := getattr(error, "exceptions", None):
            error = nested[0]
        checks.check("the conversation goes on to its end", False, f"{type(error).__name__}: {error}")
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
