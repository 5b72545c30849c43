"""`urllib.request` over the host: `urlopen` works, if the grant allows the request. Exists only in a component."""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import http.client
import io
import urllib.error
import urllib.request
import urllib.response
from collections.abc import Iterable
from typing import Any

from componentize_py_types import Err, Ok
from wit_world.imports import outgoing_handler, streams
from wit_world.imports import wasi_http_types as types

from .errors import Failed

#: The number of bytes that the host accepts at once, and that are read at once.
_WRITTEN = 4096
_READ = 65_536

_SLOW = "The server did not answer in time."
_LOST = "The server cannot be found."
_BROKEN = "The connection to the server failed."
_INSECURE = "The connection to the server is not secure."

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


class RequestError(Failed, urllib.error.URLError):
    """A `URLError` whose message is for the model."""

    def __init__(self, message: str) -> None:
        urllib.error.URLError.__init__(self, message)

    def __str__(self) -> str:
        return str(self.reason)


def _error(code: Any) -> RequestError:
    """Returns the error for a WASI error code."""
    name = type(code).__name__.removeprefix("ErrorCode_")
    if name == "InternalError" and code.value:
        return RequestError(f"The request failed: {code.value}.")
    return RequestError(_WORDS.get(name, f"The request failed: {name}."))


class HostHandler(urllib.request.HTTPHandler):
    """Sends a request of `urllib.request`."""

    https_request = urllib.request.AbstractHTTPHandler.do_request_

    def http_open(self, req: urllib.request.Request) -> Any:
        return _exchange(req)

    https_open = http_open


def install() -> None:
    """Makes `urllib.request.urlopen` send requests through the host."""
    urllib.request.install_opener(urllib.request.build_opener(HostHandler))


def _exchange(req: urllib.request.Request) -> urllib.response.addinfourl:
    body = _bytes(req.data)
    headers = {**req.unredirected_hdrs, **req.headers}
    # The host sets this header, and refuses any other value.
    fields = [(name, str(value).encode("latin-1")) for name, value in headers.items() if name.lower() != "host"]
    try:
        request = types.OutgoingRequest(types.Fields.from_list(fields))
        request.set_method(_method(req.get_method()))
        request.set_scheme(types.Scheme_Https() if req.type == "https" else types.Scheme_Http())
        request.set_authority(req.host)
        request.set_path_with_query(req.selector or "/")
        outgoing = request.body()
    except Err:
        raise RequestError("The request cannot be sent: its URL, its method or a header is invalid.") from None
    try:
        future = outgoing_handler.handle(request, _timeouts(req.timeout))
    except Err as error:
        raise _error(error.value) from None
    _write(outgoing, body)
    with future:
        with future.subscribe() as ready:
            ready.block()
        answer = future.get()
    match answer:
        case Ok(Ok(response)):
            return _response(req, response)
        case Ok(Err(code)):
            raise _error(code)
        case _:
            raise RequestError("The request failed: the host has no response.")


def _bytes(data: Any) -> bytes:
    if data is None:
        return b""
    if hasattr(data, "read"):
        return bytes(data.read())
    if isinstance(data, Iterable) and not isinstance(data, (bytes, bytearray, memoryview)):
        return b"".join(data)
    return bytes(data)


def _method(name: str) -> Any:
    known = getattr(types, f"Method_{name.capitalize()}", None)
    return types.Method_Other(name) if known is None or name.lower() == "other" else known()


def _timeouts(seconds: Any) -> Any:
    # The default timeout of urllib is an object, not a number.
    if not isinstance(seconds, (int, float)):
        return None
    options, nanoseconds = types.RequestOptions(), int(seconds * 1e9)
    options.set_connect_timeout(nanoseconds)
    options.set_first_byte_timeout(nanoseconds)
    options.set_between_bytes_timeout(nanoseconds)
    return options


def _write(outgoing: Any, body: bytes) -> None:
    """Writes the body. A server that does not need all of it has responded before its end."""
    try:
        with outgoing.write() as stream:
            for at in range(0, len(body), _WRITTEN):
                stream.blocking_write_and_flush(body[at : at + _WRITTEN])
        types.OutgoingBody.finish(outgoing, None)
    except Err:
        # The response, or its error, has more information.
        pass


def _response(req: urllib.request.Request, response: Any) -> urllib.response.addinfourl:
    status = response.status()
    headers = http.client.HTTPMessage()
    with response.headers() as fields:
        for name, value in fields.entries():
            headers[name] = value.decode("latin-1")
    body = response.consume()
    found = urllib.response.addinfourl(io.BufferedReader(_Body(body, response)), headers, req.full_url, status)
    found.msg = http.client.responses.get(status, "")
    return found


class _Body(io.RawIOBase):
    """The body of a response, read in parts."""

    def __init__(self, body: Any, response: Any) -> None:
        self._owners = [body.stream(), body, response]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._owners:
            return 0
        try:
            piece = self._owners[0].blocking_read(min(len(buffer), _READ))
        except Err as error:
            if isinstance(error.value, streams.StreamError_Closed):
                return 0
            code = types.http_error_code(error.value.value)
            raise (RequestError(_BROKEN) if code is None else _error(code)) from None
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        # In this order: the host ends the call if a resource is dropped before its children.
        for owner in self._owners:
            owner.__exit__(None, None, None)
        self._owners = []
        super().close()
