"""A web server on this machine, to which plugins send requests."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FORECAST = {
    "current": {"temperature_2m": 12.5, "wind_speed_10m": 9.0},
    "daily": {
        "time": ["2026-04-01"],
        "temperature_2m_min": [4.0],
        "temperature_2m_max": [14.0],
        "precipitation_sum": [0.3],
    },
}


MEETING = threading.Barrier(3, timeout=30)
PATIENCE = 8
"""Seconds in which requests that are sent together arrive: less than the timeout of a call."""


class Handler(BaseHTTPRequestHandler):
    """Responds according to the path."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.read_body()
        path = self.path.partition("?")[0]
        if path == "/meet":
            self.meet()
        elif path == "/redirect":
            self.send_response(302)
            self.send_header("Location", "/echo?to=here")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif path == "/echo":
            self.answer(200, f"{self.command} {self.path} ".encode() + body)
        elif path == "/v1/forecast":
            self.answer(200, json.dumps(FORECAST).encode())
        elif path == "/cut":
            self.answer(200, b"short", length=100)
            self.close_connection = True
        elif path == "/together":
            self.together()
        elif path == "/silent":
            # Until the client closes the connection.
            self.connection.recv(1)
            self.close_connection = True
        elif path == "/endless":
            self.answer(200, b"begun", length=100)
            self.connection.recv(1)
            self.close_connection = True
        else:
            self.answer(404, b"missing", header="")

    do_POST = do_PUT = do_GET

    def read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def meet(self) -> None:
        """Responds when three requests have arrived; if they do not, with an error."""
        try:
            MEETING.wait()
        except threading.BrokenBarrierError:
            MEETING.reset()
            self.answer(500, b"alone")
        else:
            self.answer(200, b"together")

    def together(self) -> None:
        """Answers no request before three of them are here."""
        try:
            self.server.together.wait(PATIENCE)
        except threading.BrokenBarrierError:
            self.answer(504, b"alone")
        else:
            self.answer(200, self.path.encode())

    def answer(self, status: int, body: bytes, length: int | None = None, header: str | None = None) -> None:
        self.send_response(status)
        got = self.headers.get("X-Own", "") if header is None else header
        if got:
            self.send_header("X-Got", got)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Discards log messages."""


class Site:
    """Serves in a separate thread."""

    def __init__(self) -> None:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.together = threading.Barrier(3)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Site:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
