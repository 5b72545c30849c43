"""Questions to the caller: forms, pages to visit, texts of the client's model, and the user's folders."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar, Union

from . import host
from .content import Audio, Content, Image, Text
from .errors import Failed
from .forms import Fields
from .host import Asked, Kind
from .prompts import Message
from .shapes import Mismatch

T = TypeVar("T")
F = TypeVar("F")


@dataclass(frozen=True)
class Accepted(Generic[F]):
    """The user filled in the form, or agreed to open the page."""

    #: The values of the form; `None` for a page.
    content: F


@dataclass(frozen=True)
class Declined:
    """The user refused."""


@dataclass(frozen=True)
class Cancelled:
    """The user closed the question without a decision."""


class Question(ABC, Generic[T]):
    """A question for `ask`; one of the classes below."""

    kind: ClassVar[Kind]
    required: bool

    @abstractmethod
    def params(self) -> dict[str, Any]:
        """Returns the parameters, as in MCP."""

    @abstractmethod
    def answer(self, result: Mapping[str, Any]) -> T:
        """Returns the answer for the client's result. Raises `Mismatch` if the result is invalid."""


@dataclass(frozen=True)
class Form(Question[Union[Accepted[F], Declined, Cancelled]]):
    """A form for the user to fill in.

    `fields` is a dataclass or a `TypedDict` of texts, numbers, booleans,
    `Literal`s or `Enum`s of texts, and lists of those. Or it is the JSON Schema
    of the form, as in MCP. Do not ask for secrets: the client shows what the
    user types.
    """

    kind = "form"

    #: The purpose.
    message: str
    fields: type[F] | Mapping[str, Any]
    #: If false, and the client does not support forms, `ask` raises `Unsupported` instead of ending the
    #call.
    required: bool = field(default=True, kw_only=True)
    _read: Fields = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Read the fields now, to report errors in them early.
        object.__setattr__(self, "_read", Fields(self.fields))

    def params(self) -> dict[str, Any]:
        return {"message": self.message, "requestedSchema": self._read.schema}

    def answer(self, result: Mapping[str, Any]) -> Accepted[F] | Declined | Cancelled:
        if (decided := _decided(result)) is not None:
            return decided
        return Accepted(self._read.read(result.get("content")))


@dataclass(frozen=True)
class Visit(Question[Union[Accepted[None], Declined, Cancelled]]):
    """A page for the user to visit, such as one to sign in or to pay. Its URL begins with `https://`.

    The answer states whether the user agreed to open it, not what happened on
    the page. Query the service behind it for that.
    """

    kind = "url"

    #: The purpose.
    message: str
    url: str
    #: If false, and the client does not open pages, `ask` raises `Unsupported` instead of ending the call.
    required: bool = field(default=True, kw_only=True)

    def params(self) -> dict[str, Any]:
        return {"message": self.message, "url": self.url}

    def answer(self, result: Mapping[str, Any]) -> Accepted[None] | Declined | Cancelled:
        return _decided(result) or Accepted(None)


@dataclass(frozen=True)
class Sampled:
    """The text that the client's model wrote."""

    #: Its text. Several blocks are joined by line feeds.
    text: str
    #: The model that wrote it.
    model: str | None
    #: The reason why it stopped, such as `endTurn` or `maxTokens`.
    stop_reason: str | None
    #: The whole result, as in MCP.
    result: Mapping[str, Any]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Sampling(Question[Sampled]):
    """A text for the client's model to write.

    `messages` is a text, an `Image` or an `Audio` of the user, a `Message`, a
    message as in MCP, or a list of those.
    """

    kind = "sampling"

    messages: str | Content | Message | Mapping[str, Any] | Sequence[str | Content | Message | Mapping[str, Any]]
    #: The maximum number of tokens to write.
    max_tokens: int = field(kw_only=True)
    #: The system prompt.
    system_prompt: str | None = field(default=None, kw_only=True)
    temperature: float | None = field(default=None, kw_only=True)
    stop_sequences: Sequence[str] = field(default=(), kw_only=True)
    #: Other parameters of `sampling/createMessage`, as in MCP: `{"modelPreferences": {…}}`.
    other: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    #: If false, and the client does not offer a model, `ask` raises `Unsupported` instead of ending the
    #call.
    required: bool = field(default=True, kw_only=True)

    def params(self) -> dict[str, Any]:
        messages = self.messages
        each = messages if isinstance(messages, Sequence) and not isinstance(messages, str) else [messages]
        params: dict[str, Any] = {"messages": [_message(one) for one in each], "maxTokens": self.max_tokens}
        if self.system_prompt is not None:
            params["systemPrompt"] = self.system_prompt
        if self.temperature is not None:
            params["temperature"] = self.temperature
        if self.stop_sequences:
            params["stopSequences"] = list(self.stop_sequences)
        return params | dict(self.other)

    def answer(self, result: Mapping[str, Any]) -> Sampled:
        content = result.get("content")
        blocks = content if isinstance(content, list) else [content]
        texts = [block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)]
        return Sampled("\n".join(texts), result.get("model"), result.get("stopReason"), result)


