"""Prompts: texts that a user chooses, which become the beginning of a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args

from . import texts
from .block import Block, known
from .content import Content, Role, Text, text_of
from .definition import NAME, Offer, check_name, check_returned
from .encode import encode
from .errors import DefinitionError
from .shapes import Choice, Definitions, Described, OneOf, Shape

#: The types that a prompt may return, for messages.
MAY = (
    "return `str` for a text of the user, `Image`, `Audio`, `Resource`, `ResourceLink` or `Text` for another block, a "
    "`Message`, a `list` or a `tuple` of those, or `Messages`"
)


@dataclass(frozen=True)
class Message:
    """One message of a prompt, or of `Sampling`: its content and its author."""

    content: Content | str
    #: `"user"` or `"assistant"`.
    role: Role = "user"

    def __post_init__(self) -> None:
        if not isinstance(self.content, (str, Content)):
            raise TypeError(f"a message is a text or a block, not a `{type(self.content).__name__}`")
        if self.role not in get_args(Role):
            raise ValueError(f'role is {self.role!r}; it is "user" or "assistant"')


@dataclass
class Messages:
    """A prompt with its arguments filled in, with further properties."""

    #: The messages, in order. The author of a block that is not a `Message` is the user.
    messages: list[Message | Content | str] = field(default_factory=list)
    #: The purpose of the prompt, if the arguments make it more specific than the definition.
    description: str | None = None
    #: Members of the result's `_meta`; a key begins with your own domain, such as
    #: `example.com/`.
    meta: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """Returns the text of all messages that have some, separated by line feeds."""
        said = (text_of(message.content if isinstance(message, Message) else message) for message in self.messages)
        return "\n".join(text for text in said if text is not None)


@dataclass(frozen=True)
class Argument:
    """An argument, as clients receive it."""

    name: str
    title: str | None
    description: str | None
    required: bool


@dataclass
class Prompt(Offer):
    """A prompt."""

    WHAT = "a prompt"
    WHY = "users decide by it whether to choose the prompt"

    @cached_property
    def arguments(self) -> list[Argument]:
        """Returns the arguments, in order."""
        found = []
        for member in self.parameters.fields:
            where = f"{self.where}, parameter `{member.name}`"
            if not NAME.fullmatch(member.name):
                raise DefinitionError(f"{where}: an argument's name has 1 to 128 of `A-Z a-z 0-9 _ - .`")
            texts.check(member, where)
            schema = member.schema(Definitions())
            found.append(Argument(member.name, schema.get("title"), schema.get("description"), member.required))
        return found

    def choices(self, argument: str) -> list[str] | None:
        """Returns the values of an argument, if it is a choice."""
        return next((_choices(one.shape) for one in self.parameters.fields if one.name == argument), None)

    def check(self) -> None:
        check_name(self.name, self.where)
        super().check()
        check_returned(self.returned(MAY), _may_be_said, f"{self.where}, result", MAY)
        _ = self.arguments

    def read(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Returns the values with which the function is called. Raises `Mismatch` if one is invalid."""
        return texts.read_all(self.parameters, given)


@dataclass(frozen=True)
class Filled:
    """A prompt in the form in which it is passed to the host: `_meta` is JSON."""

    description: str | None
    messages: list[tuple[Role, Block]]
    meta: str | None


def filled(value: Any) -> Filled:
    """Converts a returned value. Raises `TypeError` or `ValueError` if it cannot be sent."""
    if not isinstance(value, Messages):
        value = Messages(list(value) if isinstance(value, (list, tuple)) else [value])
    return Filled(
        value.description,
        [_said(message) for message in value.messages],
        encode(value.meta) if value.meta else None,
    )


def _said(message: Any) -> tuple[Role, Block]:
    if not isinstance(message, (str, Content, Message)):
        raise TypeError(f"it returned a `{type(message).__name__}`; {MAY}")
    if not isinstance(message, Message):
        message = Message(message)
    return message.role, Text(message.content) if isinstance(message.content, str) else known(message.content)


def _may_be_said(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, (str, Content, Message, Messages))


def _choices(shape: Shape) -> list[str] | None:
    if isinstance(shape, Described):
        return _choices(shape.shape)
    if isinstance(shape, OneOf):
        return next(filter(None, map(_choices, shape.shapes)), None)
    if isinstance(shape, Choice):
        return [value if isinstance(value, str) else encode(value) for value, _ in shape.choices]
    return None
