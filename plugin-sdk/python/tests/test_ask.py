"""Questions to the caller: their parameters, their answers, and forms that cannot be shown."""

import enum
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Optional, TypedDict

from tests.support import TestCase
from toolbay import (
    Accepted,
    AskError,
    Audio,
    Cancelled,
    Declined,
    Failed,
    Form,
    Format,
    Image,
    Length,
    Message,
    Pattern,
    Range,
    Resource,
    Root,
    Roots,
    Sampling,
    Text,
    Title,
    Unsupported,
    Visit,
    ask,
    ask_all,
    testing,
    tool,
)
from toolbay.errors import DefinitionError
from toolbay.testing import Asked


class Tone(enum.Enum):
    FRIENDLY = "friendly"
    FORMAL = "formal"


@dataclass
class Name:
    name: str


@dataclass
class Everything:
    """Is not shown."""

    name: Annotated[str, "Your name.", Length(1, 20), Title("Name")]
    nick: Optional[str]
    mail: Annotated[str, Format("email")] = "a@example.com"
    age: Optional[Annotated[int, Range(0, 150)]] = None
    score: float = 1.5
    sure: bool = True
    tone: Tone = Tone.FORMAL
    unit: Optional[Literal["m", "ft"]] = None
    colours: list[Literal["red", "blue"]] = field(default_factory=lambda: ["red"])
    tones: Annotated[set[Tone], Length(0, 2)] = field(default_factory=set)


class Partial(TypedDict, total=False):
    x: int


