"""A server that listens, for clients that call it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def over_http(server: str, folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """Starts the server, and says where it is served."""
    command = [server, "serve", "--http", "127.0.0.1:0", "--sse", "--plugins", str(folder)]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr:
            if "listening on " in line:
                break
        else:
            raise RuntimeError("the server did not start")
        # What it says from here on is read, so that it never waits for it.
        drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        process.stderr.close()
        yield line.split("listening on ")[1].strip()
    finally:
        process.terminate()
        if process.wait(timeout=30) != 0:
            raise RuntimeError(f"the server ended with {process.returncode}")
        drain.wait()
