"""Prompts: their definitions, their results, and functions that cannot be prompts."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Optional

from tests.support import TestCase
from toolbay import (
    Failed,
    Format,
    Icon,
    Image,
    InvalidArguments,
    Message,
    Messages,
    Range,
    Text,
    Title,
    prompt,
    testing,
    tool,
)
from toolbay.prompts import Argument


class Tone(enum.Enum):
    FRIENDLY = "friendly"
    FORMAL = "formal"


@dataclass
class Point:
    x: int


class Told(TestCase):
    def test_everything_comes_from_the_function(self) -> None:
        @prompt
        def review(code: Annotated[str, "The code.", Title("Code")], language: Optional[str] = None) -> str:
            """Reviews code.

            Args:
                language: Its language.
            """
            return f"{language}: {code}"

        [told] = testing.prompts()
        self.assertEqual((told.name, told.title, told.description), ("review", None, "Reviews code."))
        self.assertEqual(
            told.arguments,
            [Argument("code", "Code", "The code.", True), Argument("language", None, "Its language.", False)],
        )
        self.assertEqual(review("a"), "None: a")

    def test_the_decorator_says_more(self) -> None:
        @prompt(
            name="a.b", title="A", description="Asks a.", icons=["data:,", Icon("data:b")], meta={"example.com/a": 1}
        )
        def one() -> str:
            return ""

        [told] = testing.prompts()
        self.assertEqual((told.name, told.title, told.description), ("a.b", "A", "Asks a."))
        self.assertEqual([icon.src for icon in told.icons], ["data:,", "data:b"])
        self.assertEqual((told.meta, told.arguments), ({"example.com/a": 1}, []))


class Got(TestCase):
    def got(self, value: Any) -> Messages:
        @prompt(name=f"p{id(value)}")
        def says() -> Any:
            """Says it."""
            return value

        return testing.get(says)

    def test_messages(self) -> None:
        ada, block = Message(Text("a")), Image(b"b")
        answer = Message(Text("c"), "assistant")
        cases: list[tuple[Any, list[Any]]] = [
            ("a", [ada]),
            (block, [Message(block)]),
            (Message("c", "assistant"), [answer]),
            (["a", block, Message("c", "assistant")], [ada, Message(block), answer]),
            (("a", "a"), [ada, ada]),
            (Messages(["a"]), [ada]),
        ]
        for value, expected in cases:
            with self.subTest(value):
                self.assertEqual(self.got(value).messages, expected)

    def test_description_and_meta(self) -> None:
        got = self.got(Messages(["a", Image(b""), Message("b", "assistant")], "Of a.", {"example.com/k": 7}))
        self.assertEqual((got.description, got.meta, got.text()), ("Of a.", {"example.com/k": 7}, "a\nb"))
        got = self.got("a")
        self.assertEqual((got.description, got.meta), (None, {}))

    def test_what_cannot_be_said(self) -> None:
        for value in [None, 7, {"a": 1}, Point(1), ["a", 7]]:
            with self.subTest(value), self.assertRaisesRegex(Failed, "TypeError: it returned a `.*`; return `str` for"):
                self.got(value)
        with self.assertRaisesRegex(ValueError, 'role is \'model\'; it is "user" or "assistant"'):
            Message("a", "model")  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "a message is a text or a block, not a `int`"):
            Message(7)  # type: ignore[arg-type]

    def test_arguments_come_as_text(self) -> None:
        @prompt
        def takes(
            text: str, number: float = 0.5, count: int = 1, sure: bool = False, tone: Tone = Tone.FORMAL,
            unit: Literal[1, 2] = 1, maybe: Optional[int] = None,
        ) -> str:  # fmt: skip
            """Takes it."""
            return repr((text, number, count, sure, tone.name, unit, maybe))

        given = {"text": "7", "number": "2", "count": "3", "sure": "true", "tone": "friendly", "unit": "2"}
        given["maybe"] = "4"
        self.assertEqual(testing.get("takes", given).text(), "('7', 2.0, 3, True, 'FRIENDLY', 2, 4)")
        self.assertEqual(testing.get(takes, {"text": ""}).text(), "('', 0.5, 1, False, 'FORMAL', 1, None)")
        cases = [
            ({}, "`text` is missing"),
            ({"text": "a", "count": "many"}, '`count`: expected an integer, got "many"'),
            ({"text": "a", "count": "1.5"}, "`count`: expected an integer, got 1.5"),
            ({"text": "a", "number": "NaN"}, '`number`: expected a number, got "NaN"'),
            ({"text": "a", "sure": "yes"}, '`sure`: expected a boolean, got "yes"'),
            ({"text": "a", "tone": "rude"}, '`tone`: expected "friendly" or "formal", got "rude"'),
            ({"text": "a", "texts": ""}, "there is no `texts`; there is `text`, `number`"),
        ]
        for arguments, expected in cases:
            with self.subTest(expected), self.assertRaises(InvalidArguments) as caught:
                testing.get(takes, arguments)
            self.assertIn(expected, str(caught.exception))

    def test_failures(self) -> None:
        @prompt
        def breaks(how: str) -> str:
            """Breaks."""
            if how == "badly":
                raise InvalidArguments("not so")
            return str({}["unit"])

        with self.assertRaisesRegex(Failed, "KeyError: 'unit'"):
            testing.get(breaks, {"how": "well"})
        with self.assertRaisesRegex(InvalidArguments, "not so"):
            testing.get(breaks, {"how": "badly"})
        with self.assertRaisesRegex(Failed, "there is no prompt `nothing`"):
            testing.get("nothing")


class Refused(TestCase):
    def refused(self, function: Callable[..., Any], message: str) -> None:
        self.setUp()
        prompt(function)
        with self.subTest(message):
            self.assert_wrong(message)

    def test_parameters(self) -> None:
        def refused(hint: Any, message: str) -> None:
            def takes(x: Any) -> str:
                """Takes it."""
                return ""

            takes.__annotations__["x"] = hint
            self.refused(takes, message)

        for hint in [list[str], dict[str, str], Point, Any, Optional[list[int]]]:
            refused(hint, "parameter `x`: clients give it as text; take a `str`, an `int`")
        refused(complex, "`complex` has no place in JSON")
        refused(Annotated[str, Format("date")], "nobody checks its `format`")
        refused(Annotated[int, Range(1, 2)], "parameter `x`: nobody checks its `minimum`; check it in the function")
        refused(Optional[Annotated[int, Range(1, 2)]], "nobody checks its `minimum`")

    def test_results(self) -> None:
        for hint in [int, None, dict[str, str], Point, list[int], Optional[str]]:

            def returns() -> Any:
                """Returns it."""

            returns.__annotations__["return"] = hint
            self.refused(returns, "; return `str` for a text of the user")
        for hint in [str, Text, Message, Messages, list[Message | str], tuple[Message, ...], Any, list]:

            def may() -> Any:
                """Returns it."""

            may.__annotations__["return"] = hint
            self.setUp()
            prompt(may)
            testing.prompts()

    def test_functions(self) -> None:
        def silent() -> str:
            return ""

        def result():  # type: ignore[no-untyped-def]
            """Returns it."""

        def later() -> Iterator[str]:
            """Takes its time."""
            yield ""

        def größe(größe: str) -> str:
            """Has a name."""
            return größe

        self.refused(silent, "`silent`: it has no docstring; users decide by it")
        self.refused(result, "say what it returns, such as `-> str`")
        self.refused(later, "a prompt is a function without `yield`")
        self.refused(größe, "a name has 1 to 128 of")
        größe.__name__ = "size"
        self.refused(größe, "an argument's name has 1 to 128 of")

    def test_the_name_can_be_the_first_argument(self) -> None:
        @prompt("look_closely")
        def review() -> str:
            """Reviews."""
            return "Review it."

        self.assertEqual([made.name for made in testing.prompts()], ["look_closely"])
        self.assertEqual(review(), "Review it.")

    def test_names_are_unique_among_prompts(self) -> None:
        def one() -> str:
            """Is one."""
            return ""

        tool(one)
        prompt(one)
        testing.prompts()
        prompt(name="one")(lambda: "")
        with self.assertRaisesRegex(TypeError, r'has the same name; give one of them `@prompt\(name="…"\)`'):
            testing.tools()
