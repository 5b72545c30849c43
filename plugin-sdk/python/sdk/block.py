"""The kinds of content blocks, and the form of each in the contract.

A new kind is a subclass of `Content`. Add it to `Block`, and a `case` for it to
`fields`: a type checker and `tests/test_block.py` both fail without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn, Union, cast, get_args

from .content import Audio, Content, Image, Resource, ResourceLink, Text

Block = Union[Text, Image, Audio, ResourceLink, Resource]


@dataclass(frozen=True)
class Fields:
    """The contract's record `content`, without the fields that every kind may have."""

    kind: str
    text: str | None = None
    data: bytes | None = None
    mime_type: str | None = None
    uri: str | None = None
    name: str | None = None
    title: str | None = None
    description: str | None = None
    size: int | None = None


def known(block: Content) -> Block:
    """Returns the block, if its kind is known. Raises `TypeError` if it is not."""
    if isinstance(block, get_args(Block)):
        return cast(Block, block)
    raise TypeError(f"a block of content is a `Text`, `Image` or the like, not a `{type(block).__name__}`")


def fields(block: Block) -> Fields:
    """Returns the fields that a block has because of its kind."""
    match block:
        case Text():
            return Fields("text", text=block.text)
        case Image():
            return Fields("image", data=bytes(block.data), mime_type=block.mime_type)
        case Audio():
            return Fields("audio", data=bytes(block.data), mime_type=block.mime_type)
        case ResourceLink():
            return Fields(
                "resource-link",
                uri=block.uri,
                name=block.name,
                title=block.title,
                description=block.description,
                mime_type=block.mime_type,
                size=block.size,
            )
        case Resource():
            text, data = (block.contents, None) if isinstance(block.contents, str) else (None, bytes(block.contents))
            return Fields("embedded-resource", uri=block.uri, text=text, data=data, mime_type=block.mime_type)
    _assert_never(block)


def _assert_never(block: NoReturn) -> NoReturn:
    """Like `typing.assert_never`, which Python has since 3.11."""
    raise AssertionError(f"`fields` has no case for a `{type(block).__name__}`")
