"""The conversation of every framework in Python with the real server, in the folder with the most unusual plugins.

    python client_NAME.py MODE TRANSPORT SERVER FOLDER CALLS CACHE NEWCOMER

The arguments are those of harness.mjs. MODE may be `portable`, for a framework that can read only schemas of this form:
it fails to list all tools if there is another one.
"""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urljoin

PATIENCE = 180
"""Seconds that the whole conversation may take."""

AT_ONCE = 400
"""Calls that are open at once on one session."""


PORTABLE = '[server]\nschemas = "portable"\n'
"""The configuration of the server for such a framework."""


@dataclass
class Target:
    """The target of the connection: a command, or a URL."""

    mode: str
    transport: str
    command: str
    args: list[str]
    env: dict[str, str]
    url: str = ""


@dataclass
class Changed:
    """Notifications of the server: the package calls `heard`, possibly from another thread."""

    event: asyncio.Event = field(default_factory=asyncio.Event)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    def heard(self) -> None:
        self.loop.call_soon_threadsafe(self.event.set)

    async def next(self) -> None:
        await self.event.wait()
        self.event.clear()


class Framework(Protocol):
    """The interface of an adapter. The attributes have defaults here."""

    changed: Changed | None = None
    """The notifications, if the framework passes them on."""

    at_once: int = AT_ONCE
    """Calls at once, if it cannot make as many as the others."""

    fixed: bool = False
    """Whether it lists once for ever."""

    cannot: dict[str, str] = {}
    """The tools that the framework itself cannot call, with the reason."""

    async def names(self) -> list[str]:
        """Returns the tools that the framework lists, by the server's names."""

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Returns the result of a tool, as text. It raises the exceptions of the framework."""

    async def uris(self) -> list[str]:
        """Returns the URIs of resources that it lists; an adapter that lists none does not have this method."""


Connect = Callable[[Target], AbstractAsyncContextManager[Framework]]


class Checks:
    """Counts and prints the checks."""

    def __init__(self) -> None:
        self.passed = self.failed = 0

    def check(self, what: str, ok: bool, otherwise: object = None) -> None:
        if ok:
            self.passed += 1
        else:
            self.failed += 1
        print(f"ok      {what}" if ok else f"FAILED  {what}: {str(otherwise)[:1500]}", flush=True)


def fits(text: str, expected: object) -> bool:
    """Returns whether a text is the expected result of a tool."""
    if isinstance(expected, str):
        return expected in text
    try:
        return json.loads(text) == expected
    except ValueError:
        return False


async def attempt(framework: Framework, name: str, arguments: dict[str, Any]) -> str:
    try:
        return await framework.call(name, arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


async def converse(framework: Framework, folder: Path, calls: dict[str, Any], newcomer: Path, checks: Checks) -> None:
    cannot = getattr(framework, "cannot", {})
    listed = await framework.names()
    missing = [name for name in calls["listed"] if name not in listed and cannot.get(name) != "is not listed"]
    checks.check(f"lists all {len(calls['listed'])} tools", not missing, missing)
    for call in calls["calls"]:
        text = await attempt(framework, call["tool"], call["arguments"])
        reason = cannot.get(call["tool"])
        if reason is None:
            checks.check(f"calls {call['tool']}", fits(text, call["returns"]), text)
        else:
            # So that the test detects a version that supports it.
            checks.check(f"cannot call {call['tool']}, because it {reason}", not fits(text, call["returns"]), text)
    if hasattr(framework, "uris"):
        # Some frameworks change the spelling.
        uris = {uri.lower() for uri in await framework.uris()}
        unlisted = [uri for uri in calls["resources"] if uri.lower() not in uris]
        checks.check("lists resources with every kind of URI", not unlisted, (unlisted, uris))
    at_once = getattr(framework, "at_once", AT_ONCE)
    sums = await asyncio.gather(
        *(attempt(framework, "calculate_sum", {"a": n, "b": 0.5}) for n in range(at_once))
    )
    wrong = [text for n, text in enumerate(sums) if not fits(text, {"sum": n + 0.5})]
    checks.check(f"{at_once} calls at once on one session", not wrong, wrong[:3])
    if getattr(framework, "fixed", False):
        return

    changed = getattr(framework, "changed", None)
    how = "is told of" if changed else "lists again and sees"

    async def until(there: bool) -> None:
        while ("shout" in await framework.names()) != there:
            if changed:
                await changed.next()

    target = folder / "newcomer.wasm"
    shutil.copy(newcomer, target)
    await until(True)
    shouted = await attempt(framework, "shout", {"text": "hello"})
    checks.check(f"{how} a new tool, and calls it", "HELLO" in shouted, shouted)
    target.unlink()
    await until(False)
    checks.check(f"{how} that it is gone", True)


def free_port() -> int:
    """Returns a free port, for programs that cannot choose one themselves."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@contextmanager
def listening(command: list[str], env: dict[str, str], marker: str) -> Iterator[str]:
    """Starts a program that prints its address to standard error, after `marker`."""
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
    drain = None
    try:
        for line in process.stderr:
            if marker in line:
                break
        else:
            raise RuntimeError(f"{command[0]} did not start")
        # Read its further output, so that it never blocks.
        drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        process.stderr.close()
        yield line.split(marker)[1].split()[0]
    finally:
        process.terminate()
        code = process.wait(timeout=60)
        if drain:
            drain.wait()
        if code != 0:
            raise RuntimeError(f"the server ended with {code}")


def main(connect: Connect, without: Callable[[str], bool] = lambda name: False) -> None:
    """Has the conversation of the arguments, and ends the program.

    `without` names tools with which the framework fails to list all tools: their plugins are not in the folder.
    """
    mode, transport, server, plugins, calls, cache, newcomer = sys.argv[1:]
    checks = Checks()

    async def run(target: Target) -> None:
        async with connect(target) as framework:
            await converse(framework, folder, described, Path(newcomer), checks)

    try:
        with ExitStack() as stack:
            root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolbay-")))
            folder = root / "plugins"
            shutil.copytree(plugins, folder)
            described = json.loads(Path(calls).read_text("utf-8"))
            for tool in filter(without, list(described["plugins"])):
                folder.joinpath(described["plugins"][tool]).unlink(missing_ok=True)
            described["listed"] = [name for name in described["listed"] if not without(name)]
            described["calls"] = [call for call in described["calls"] if not without(call["tool"])]
            settings = root / "toolbay.toml"
            settings.write_text(PORTABLE if mode == "portable" else "", "utf-8")
            env = {"PATH": "/usr/bin:/bin", "HOME": str(root), "XDG_CACHE_HOME": cache}
            args = ["serve", "--config", str(settings), "--plugins", str(folder)]
            target = Target(mode, transport, server, [*args, "--log", "warn"], env)
            if transport != "stdio":
                command = [server, *args, "--http", "127.0.0.1:0", "--sse"]
                target.url = stack.enter_context(listening(command, env, "listening on "))
            if transport == "sse":
                target.url = urljoin(target.url, "/sse")
            asyncio.run(asyncio.wait_for(run(target), PATIENCE))
    except BaseException as error:
        traceback.print_exception(error, limit=8)
        checks.check("the conversation goes on to its end", False, f"{type(error).__name__}: {error}")
    print(f"{checks.passed} passed, {checks.failed} failed", flush=True)
    sys.exit(1 if checks.failed else 0)