SCHEMA = {"type": "object", "properties": {"size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}]}}}


class Forms(TestCase):
    def test_a_form_has_only_what_clients_can_show(self) -> None:
        self.assertEqual(
            Form("Who?", Everything).params(),
            {
                "message": "Who?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {
                        "name": {
                            "type": "string",
                            "description": "Your name.",
                            "minLength": 1,
                            "maxLength": 20,
                            "title": "Name",
                        },
                        "nick": {"type": "string"},
                        "mail": {"type": "string", "format": "email", "default": "a@example.com"},
                        "age": {"type": "integer", "minimum": 0, "maximum": 150},
                        "score": {"type": "number", "default": 1.5},
                        "sure": {"type": "boolean", "default": True},
                        "tone": {"type": "string", "enum": ["friendly", "formal"], "default": "formal"},
                        "unit": {"type": "string", "enum": ["m", "ft"]},
                        "colours": {
                            "type": "array",
                            "items": {"type": "string", "enum": ["red", "blue"]},
                            "default": ["red"],
                        },
                        "tones": {
                            "type": "array",
                            "items": {"type": "string", "enum": ["friendly", "formal"]},
                            "minItems": 0,
                            "maxItems": 2,
                            "default": [],
                        },
                    },
                    "required": ["name"],
                },
            },
        )
        self.assertEqual(
            Form("x", Partial).params()["requestedSchema"], {"type": "object", "properties": {"x": {"type": "integer"}}}
        )
        self.assertEqual(Form("x", SCHEMA).params()["requestedSchema"], SCHEMA)

    def test_a_form_is_accepted_declined_or_cancelled(self) -> None:
        def answer(answer: Any, fields: Any = Name) -> Any:
            with testing.recorder(answers={"a": answer}):
                return ask("a", Form("Who?", fields))

        ada = Accepted(Name("Ada"))
        self.assertEqual(answer({"action": "accept", "content": {"name": "Ada", "more": 1}}), ada)
        self.assertEqual(answer(Accepted({"name": "Ada"})), ada)
        self.assertEqual(answer(ada), ada)
        self.assertEqual(answer({"action": "decline"}), Declined())
        self.assertEqual(answer(Cancelled()), Cancelled())
        self.assertEqual(answer(Accepted({"x": 2.0}), Partial), Accepted({"x": 2}))
        self.assertEqual(answer(Accepted({}), Partial), Accepted({}))
        self.assertEqual(answer(Accepted({"size": "s"}), SCHEMA), Accepted({"size": "s"}))
        filled = answer(Accepted({"name": "Ada", "tone": "friendly", "tones": ["formal"]}), Everything)
        self.assertEqual(filled, Accepted(Everything("Ada", None, tone=Tone.FRIENDLY, tones={Tone.FORMAL})))

    def test_an_answer_that_does_not_fit(self) -> None:
        cases: list[tuple[Any, str]] = [
            (Accepted({}), "the answer to the question `a`: `name` is missing"),
            (Accepted({"name": 1}), "the answer to the question `a`: `name`: expected a string, got 1"),
            (Accepted(None), "the answer to the question `a`: `content`: expected an object"),
            ({"action": "wait"}, 'expected "accept", "decline" or "cancel", got \'wait\''),
            (7, "the answer to the question `a`: expected an object"),
        ]
        for answer, message in cases:
            with self.subTest(message), self.assertRaises(Failed) as caught:
                with testing.recorder(answers={"a": answer}):
                    ask("a", Form("Who?", Name))
            self.assertIn(message, str(caught.exception))

    def test_forms_that_cannot_be_shown(self) -> None:
        def refused(hint: Any, message: str) -> None:
            fields = dataclass(type("Fields", (), {"__annotations__": {"x": hint}}))
            with self.subTest(message), self.assertRaises(DefinitionError) as caught:
                Form("Who?", fields)
            self.assertIn(message, str(caught.exception))
            self.assertIn("form `Fields`", str(caught.exception))

        refused(Name, "`x`: clients can show a `str`, an `int`, a `float`, a `bool`, a `Literal` or an `Enum`")
        refused(Optional[Name], "`x`: clients can show")
        refused(dict[str, str], "`x`: clients can show")
        refused(int | str, "`x`: clients can show")
        refused(Any, "`x`: clients can show")
        refused(list[str], "`x`: clients can show a list of a `Literal` or an `Enum` of texts, no other")
        refused(list[Literal[1, 2]], "`x`: clients can show a list of a `Literal` or an `Enum` of texts, no other")
        refused(Literal[1, 2], "`x`: clients cannot show `enum`")
        refused(Annotated[str, Pattern("a")], "`x`: clients cannot show `pattern`")
        formats = "`x`: its format is one of `date`, `date-time`, `email`, `uri`, not `regex`"
        refused(Annotated[str, Format("regex")], formats)
        refused(complex, "`complex` has no place in JSON")
        refused(bytes, "`x`: clients cannot show `contentEncoding`")
        with self.assertRaisesRegex(DefinitionError, "form `str`: the fields of a form are a dataclass"):
            Form("Who?", str)
        with self.assertRaisesRegex(DefinitionError, "it has no fields"):
            Form("Who?", dataclass(type("Empty", (), {})))