@dataclass(frozen=True)
class Root:
    """A folder that the user works in."""

    #: A URI that begins with `file://`.
    uri: str
    #: A name for people.
    name: str | None = None


@dataclass(frozen=True)
class Roots(Question[list[Root]]):
    """The folders that the user works in. The operator decides which folders a plugin can open."""

    kind = "roots"

    #: If false, and the client does not list them, `ask` raises `Unsupported` instead of ending the call.
    required: bool = field(default=True, kw_only=True)

    def params(self) -> dict[str, Any]:
        return {}

    def answer(self, result: Mapping[str, Any]) -> list[Root]:
        roots = result.get("roots")
        if not isinstance(roots, list) or not all(isinstance(one, dict) and "uri" in one for one in roots):
            raise Mismatch("roots", "expected a list of roots")
        return [Root(one["uri"], one.get("name")) for one in roots]


def ask(key: str, question: Question[T]) -> T:
    """Asks the caller a question. `key` identifies it within the call: 1 to 64 of `A-Z a-z 0-9 _ - .`.

    A plugin does not wait for the user: the call ends at this point, and starts
    again when the host has the answer. Then `ask` returns immediately. So the
    code before it runs again. The host ensures that HTTP requests other than
    `GET` and `HEAD`, and operations on a bucket, happen only once. Ask before
    you change files.

    Raises `Unsupported` if the question has `required=False` and the client
    cannot answer it. If the client cannot answer another question, the host
    reports that to the client, and the call ends.
    """
    return ask_all({key: question})[key]  # type: ignore[no-any-return]


def ask_all(questions: Mapping[str, Question[Any]]) -> dict[str, Any]:
    """Asks several questions at once. Takes the questions, and returns the answers, by key."""
    for key, question in questions.items():
        if not isinstance(question, Question):
            is_no_question = f"not a `{type(question).__name__}`"
            raise TypeError(f"the question `{key}` is a `Form`, `Visit`, `Sampling` or `Roots`, {is_no_question}")
    asked = [Asked(key, question.kind, question.params(), question.required) for key, question in questions.items()]
    results = host.current().ask(asked)
    return {
        key: _answer(key, question, result) for (key, question), result in zip(questions.items(), results, strict=True)
    }


def resource_updated(uri: str) -> None:
    """Notifies clients that subscribed to a resource of this plugin that its content changed."""
    host.current().resource_updated(uri)


def _answer(key: str, question: Question[T], result: Any) -> T:
    try:
        if not isinstance(result, Mapping):
            raise Mismatch("", "expected an object")
        return question.answer(result)
    except Mismatch as error:
        raise Failed(f"the answer to the question `{key}`: {error}") from error.__cause__


def _decided(result: Mapping[str, Any]) -> Declined | Cancelled | None:
    """Returns the user's reaction; `None` if the user accepted."""
    match result.get("action"):
        case "accept":
            return None
        case "decline":
            return Declined()
        case "cancel":
            return Cancelled()
        case other:
            raise Mismatch("action", f'expected "accept", "decline" or "cancel", got {other!r}')


def _message(message: Any) -> dict[str, Any]:
    """Returns a message as in MCP. Its author is the user, unless it names another."""
    if isinstance(message, Mapping):
        return dict(message)
    if not isinstance(message, Message):
        message = Message(message)
    return {"role": message.role, "content": _block(message.content)}


def _block(block: Content | str) -> dict[str, Any]:
    """Returns a block as in MCP."""
    match block:
        case str():
            return {"type": "text", "text": block}
        case Text():
            return {"type": "text", "text": block.text}
        case Image() | Audio():
            data = base64.b64encode(block.data).decode()
            kind = "image" if isinstance(block, Image) else "audio"
            return {"type": kind, "data": data, "mimeType": block.mime_type}
    raise TypeError(f"a model is asked by texts, `Image` and `Audio`, not by a `{type(block).__name__}`")
