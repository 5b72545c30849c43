"""`http.client` over the host: a connection whose socket understands HTTP. Exists only in a component.

Everything that is built on it works as well: `urllib3`, and so `requests`, and
`httplib2`. The socket reads the request as `http.client` writes it, sends it
through the host, and writes the response as a server would.
"""

from __future__ import annotations

import http.client
import io
from types import ModuleType
from typing import Any

from .exchange import READ, Exchange, RequestError, Target, blocking

_DEFAULT_PORTS = {"http": 80, "https": 443}


class HostSocket:
    """The socket of one request."""

    def __init__(self, scheme: str, host: str, port: int | None, timeout: Any) -> None:
        host = host.strip("[]")
        host = f"[{host}]" if ":" in host else host
        self._authority = host if port in (None, _DEFAULT_PORTS[scheme]) else f"{host}:{port}"
        self._scheme = scheme
        self._timeout = self._connect = timeout if isinstance(timeout, (int, float)) else None
        self._head = b""
        self._exchange: Exchange | None = None
        self._framing: _Framing | None = None
        self._is_answered = False

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Takes a part of the request."""
        data = bytes(data)
        if self._framing is None:
            self._head += data
            head, found, data = self._head.partition(b"\r\n\r\n")
            if not found:
                return
            self._begin(head)
        assert self._framing is not None and self._exchange is not None
        for piece in self._framing.pieces(data):
            blocking(self._exchange.write(piece, self._timeout))
        if self._framing.is_complete:
            blocking(self._exchange.finish(self._timeout))

    def send(self, data: Any, flags: int = 0) -> int:
        self.sendall(data)
        return len(data)

    def _begin(self, head: bytes) -> None:
        first, *lines = head.split(b"\r\n")
        method, path, _ = first.decode("latin-1").split(" ", 2)
        headers = []
        for line in lines:
            name, _, value = line.partition(b":")
            headers.append((name.decode("latin-1"), value.strip()))
        # In the form for proxies, the path is a whole URL.
        path = path.removeprefix(f"{self._scheme}://{self._authority}")
        target = Target(method, self._scheme, self._authority, path)
        self._exchange = Exchange(target, headers, self._connect)
        self._framing = _Framing({name.lower(): value for name, value in headers})

    def makefile(self, mode: str = "rb", *_: Any, **__: Any) -> Any:
        """Returns the response."""
        if "r" not in mode:
            raise OSError("the host sends HTTP requests; it has no connection to write to")
        self._is_answered = True
        return io.BufferedReader(_Answer(self), READ)

    def answer(self) -> bytes:
        """Waits for the response, and returns its head."""
        if self._exchange is None:
            raise RequestError("The request failed: it has no beginning.")
        blocking(self._exchange.finish(self._timeout))
        status, headers = blocking(self._exchange.head(self._timeout))
        lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, '')}".encode()]
        lines += [name.encode("latin-1") + b": " + value for name, value in headers]
        # The next request has a socket of its own.
        return b"\r\n".join([*lines, b"Connection: close", b"", b""])

    def read(self, size: int) -> bytes:
        """Returns the next bytes of the response's body."""
        return b"" if self._exchange is None else blocking(self._exchange.read(self._timeout, size))

    def settimeout(self, value: float | None) -> None:
        self._timeout = value

    def gettimeout(self) -> float | None:
        return self._timeout

    def setsockopt(self, *_: Any) -> None:
        pass

    def shutdown(self, how: int) -> None:
        pass

    def fileno(self) -> int:
        raise OSError("the host sends HTTP requests; there is no socket")

    def close(self) -> None:
        # The response is read after `http.client` has closed the socket.
        if not self._is_answered:
            self.end()

    def end(self) -> None:
        """Ends the exchange."""
        if self._exchange is not None:
            self._exchange.close()


class _Framing:
    """Reads the body of a request, which has a length or is in chunks."""

    def __init__(self, headers: dict[str, bytes]) -> None:
        self._is_chunked = b"chunked" in headers.get("transfer-encoding", b"").lower()
        self._left = int(headers.get("content-length", b"0") or 0)
        self._buffer = b""
        self.is_complete = not self._is_chunked and self._left == 0

    def pieces(self, data: bytes) -> list[bytes]:
        """Returns the bytes of the body that are in a part of the request."""
        if not self._is_chunked:
            piece = data[: self._left]
            self._left -= len(piece)
            self.is_complete = self._left == 0
            return [piece] if piece else []
        self._buffer += data
        pieces = []
        while not self.is_complete:
            line, found, rest = self._buffer.partition(b"\r\n")
            if not found:
                break
            size = int(line.partition(b";")[0] or b"0", 16)
            if len(rest) < size + 2:
                break
            if size:
                pieces.append(rest[:size])
            self._buffer, self.is_complete = rest[size + 2 :], size == 0
        return pieces


class _Answer(io.RawIOBase):
    """The response, as a server would write it."""

    def __init__(self, socket: HostSocket) -> None:
        self._socket = socket
        self._head: bytes | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._head is None:
            self._head = self._socket.answer()
        if self._head:
            piece, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        else:
            piece = self._socket.read(min(len(buffer), READ))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._socket.end()
        super().close()


def refuse_tunnel(connection: Any) -> None:
    """Raises an error if the connection is to go through a proxy, which is the operator's setting."""
    if getattr(connection, "_tunnel_host", None):
        raise RequestError("The request cannot be sent: proxies are configured by the operator, not by the plugin.")


def adapt(module: ModuleType) -> None:
    """Makes connections go through the host."""
    base: Any = module.HTTPConnection

    def connect(self: Any) -> None:
        refuse_tunnel(self)
        self.sock = HostSocket("http", self.host, self.port, self.timeout)

    base.connect = connect

    class HTTPSConnection(base):  # type: ignore[misc]
        """A connection over TLS, whose certificates the host checks."""

        default_port = module.HTTPS_PORT

        def __init__(self, host: str, port: int | None = None, *, context: Any = None, **keywords: Any) -> None:
            super().__init__(host, port, **keywords)
            self._context = context

        def connect(self) -> None:
            refuse_tunnel(self)
            self.sock = HostSocket("https", self.host, self.port, self.timeout)

    HTTPSConnection.__module__, HTTPSConnection.__qualname__ = "http.client", "HTTPSConnection"
    module.HTTPSConnection = HTTPSConnection  # type: ignore[attr-defined]
    # Python has them only with OpenSSL.
    module._create_https_context = lambda http_version: None  # type: ignore[attr-defined]
    if "HTTPSConnection" not in module.__all__:
        module.__all__.append("HTTPSConnection")
