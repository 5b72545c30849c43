"""What a tool returns: blocks of content, or an `Output` that has everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Audience = Literal["user", "assistant"]


@dataclass(frozen=True)
class Content:
    """One block of a tool's answer; one of the classes below."""

    #: Its audience, such as `"user"`; empty means everyone.
    audience: Audience | Sequence[Audience] = field(default=(), kw_only=True)
    #: How important it is, from 0.0 (optional) to 1.0 (required).
    priority: float | None = field(default=None, kw_only=True)
    #: When the content was last modified, in ISO 8601: `2026-01-12T15:00:58Z`.
    last_modified: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not set(audience_of(self)) <= set(get_args(Audience)):
            raise ValueError(f'audience is {self.audience!r}; it is made of "user" and "assistant"')


@dataclass(frozen=True)
class Text(Content):
    """Text, where a plain `str` does not say who it is for."""

    text: str


@dataclass(frozen=True)
class Image(Content):
    """An image: raw bytes, not base64."""

    data: bytes
    mime_type: str = "image/png"

    def __post_init__(self) -> None:
        super().__post_init__()
        _need_bytes(self, self.data)


@dataclass(frozen=True)
class Audio(Content):
    """Audio: raw bytes, not base64."""

    data: bytes
    mime_type: str = "audio/wav"

    def __post_init__(self) -> None:
        super().__post_init__()
        _need_bytes(self, self.data)


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
    #: How many bytes it has.
    size: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size is not None and not (isinstance(self.size, int) and 0 <= self.size < 1 << 64):
            raise ValueError(f"size is {self.size!r}, which is no number of bytes")


@dataclass(frozen=True)
class Resource(Content):
    """A resource that comes with the answer, as text or as bytes."""

    uri: str
    contents: str | bytes
    mime_type: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.contents, str):
            _need_bytes(self, self.contents)


@dataclass
class Output:
    """An answer, for a tool that needs more than its return type can say."""

    #: The blocks, in the order in which they should be read.
    content: list[Content | str] = field(default_factory=list)
    #: Structured content: whatever can be written as JSON. `None` is none.
    structured: Any = None
    #: Members of the result's `_meta`; a key begins with a domain of yours,
    #: such as `example.com/`.
    meta: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """The text of all blocks that have some, a line between one and the next."""
        texts = (_text_of(block) for block in self.content)
        return "\n".join(text for text in texts if text is not None)


def audience_of(block: Content) -> tuple[Audience, ...]:
    """Who a block is meant for, each once."""
    # One name is a name, not the letters of it.
    named = [block.audience] if isinstance(block.audience, str) else block.audience
    return tuple(dict.fromkeys(named))


def _text_of(block: Content | str) -> str | None:
    if isinstance(block, str):
        return block
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Resource) and isinstance(block.contents, str):
        return block.contents
    return None


def _need_bytes(block: Content, data: Any) -> None:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"{type(block).__name__} takes bytes, not {type(data).__name__}")
