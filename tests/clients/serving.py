"""The plugins that clients call, and a server that listens."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GUESTS = {"test_simple_text", "loop_forever"}
"""A tool of each plugin that `add_guests` adds."""


def add_guests(newcomer: Path, folder: Path) -> None:
    """Adds the plugins of the tests that are next to `newcomer`.

    One never ends: its grant allows one call at a time, without a timeout. A user must approve each call of a tool of
    the other one.
    """
    folder.joinpath("conformance.toml").write_text('[tools.test_simple_text]\nrequire_approval = "always"\n')
    folder.joinpath("hostile.toml").write_text('[limits]\nconcurrency = 1\nfuel = 1_000_000_000_000\ntimeout = "10m"\n')
    for guest in ["conformance.wasm", "hostile.wasm"]:
        shutil.copy(newcomer.with_name(guest), folder)


@contextmanager
def over_http(server: str, folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """Starts the server, and returns its address."""
    command = [server, "serve", "--http", "127.0.0.1:0", "--sse", "--plugins", str(folder)]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr:
            if "listening on " in line:
                break
        else:
            raise RuntimeError("the server did not start")
        # Read its further output, so that it never blocks.
        drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        process.stderr.close()
        yield line.split("listening on ")[1].strip()
    finally:
        process.terminate()
        if process.wait(timeout=30) != 0:
            raise RuntimeError(f"the server ended with {process.returncode}")
        drain.wait()
