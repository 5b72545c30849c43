"""The home folder in a component, which has no users: the root, unless the grant sets `HOME`.

Packages look there for settings that they can do without, and fail if there is
no home folder at all. Used only in a component.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any


def adapt(posixpath: ModuleType) -> None:
    """Makes `~` the root if there is no home folder."""
    expand = posixpath.expanduser

    @functools.wraps(expand)
    def expanduser(path: Any) -> Any:
        found = expand(path)
        tilde, slash = ("~", "/") if isinstance(found, str) else (b"~", b"/")
        if found == tilde:
            return slash
        return found[1:] if found.startswith(tilde + slash) else found

    posixpath.expanduser = expanduser  # type: ignore[attr-defined]
