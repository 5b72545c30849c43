"""The web service that the five tools call: it returns the temperature in a city.

Started as a program, it prints its origin, and ends when its standard input is closed. It does little else, so that
the time of a request is mostly that of the server that sends it.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

TEMPERATURES = {"Bern": 12.5, "São Tomé & Príncipe": 27, "100% + one/two?#": -3.25}


def answer(target: str) -> bytes:
    """Returns the response to a request for `target`."""
    url = urlsplit(target)
    city = parse_qs(url.query).get("city", [""])[0]
    found = TEMPERATURES.get(city) if url.path == "/weather" else None
    status = HTTPStatus.NOT_FOUND if found is None else HTTPStatus.OK
    body = json.dumps({"city": city, "temperature": found, "wind": 9}).encode()
    head = f"HTTP/1.1 {status} {status.phrase}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def serve(connection: socket.socket) -> None:
    """Answers the requests of one connection, which have no body."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    received = b""
    with connection:
        while chunk := connection.recv(65_536):
            received += chunk
            while b"\r\n\r\n" in received:
                head, _, received = received.partition(b"\r\n\r\n")
                connection.sendall(answer(head.split(b" ", 2)[1].decode()))
                if b"\r\nconnection: close" in head.lower():
                    return


def listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        while True:
            threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()


@contextmanager
def running() -> Iterator[str]:
    """Starts the service in a separate process, and returns its origin."""
    command = [sys.executable, "-B", str(Path(__file__))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().strip()
        process.stdin.close()


if __name__ == "__main__":
    threading.Thread(target=listen, daemon=True).start()
    sys.stdin.read()
