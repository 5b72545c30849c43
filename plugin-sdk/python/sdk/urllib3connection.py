"""`urllib3` and `requests` over the host. Exists only in a component."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from .exchange import RequestError
from .httpclient import HostSocket, refuse_tunnel

#: The keywords of a connection that have a meaning here; those for certificates have none.
_KEYWORDS = ("timeout", "source_address", "blocksize", "socket_options", "proxy", "proxy_config", "strict")

_CERTIFICATE = "a plugin cannot use a client certificate; certificates are the operator's business"


def adapt(module: ModuleType) -> None:
    """Makes connections go through the host."""
    if module.__name__ == "requests.adapters":
        _adapt_requests(module)
    else:
        _adapt_urllib3(module)


def _adapt_urllib3(pool: Any) -> None:
    base: Any = pool.HTTPConnection

    def new_connection(self: Any) -> HostSocket:
        refuse_tunnel(self)
        scheme = "https" if isinstance(self, HTTPSConnection) else "http"
        return HostSocket(scheme, self.host, self.port, self.timeout)

    base._new_conn = new_connection

    class HTTPSConnection(base):  # type: ignore[misc]
        """A connection over TLS, whose certificates the host checks."""

        default_port = 443
        is_verified = True
        proxy_is_verified = None
        cert_file: Any = None

        def __init__(self, host: str, port: int | None = None, **keywords: Any) -> None:
            if keywords.get("cert_file"):
                raise OSError(_CERTIFICATE)
            super().__init__(host, port, **{key: value for key, value in keywords.items() if key in _KEYWORDS})
            self.is_verified = True

        def set_cert(self, *_: Any, cert_file: Any = None, **__: Any) -> None:
            if cert_file:
                raise OSError(_CERTIFICATE)

        def connect(self) -> None:
            self.sock = self._new_conn()
            self.is_verified = True

    pool.HTTPSConnection = pool.HTTPSConnectionPool.ConnectionCls = HTTPSConnection
    pool.HTTPSConnectionPool._prepare_conn = lambda self, conn: conn  # urllib3 1.
    connection: Any = importlib.import_module(f"{pool.__package__}.connection")
    connection.HTTPSConnection = connection.VerifiedHTTPSConnection = HTTPSConnection


def _adapt_requests(adapters: Any) -> None:
    exceptions: Any = importlib.import_module("requests.exceptions")
    owner: Any = adapters.HTTPAdapter
    send = owner.send

    def cert_verify(self: Any, conn: Any, url: str, verify: Any, cert: Any) -> None:
        if cert:
            raise OSError(_CERTIFICATE)

    @functools.wraps(send)
    def send_or_explain(self: Any, request: Any, *args: Any, **keywords: Any) -> Any:
        try:
            return send(self, request, *args, **keywords)
        except exceptions.Timeout:
            raise
        except exceptions.ConnectionError as error:
            # The host's words, without those of three libraries around them.
            for cause in _causes(error):
                if isinstance(cause, RequestError):
                    raise type(error)(str(cause), request=request) from cause
            raise

    owner.cert_verify = cert_verify
    owner.send = send_or_explain


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Returns the exceptions in an exception: its arguments, its reason and its causes."""
    pending, seen = [error], set()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        inner = [*one.args, getattr(one, "reason", None), one.__cause__, one.__context__]
        pending.extend(each for each in inner if isinstance(each, BaseException))
