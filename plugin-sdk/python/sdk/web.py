"""`urllib.request` over the host: `urlopen` works, if the grant allows the request. Exists only in a component."""

from __future__ import annotations

import http.client
import io
import urllib.response
from collections.abc import Iterable
from types import ModuleType
from typing import Any

# Not `urllib.request`: the package does not have the module while it is adapted.
from urllib import request

from .exchange import READ, Exchange, RequestError, Target, blocking

__all__ = ["HostHandler", "RequestError", "adapt"]


class HostHandler(request.HTTPHandler):
    """Sends a request of `urllib.request`."""

    # Before the handler of Python, which is over `http.client`.
    handler_order = 400
    https_request = request.AbstractHTTPHandler.do_request_

    def http_open(self, req: request.Request) -> Any:
        return _exchange(req)

    https_open = http_open


def adapt(module: Any) -> None:
    """Makes `urllib.request.urlopen` send requests through the host."""
    # Openers that packages make use the host too. There is a handler for HTTPS because `ssl` can be imported.
    module.HTTPSHandler = HostHandler
    module.install_opener(module.build_opener(HostHandler))


def _exchange(req: request.Request) -> urllib.response.addinfourl:
    headers = {**req.unredirected_hdrs, **req.headers}
    fields = [(name, str(value).encode("latin-1")) for name, value in headers.items()]
    # The default timeout of urllib is an object, not a number.
    seconds = req.timeout if isinstance(req.timeout, (int, float)) else None
    exchange = Exchange(Target(req.get_method(), req.type, req.host, req.selector), fields, seconds)
    for piece in _pieces(req.data):
        blocking(exchange.write(piece, seconds))
    blocking(exchange.finish(seconds))
    status, headers_received = blocking(exchange.head(seconds))
    message = http.client.HTTPMessage()
    for name, value in headers_received:
        message[name] = value.decode("latin-1")
    body = io.BufferedReader(ExchangeBody(exchange, seconds))
    found = urllib.response.addinfourl(body, message, req.full_url, status)
    found.msg = http.client.responses.get(status, "")
    return found


def _pieces(data: Any) -> Iterable[bytes]:
    if data is None:
        return
    if hasattr(data, "read"):
        while piece := data.read(READ):
            yield bytes(piece)
    elif isinstance(data, Iterable) and not isinstance(data, (bytes, bytearray, memoryview)):
        yield from data
    else:
        yield bytes(data)


class ExchangeBody(io.RawIOBase):
    """The body of a response, read in parts."""

    def __init__(self, exchange: Exchange, seconds: float | None) -> None:
        self._exchange, self._seconds = exchange, seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = blocking(self._exchange.read(self._seconds, min(len(buffer), READ)))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._exchange.close()
        super().close()
