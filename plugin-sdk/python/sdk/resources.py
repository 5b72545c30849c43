"""Resources, which clients read by URI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import cached_property
from typing import Any

from . import texts
from .content import Role, check_size, named, need_bytes
from .definition import Offer, check_returned
from .encode import encode
from .errors import DefinitionError
from .hints import Reader
from .shapes import Mapping as MappingShape
from .shapes import Record
from .uri_template import UriTemplate

#: The types that a resource may return, for messages.
MAY = (
    "return `str` for text, `bytes`, a dataclass, a `TypedDict` or a `dict` for JSON, `Contents`, a `list` or a "
    "`tuple` of those, or `None` if there is no such resource"
)


@dataclass(frozen=True)
class Contents:
    """One item of a resource: text or bytes, with further properties."""

    contents: str | bytes
    #: The MIME type. Without it, the item has that of the resource.
    mime_type: str | None = None
    #: The URI of an item below the one that was read. Without it, the item has the URI that was
    #read.
    uri: str | None = None
    #: Members of the item's `_meta`; a key begins with your own domain, such as
    #: `example.com/`.
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.contents, str):
            need_bytes(self, self.contents)


@dataclass
class Readable(Offer):
    """A resource, or the resources of a template."""

    WHAT = "a resource"
    WHY = "models and users decide by it whether to read the resource"

    uri: str = ""
    mime_type: str | None = None
    size: int | None = None
    audience: Role | Sequence[Role] = ()
    priority: float | None = None
    last_modified: str | None = None

    @cached_property
    def template(self) -> UriTemplate:
        """Returns the template of its URI."""
        try:
            return UriTemplate(self.uri)
        except ValueError as error:
            raise DefinitionError(f"{self.where}: the URI `{self.uri}`: {error}") from None

    @property
    def is_template(self) -> bool:
        """Returns whether its URI has variables."""
        return bool(self.template.names)

    def check(self) -> None:
        super().check()
        if not self.name:
            raise DefinitionError(f"{self.where}: its name is empty")
        check_returned(self.returned(MAY), self._may_be_read, f"{self.where}, result", MAY)
        self._check_variables()
        if self.is_template and (self.size, self.last_modified) != (None, None):
            raise DefinitionError(f"{self.where}: a URI with variables has no `size` and no `last_modified`")
        if self.priority is not None and not 0 <= self.priority <= 1:
            raise DefinitionError(f"{self.where}: priority is {self.priority!r}; it is from 0.0 to 1.0")
        try:
            named(self.audience)
            check_size(self.size)
        except ValueError as error:
            raise DefinitionError(f"{self.where}: {error}") from None

    def _check_variables(self) -> None:
        """Checks that each variable is a parameter, and that each parameter is a variable."""
        names = self.template.names
        for member in self.parameters.fields:
            where = f"{self.where}, parameter `{member.name}`"
            if member.name not in names:
                raise DefinitionError(f"{where}: the URI `{self.uri}` has no variable `{{{member.name}}}`")
            texts.check(member, where)
        known = {member.name for member in self.parameters.fields}
        for variable in names:
            if variable not in known:
                raise DefinitionError(f"{self.where}: it has no parameter for `{{{variable}}}`; add `{variable}: str`")

    def _may_be_read(self, hint: Any) -> bool:
        if hint is None or (isinstance(hint, type) and issubclass(hint, (str, bytes, Contents))):
            return True
        shape = Reader(returned=True).shape(hint, f"{self.where}, result")
        return isinstance(shape, (Record, MappingShape))

    def read(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Returns the values with which the function is called. Raises `Mismatch` if one is invalid."""
        return texts.read_all(self.parameters, given)

    def items(self, uri: str, value: Any) -> list[Item]:
        """Converts a returned value. Raises `TypeError` or `ValueError` if it cannot be sent."""
        if value is None:
            return []
        return [self._item(uri, one) for one in (value if isinstance(value, (list, tuple)) else [value])]

    def _item(self, uri: str, value: Any) -> Item:
        mime_type = self.mime_type
        if isinstance(value, Mapping) or (is_dataclass(value) and not isinstance(value, (type, Contents))):
            value, mime_type = encode(value), mime_type or "application/json"
        if isinstance(value, (str, bytes, bytearray)):
            value = Contents(value if isinstance(value, str) else bytes(value))
        if not isinstance(value, Contents):
            raise TypeError(f"it returned a `{type(value).__name__}`; {MAY}")
        body = value.contents
        return Item(
            uri if value.uri is None else value.uri,
            value.mime_type or mime_type,
            body if isinstance(body, str) else None,
            None if isinstance(body, str) else bytes(body),
            encode(value.meta) if value.meta else None,
        )


@dataclass(frozen=True)
class Item:
    """One item of a resource in the form in which it is passed to the host: `_meta` is JSON."""

    uri: str
    mime_type: str | None
    text: str | None
    data: bytes | None
    meta: str | None