class Others(TestCase):
    def test_a_page(self) -> None:
        visit = Visit("Sign in.", "https://example.com")
        self.assertEqual(visit.params(), {"message": "Sign in.", "url": "https://example.com"})
        for answer in [Accepted(None), Declined(), Cancelled()]:
            with testing.recorder(answers={"a": answer}):
                self.assertEqual(ask("a", visit), answer)

    def test_a_text_of_the_model(self) -> None:
        said = ["a", Message(Text("b"), "assistant"), Image(b"c"), Audio(b"d"), {"role": "user", "content": []}]
        sampling = Sampling(
            said, max_tokens=5, system_prompt="s", temperature=0.5, stop_sequences=["x"], other={"toolChoice": {}}
        )
        self.assertEqual(
            sampling.params(),
            {
                "messages": [
                    {"role": "user", "content": {"type": "text", "text": "a"}},
                    {"role": "assistant", "content": {"type": "text", "text": "b"}},
                    {"role": "user", "content": {"type": "image", "data": "Yw==", "mimeType": "image/png"}},
                    {"role": "user", "content": {"type": "audio", "data": "ZA==", "mimeType": "audio/wav"}},
                    {"role": "user", "content": []},
                ],
                "maxTokens": 5,
                "systemPrompt": "s",
                "temperature": 0.5,
                "stopSequences": ["x"],
                "toolChoice": {},
            },
        )
        one = {"messages": [{"role": "user", "content": {"type": "text", "text": "a"}}], "maxTokens": 5}
        self.assertEqual(Sampling("a", max_tokens=5).params(), one)
        with self.assertRaisesRegex(TypeError, "a model is asked by texts, `Image` and `Audio`, not by a `Resource`"):
            Sampling(Resource("a:b", "c"), max_tokens=5).params()

    def test_what_the_model_wrote(self) -> None:
        blocks = [{"type": "text", "text": "x"}, {"type": "image", "data": ""}, {"type": "text", "text": "y"}]
        result = {"role": "assistant", "model": "m", "stopReason": "endTurn", "content": blocks}
        with testing.recorder(answers={"a": result, "b": "drip"}):
            written = ask("a", Sampling("Write.", max_tokens=5))
            self.assertEqual(ask("b", Sampling("Write.", max_tokens=5)).text, "drip")
        self.assertEqual((written.text, written.model, written.stop_reason), ("x\ny", "m", "endTurn"))
        self.assertEqual((str(written), written.result), ("x\ny", result))

    def test_folders(self) -> None:
        self.assertEqual(Roots().params(), {})
        with testing.recorder(answers={"a": ["file:///w", Root("file:///v", "v")], "b": {"roots": 7}}):
            self.assertEqual(ask("a", Roots()), [Root("file:///w"), Root("file:///v", "v")])
            with self.assertRaisesRegex(Failed, "the answer to the question `b`: `roots`: expected a list of roots"):
                ask("b", Roots())


class Asking(TestCase):
    def test_several_at_once(self) -> None:
        questions = {"a": Visit("Sign in.", "https://example.com"), "b": Roots(required=False)}
        with testing.recorder(answers={"b": [], "a": Accepted(None)}) as host:
            self.assertEqual(ask_all(questions), {"a": Accepted(None), "b": []})
        params = {"message": "Sign in.", "url": "https://example.com"}
        self.assertEqual(host.asked, [Asked("a", "url", params, True), Asked("b", "roots", {}, False)])

    def test_a_client_that_cannot_answer(self) -> None:
        with testing.recorder(answers={"a": Unsupported}):
            with self.assertRaisesRegex(Unsupported, "the client does not support the question `a`"):
                ask("a", Roots(required=False))
            with self.assertRaises(AskError) as caught:
                ask("a", Roots())
        self.assertNotIsInstance(caught.exception, Unsupported)

    def test_an_error_that_nobody_catches_is_a_failure(self) -> None:
        @tool
        def asks() -> str:
            """Asks."""
            return str(ask("a", Roots(required=False)))

        with testing.recorder(answers={"a": Unsupported}):
            with self.assertRaisesRegex(Failed, "^the client does not support"):
                testing.call(asks)

    def test_a_question_without_an_answer_fails_in_a_test(self) -> None:
        with testing.recorder(), self.assertRaisesRegex(AskError, "the test has no answer to the question `a`"):
            ask("a", Roots())

    def test_without_a_host_nobody_answers(self) -> None:
        with self.assertRaisesRegex(Unsupported, "there is no client"):
            ask("a", Roots(required=False))
        with self.assertRaisesRegex(AskError, r"there is no client: in a test, `testing.recorder\(answers="):
            ask("a", Roots())

    def test_what_is_no_question(self) -> None:
        with self.assertRaisesRegex(TypeError, "the question `a` is a `Form`, .*, not a `str`"):
            ask("a", "What?")  # type: ignore[arg-type]
