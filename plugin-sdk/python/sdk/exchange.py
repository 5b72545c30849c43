"""One HTTP request to the host, and its response: what every HTTP client of a plugin is built on.

The functions are asynchronous. `blocking` runs one of them to its end without
an event loop, and `awaited` in that of `asyncio`. Exists only in a component.
"""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import types as python_types
import urllib.error
import weakref
from collections.abc import Coroutine, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from componentize_py_types import Err, Ok
from wit_world.imports import monotonic_clock, outgoing_handler, poll, streams
from wit_world.imports import wasi_http_types as types

from .errors import Failed

T = TypeVar("T")

#: The number of bytes that are read at once.
READ = 65_536

_SLOW = "The server did not answer in time."
_LOST = "The server cannot be found."
_BROKEN = "The connection to the server failed."
_INSECURE = "The connection to the server is not secure."
_INVALID = "The request cannot be sent: its URL, its method or a header is invalid."

#: Messages that are the same in every language.
_WORDS = {
    "HttpRequestDenied": "The request is denied.",
    "DnsTimeout": _SLOW,
    "ConnectionTimeout": _SLOW,
    "ConnectionReadTimeout": _SLOW,
    "ConnectionWriteTimeout": _SLOW,
    "HttpResponseTimeout": _SLOW,
    "DnsError": _LOST,
    "DestinationNotFound": _LOST,
    "DestinationUnavailable": _LOST,
    "DestinationIpProhibited": _LOST,
    "DestinationIpUnroutable": _LOST,
    "ConnectionRefused": _BROKEN,
    "ConnectionTerminated": _BROKEN,
    "HttpResponseIncomplete": _BROKEN,
    "TlsProtocolError": _INSECURE,
    "TlsCertificateError": _INSECURE,
    "TlsAlertReceived": _INSECURE,
    "ConnectionLimitReached": "The request failed: connection limit reached.",
}

#: Headers of one connection, which the host manages.
_OF_THE_CONNECTION = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "expect"}


class RequestError(Failed, urllib.error.URLError):
    """A `URLError` whose message is for the model."""

    def __init__(self, message: str) -> None:
        urllib.error.URLError.__init__(self, message)

    def __str__(self) -> str:
        return str(self.reason)


class RequestTimeout(RequestError, TimeoutError):
    """The server did not answer in time."""

    def __init__(self, message: str = _SLOW, *, connecting: bool = False) -> None:
        super().__init__(message)
        self.connecting = connecting


def _error(code: Any) -> RequestError:
    """Returns the error for a WASI error code."""
    name = type(code).__name__.removeprefix("ErrorCode_")
    if name == "InternalError" and code.value:
        return RequestError(f"The request failed: {code.value}.")
    words = _WORDS.get(name, f"The request failed: {name}.")
    if words == _SLOW:
        return RequestTimeout(connecting=name in ("DnsTimeout", "ConnectionTimeout"))
    return RequestError(words)


def nanoseconds(seconds: float) -> int:
    """Returns a duration as the host takes it."""
    return max(0, min(int(seconds * 1e9), (1 << 63) - 1))


@python_types.coroutine
def _until(pollable: Any, seconds: float | None) -> Generator[tuple[Any, float | None], None, None]:
    yield pollable, seconds


def _wait(pollable: Any, seconds: float | None) -> None:
    if seconds is None:
        pollable.block()
        return
    with monotonic_clock.subscribe_duration(nanoseconds(seconds)) as timer:
        if 0 not in poll.poll([pollable, timer]):
            raise TimeoutError


def blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a function of this module to its end. Nothing else runs in the meantime."""
    error: BaseException | None = None
    try:
        while True:
            event = coroutine.send(None) if error is None else coroutine.throw(error)
            error = None
            try:
                _wait(*event)
            except BaseException as raised:
                error = raised
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        # Its traceback refers to this frame.
        error = None


async def awaited(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a function of this module to its end in the event loop of `asyncio`."""
    import asyncio

    loop: Any = asyncio.get_running_loop()
    error: BaseException | None = None
    try:
        while True:
            event = coroutine.send(None) if error is None else coroutine.throw(error)
            error = None
            try:
                await loop.until(*event)
            except BaseException as raised:
                error = raised
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        # Its traceback refers to this frame.
        error = None


@dataclass(frozen=True)
class Target:
    """Where a request goes."""

    method: str
    scheme: str
    #: The host, and the port unless it is that of the scheme.
    authority: str
    #: The path and the query.
    path: str


