"""Makes sockets safe in a component. Used only in a component.

A socket that is opened while the plugin is built belongs to the machine that
builds it. The component would remember the handle of the network, which does
not exist when a tool runs, and the call would end at its first socket.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

_BUILDING = "there is no network while a plugin is built: open sockets in the tool, not at the top level of a module"
_DENIED = (
    "the operator's grant allows TCP connections with `tcp = [\"HOST:PORT\"]`, and HTTP requests, "
    "which need no sockets, with `http`"
)

_is_building = True


def adapt(socket: ModuleType) -> None:
    """Refuses sockets while the plugin is built, and explains denials when it runs."""
    owner: Any = socket.socket
    for name in ("__init__", "connect", "connect_ex", "bind", "listen"):
        setattr(owner, name, _guarded(getattr(owner, name), name))
    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr", "getnameinfo", "socketpair"):
        if hasattr(socket, name):
            setattr(socket, name, _guarded(getattr(socket, name), name))


def finish() -> None:
    """Allows sockets."""
    global _is_building
    _is_building = False


def _guarded(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if _is_building:
            raise OSError(_BUILDING)
        try:
            return function(*args, **keywords)
        except PermissionError as error:
            raise PermissionError(error.errno, f"{_what(name)} is denied: {_DENIED}") from None

    return call


def _what(name: str) -> str:
    return "a socket" if name == "__init__" else f"`{name}` of a socket"
