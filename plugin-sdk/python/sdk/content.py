"""The results of tools: blocks of content, or an `Output` with all parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Role = Literal["user", "assistant"]


@dataclass(frozen=True)
class Content:
    """One block of a tool's result; one of the classes below."""

    #: Its audience, such as `"user"`; empty means everyone.
    audience: Role | Sequence[Role] = field(default=(), kw_only=True)
    #: Its importance, from 0.0 (optional) to 1.0 (required).
    priority: float | None = field(default=None, kw_only=True)
    #: The time when the content was last modified, in ISO 8601: `2026-01-12T15:00:58Z`.
    last_modified: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        named(self.audience)


@dataclass(frozen=True)
class Text(Content):
    """Text with annotations, which a plain `str` cannot have."""

    text: str


@dataclass(frozen=True)
class Image(Content):
    """An image: raw bytes, not base64."""

    data: bytes
    mime_type: str = "image/png"

    def __post_init__(self) -> None:
        super().__post_init__()
        need_bytes(self, self.data)


@dataclass(frozen=True)
class Audio(Content):
    """Audio: raw bytes, not base64."""

    data: bytes
    mime_type: str = "audio/wav"

    def __post_init__(self) -> None:
        super().__post_init__()
        need_bytes(self, self.data)


@dataclass(frozen=True)
class ResourceLink(Content):
    """A link to a resource that the client can fetch, with a short name such as the file's."""

    uri: str
    name: str
    #: A display name.
    title: str | None = field(default=None, kw_only=True)
    #: A description of the resource.
    description: str | None = field(default=None, kw_only=True)
    mime_type: str | None = field(default=None, kw_only=True)
    #: Its size in bytes.
    size: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size(self.size)


@dataclass(frozen=True)
class Resource(Content):
    """A resource whose content is part of the result, as text or as bytes."""

    uri: str
    contents: str | bytes
    mime_type: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.contents, str):
            need_bytes(self, self.contents)


@dataclass
class Output:
    """A result, for a tool whose return type is not sufficient."""

    #: The blocks, in the order in which they should be read.
    content: list[Content | str] = field(default_factory=list)
    #: Structured content: any value that can be written as JSON. `None` means that there is
    #none.
    structured: Any = None
    #: Members of the result's `_meta`; a key begins with your own domain, such as
    #: `example.com/`.
    meta: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """Returns the text of all blocks that have some, separated by line feeds."""
        texts = (text_of(block) for block in self.content)
        return "\n".join(text for text in texts if text is not None)


def audience_of(block: Content) -> tuple[Role, ...]:
    """Returns the audience of a block, without duplicates."""
    return named(block.audience)


def named(audience: Role | Sequence[Role]) -> tuple[Role, ...]:
    """Returns the named roles, without duplicates. Raises `ValueError` for an unknown name."""
    # A string is one name, not a list of letters.
    each: Sequence[Role] = [audience] if isinstance(audience, str) else audience
    if not set(each) <= set(get_args(Role)):
        raise ValueError(f'audience is {audience!r}; it is made of "user" and "assistant"')
    return tuple(dict.fromkeys(each))


def check_size(size: Any) -> None:
    """Raises `ValueError` if the size is neither a number of bytes nor `None`."""
    if size is not None and not (isinstance(size, int) and 0 <= size < 1 << 64):
        raise ValueError(f"size is {size!r}, which is no number of bytes")


def text_of(block: Content | str) -> str | None:
    """Returns the text of a block, if it has some."""
    if isinstance(block, str):
        return block
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Resource) and isinstance(block.contents, str):
        return block.contents
    return None


def need_bytes(owner: Any, data: Any) -> None:
    """Raises `TypeError` if the value is not bytes."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"{type(owner).__name__} takes bytes, not {type(data).__name__}")