class _Resources:
    """The host's resources of one exchange.

    They outlive it: if Python's garbage collector dropped them, it would do so in
    any order, and the host ends the call if a resource is dropped before its
    children.
    """

    #: The order in which they are dropped.
    _ORDER = ("events", "output", "outgoing", "input", "body", "response", "future")

    def __init__(self) -> None:
        self._open: dict[str, Any] = {"events": []}

    def __getitem__(self, name: str) -> Any:
        return self._open.get(name)

    def __setitem__(self, name: str, resource: Any) -> None:
        self._open[name] = resource

    def take(self, name: str) -> Any:
        """Removes a resource that is given to the host."""
        return self._open.pop(name)

    def drop(self, *names: str) -> None:
        for name in names:
            resource = self._open.pop(name, None)
            if resource is not None:
                resource.__exit__(None, None, None)

    def close(self) -> None:
        for event in self._open["events"]:
            event.__exit__(None, None, None)
        self._open["events"] = []
        self.drop(*self._ORDER[1:])

    async def until(self, event: Any, seconds: float | None) -> None:
        """Waits for an event. Raises `RequestTimeout` after `seconds`."""
        self._open["events"].append(event)
        try:
            await _until(event, seconds)
        except RequestTimeout:
            raise
        except TimeoutError:
            raise RequestTimeout from None
        finally:
            if event in self._open["events"]:
                self._open["events"].remove(event)
                event.__exit__(None, None, None)


class Exchange:
    """One request and its response."""

    def __init__(self, target: Target, headers: Sequence[tuple[str, bytes]], connect: float | None = None) -> None:
        fields = [(name, value) for name, value in headers if not _is_implied(name, value, target)]
        self._open = _Resources()
        self._finalizer = weakref.finalize(self, self._open.close)
        self._finalizer.atexit = False
        try:
            request = types.OutgoingRequest(types.Fields.from_list(fields))
            request.set_method(_method(target.method))
            request.set_scheme(types.Scheme_Https() if target.scheme == "https" else types.Scheme_Http())
            request.set_authority(target.authority)
            request.set_path_with_query(target.path or "/")
            self._open["outgoing"] = request.body()
            self._open["output"] = self._open["outgoing"].write()
        except Err:
            self.close()
            raise RequestError(_INVALID) from None
        try:
            self._open["future"] = outgoing_handler.handle(request, _options(connect))
        except Err as error:
            self.close()
            raise _error(error.value) from None

    async def write(self, data: bytes, seconds: float | None = None) -> None:
        """Sends a part of the body. A server that does not need all of it may have responded already."""
        view = memoryview(data)
        try:
            while view and (output := self._open["output"]) is not None:
                permitted = output.check_write()
                if permitted:
                    output.write(bytes(view[:permitted]))
                    view = view[permitted:]
                else:
                    await self._open.until(output.subscribe(), seconds)
        except Err:
            # The response, or its error, has more information.
            self._open.drop("output", "outgoing")

    async def finish(self, seconds: float | None = None) -> None:
        """Ends the body."""
        output = self._open["output"]
        if output is None:
            return
        try:
            output.flush()
            while not output.check_write():
                await self._open.until(output.subscribe(), seconds)
            self._open.drop("output")
            types.OutgoingBody.finish(self._open.take("outgoing"), None)
        except Err:
            self._open.drop("output", "outgoing")

    async def head(self, seconds: float | None = None) -> tuple[int, list[tuple[str, bytes]]]:
        """Waits for the response. Returns its status and its headers."""
        future = self._open["future"]
        if future is None:
            raise RequestError("The request failed: it has ended.")
        answer = future.get()
        while answer is None:
            await self._open.until(future.subscribe(), seconds)
            answer = future.get()
        match answer:
            case Ok(Ok(response)):
                self._open["response"] = response
            case Ok(Err(code)):
                raise _error(code)
            case _:
                raise RequestError("The request failed: the host has no response.")
        with response.headers() as fields:
            headers = [(name, value) for name, value in fields.entries() if name.lower() not in _OF_THE_CONNECTION]
        self._open["body"] = response.consume()
        self._open["input"] = self._open["body"].stream()
        return response.status(), headers

    async def read(self, seconds: float | None = None, size: int = READ) -> bytes:
        """Returns the next bytes of the response; none at its end."""
        try:
            while (stream := self._open["input"]) is not None:
                if piece := stream.read(size):
                    return bytes(piece)
                await self._open.until(stream.subscribe(), seconds)
            return b""
        except Err as error:
            if isinstance(error.value, streams.StreamError_Closed):
                return b""
            code = types.http_error_code(error.value.value)
        raise RequestError(_BROKEN) if code is None else _error(code)

    def close(self) -> None:
        """Ends the exchange, whether or not it is complete."""
        self._finalizer()


def _is_implied(name: str, value: bytes, target: Target) -> bool:
    """Returns whether the host sets this header itself. It refuses a `Host` that is not that of the URL."""
    if name.lower() != "host":
        return name.lower() in _OF_THE_CONNECTION
    port = ":443" if target.scheme == "https" else ":80"
    hosts = {host.lower().removesuffix(port) for host in (value.decode("latin-1"), target.authority)}
    if len(hosts) > 1:
        raise RequestError(f"The request cannot be sent: its header `Host` must be `{target.authority}`, as in its URL.")
    return True


def _method(name: str) -> Any:
    known = getattr(types, f"Method_{name.capitalize()}", None) if name.isupper() else None
    return types.Method_Other(name) if known is None or name == "OTHER" else known()


def _options(connect: Any) -> Any:
    # The default timeout of urllib is an object, not a number.
    if not isinstance(connect, (int, float)):
        return None
    options = types.RequestOptions()
    options.set_connect_timeout(nanoseconds(connect))
    return options
