"""`httpx` over the host, with and without `asyncio`. Exists only in a component."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Any

from .exchange import Exchange, RequestError, RequestTimeout, Target, awaited, blocking


def adapt(httpx: ModuleType) -> None:
    """Makes the clients send requests through the host."""
    sync, asynchronous = httpx.HTTPTransport, httpx.AsyncHTTPTransport

    class SyncBody(httpx.SyncByteStream):  # type: ignore[misc,name-defined]
        def __init__(self, exchange: Exchange, request: Any) -> None:
            self._exchange, self._request = exchange, request

        def __iter__(self) -> Iterator[bytes]:
            with _errors(httpx, self._request, reading=True):
                while piece := blocking(self._exchange.read(_timeout(self._request, "read"))):
                    yield piece

        def close(self) -> None:
            self._exchange.close()

    class AsyncBody(httpx.AsyncByteStream):  # type: ignore[misc,name-defined]
        def __init__(self, exchange: Exchange, request: Any) -> None:
            self._exchange, self._request = exchange, request

        async def __aiter__(self) -> AsyncIterator[bytes]:
            with _errors(httpx, self._request, reading=True):
                while piece := await awaited(self._exchange.read(_timeout(self._request, "read"))):
                    yield piece

        async def aclose(self) -> None:
            self._exchange.close()

    def initialize(self: Any, *_: Any, cert: Any = None, **__: Any) -> None:
        if cert is not None:
            raise OSError("a plugin cannot use a client certificate; certificates are the operator's business")

    def handle(self: Any, request: Any) -> Any:
        with _errors(httpx, request):
            exchange = _exchange(request)
            try:
                for piece in request.stream:
                    blocking(exchange.write(piece, _timeout(request, "write")))
                blocking(exchange.finish(_timeout(request, "write")))
                head = blocking(exchange.head(_timeout(request, "read")))
            except BaseException:
                exchange.close()
                raise
        return _response(httpx, head, SyncBody(exchange, request))

    async def handle_async(self: Any, request: Any) -> Any:
        with _errors(httpx, request):
            exchange = _exchange(request)
            try:
                async for piece in request.stream:
                    await awaited(exchange.write(piece, _timeout(request, "write")))
                await awaited(exchange.finish(_timeout(request, "write")))
                head = await awaited(exchange.head(_timeout(request, "read")))
            except BaseException:
                exchange.close()
                raise
        return _response(httpx, head, AsyncBody(exchange, request))

    async def nothing(self: Any, *_: Any) -> None:
        pass

    async def itself(self: Any) -> Any:
        return self

    for owner in (sync, asynchronous):
        owner.__init__ = initialize
    sync.handle_request = handle
    sync.__enter__ = lambda self: self
    sync.__exit__ = sync.close = lambda self, *_: None
    asynchronous.handle_async_request = handle_async
    asynchronous.__aenter__ = itself
    asynchronous.__aexit__ = asynchronous.aclose = nothing


def _timeout(request: Any, kind: str) -> float | None:
    seconds: float | None = request.extensions.get("timeout", {}).get(kind)
    return seconds


def _exchange(request: Any) -> Exchange:
    url = request.url
    target = Target(
        request.method,
        url.scheme,
        url.netloc.decode("ascii"),
        url.raw_path.decode("ascii"),
    )
    headers = [(name.decode("latin-1"), value) for name, value in request.headers.raw]
    return Exchange(target, headers, _timeout(request, "connect"))


def _response(httpx: Any, head: tuple[int, list[tuple[str, bytes]]], body: Any) -> Any:
    status, headers = head
    return httpx.Response(
        status_code=status,
        headers=[(name.encode("latin-1"), value) for name, value in headers],
        stream=body,
        extensions={"http_version": b"HTTP/1.1", "reason_phrase": http.client.responses.get(status, "").encode()},
    )


@contextlib.contextmanager
def _errors(httpx: Any, request: Any, *, reading: bool = False) -> Iterator[None]:
    """Converts the host's errors to those of `httpx`."""
    try:
        yield
    except RequestTimeout as error:
        kind = httpx.ConnectTimeout if error.connecting else httpx.ReadTimeout
        raise kind(str(error), request=request) from error
    except RequestError as error:
        kind = httpx.ReadError if reading else httpx.ConnectError
        raise kind(str(error), request=request) from error
