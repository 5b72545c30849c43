"""Views: pages that clients show with the results of tools (MCP Apps)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from .errors import DefinitionError

#: The MIME type of views.
TYPE = "text/html;profile=mcp-app"

Permission = Literal["camera", "microphone", "geolocation", "clipboard_write"]

#: The permissions whose names differ in MCP.
_NAMES = {"clipboard_write": "clipboardWrite"}


@dataclass(frozen=True)
class View:
    """The permissions that a view requests: a page that clients show with the results of a tool.

    It gets those that the operator's grant allows. Without any, it has no
    network. An origin has the form `https://api.example.com`.
    """

    #: Origins to which its scripts send requests or open WebSockets.
    connect: Sequence[str] = ()
    #: Origins of its images, scripts, styles, fonts and media.
    resources: Sequence[str] = ()
    #: Origins of the pages in its frames.
    frames: Sequence[str] = ()
    #: Origins that may be the base of its relative URLs.
    base: Sequence[str] = ()
    #: The features of the user's device that it uses.
    permissions: Sequence[Permission] = ()
    #: True if the client should draw a border around it; with `None`, the client decides.
    border: bool | None = None
    #: The name of its own origin, in the form that the client defines.
    domain: str | None = None

    def __post_init__(self) -> None:
        for key in ("connect", "resources", "frames", "base", "permissions"):
            if isinstance(getattr(self, key), str):
                raise DefinitionError(f"`{key}` of a view is a list: `{key}=[{getattr(self, key)!r}]`")
        for permission in self.permissions:
            if permission not in get_args(Permission):
                raise DefinitionError(f"a view has no permission {permission!r}; there are {', '.join(get_args(Permission))}")

    def members(self) -> dict[str, Any]:
        """Returns the member `ui` of the `_meta` of a resource."""
        origins = {
            "connectDomains": self.connect,
            "resourceDomains": self.resources,
            "frameDomains": self.frames,
            "baseUriDomains": self.base,
        }
        csp = {name: list(listed) for name, listed in origins.items() if listed}
        permissions: dict[str, Any] = {_NAMES.get(name, name): {} for name in self.permissions}
        ui: dict[str, Any] = {}
        if csp:
            ui["csp"] = csp
        if permissions:
            ui["permissions"] = permissions
        if self.border is not None:
            ui["prefersBorder"] = self.border
        if self.domain is not None:
            ui["domain"] = self.domain
        return ui


def is_view(uri: str) -> bool:
    """Returns whether a resource with this URI is a view."""
    return uri.startswith("ui://")


def link(view: str | None, app_only: bool) -> dict[str, Any]:
    """Returns the members of the `_meta` of a tool."""
    if view is not None and not is_view(view):
        raise DefinitionError(f"the URI of a view begins with `ui://`, not {view!r}")
    ui: dict[str, Any] = {}
    if view is not None:
        ui["resourceUri"] = view
    if app_only:
        ui["visibility"] = ["app"]
    return {"ui": ui} if ui else {}


def asked(uri: str, view: View | None) -> dict[str, Any]:
    """Returns the members of the `_meta` of a resource."""
    if view is None:
        return {}
    if not is_view(uri):
        raise DefinitionError(f"the URI of a view begins with `ui://`, not {uri!r}")
    return {"ui": view.members()}
