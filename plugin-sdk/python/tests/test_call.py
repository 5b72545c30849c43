"""Calls: from JSON to content, or to a failure."""

import enum
from dataclasses import dataclass
from typing import Any, Optional

from tests.support import TestCase
from toolbay import Failed, Image, InvalidArguments, Output, Resource, ResourceLink, Text, testing, tool
from toolbay.errors import describe


@dataclass
class Point:
    x: int
    y: Optional[int] = None


class Unit(enum.Enum):
    METRIC = "metric"


class Results(TestCase):
    def answer(self, value: Any) -> Output:
        @tool(name=f"returns{id(value)}")
        def returns() -> Any:
            """Returns it."""
            return value

        return testing.call(returns)

    def test_blocks(self) -> None:
        cases: list[tuple[Any, list[Any]]] = [
            (None, []),
            ("a", [Text("a")]),
            ("", [Text("")]),
            (7, [Text("7")]),
            (2.5, [Text("2.5")]),
            (True, [Text("true")]),
            (Unit.METRIC, [Text("metric")]),
            (Image(b"a"), [Image(b"a")]),
            (["a", Image(b"b")], [Text("a"), Image(b"b")]),
            (Output(["a", Text("b", audience="user")]), [Text("a"), Text("b", audience="user")]),
        ]
        for value, expected in cases:
            with self.subTest(value):
                self.assertEqual(self.answer(value).content, expected)

    def test_structured_content(self) -> None:
        cases: list[tuple[Any, Any]] = [
            (Point(1), {"x": 1, "y": None}),
            ({"a": Point(1, 2), "b": {3, 1}, "c": (Unit.METRIC,)}, {
                "a": {"x": 1, "y": 2}, "b": [1, 3], "c": ["metric"]}),
            ((Image(b"a"), Point(1)), {"x": 1, "y": None}),
            (Output(structured=[1]), [1]),
        ]  # fmt: skip
        for value, expected in cases:
            with self.subTest(value):
                self.assertEqual(self.answer(value).structured, expected)
        self.assertEqual(self.answer((Image(b"a"), Point(1))).content, [Image(b"a")])

    def test_text_and_meta(self) -> None:
        output = self.answer(Output(["a", Image(b""), Resource("note:1", "b")], meta={"example.com/k": 7}))
        self.assertEqual(output.text(), "a\nb")
        self.assertEqual(output.meta, {"example.com/k": 7})

    def test_what_cannot_be_sent(self) -> None:
        loop: list[Any] = []
        loop.append(loop)
        cases = [
            (object(), "TypeError: it returned a `object`; return `str` for text"),
            ({"a": object()}, "TypeError: a `object` cannot be written as JSON"),
            ({"a": float("nan")}, "ValueError: Out of range float values are not JSON compliant"),
            ({"a": loop}, "ValueError: Circular reference detected"),
            ((Point(1), Point(2)), "TypeError: it returned structured content twice"),
        ]
        for value, expected in cases:
            with self.assertRaises(Failed) as caught:
                self.answer(value)
            self.assertIn(expected, str(caught.exception))

    def test_what_no_block_can_be(self) -> None:
        with self.assertRaisesRegex(ValueError, 'audience is \'model\'; it is made of "user" and "assistant"'):
            Text("a", audience="model")  # type: ignore[arg-type]
        with self.assertRaisesRegex(ValueError, "size is -1, which is no number of bytes"):
            ResourceLink("https://example.com/a", "a", size=-1)

    def test_a_picture_is_bytes(self) -> None:
        with self.assertRaisesRegex(TypeError, "Image takes bytes, not str"):
            Image("iVBO")  # type: ignore[arg-type]


class Failures(TestCase):
    def test_what_the_model_reads(self) -> None:
        class Odd(Exception):
            pass

        def wrapped() -> None:
            try:
                {}["unit"]
            except KeyError as error:
                raise ValueError("no such place") from error

        def raises(error: BaseException) -> Any:
            raise error

        cases: list[tuple[Any, type[Exception], str]] = [
            (lambda: raises(ValueError("kaboom: 42")), Failed, "ValueError: kaboom: 42"),
            (lambda: raises(Failed("no such city")), Failed, "no such city"),
            (lambda: raises(InvalidArguments("not today")), InvalidArguments, "not today"),
            (wrapped, Failed, "ValueError: no such place; caused by KeyError: 'unit'"),
            (lambda: {}["unit"], Failed, "KeyError: 'unit'"),
            (lambda: 1 / 0, Failed, "ZeroDivisionError: division by zero"),
            (lambda: raises(AssertionError()), Failed, "AssertionError"),
            (lambda: raises(Odd("very")), Failed, "Odd: very"),
        ]
        for number, (function, kind, expected) in enumerate(cases):

            @tool(name=f"fails{number}")
            def fails() -> Any:
                """Fails."""
                return function()

            with self.subTest(expected), self.assertRaises(kind) as caught:
                testing.call(fails)
            self.assertTrue(str(caught.exception).endswith(expected), str(caught.exception))

    def test_a_cause_that_goes_round_ends(self) -> None:
        one, two = ValueError("one"), ValueError("two")
        one.__cause__, two.__cause__ = two, one
        self.assertEqual(describe(one), "ValueError: one; caused by ValueError: two")

    def test_arguments(self) -> None:
        @tool
        def takes(point: Point, unit: Unit = Unit.METRIC) -> str:
            """Takes it."""
            return f"{point} {unit}"

        self.assertEqual(testing.call("takes", {"point": {"x": 1}}).text(), "Point(x=1, y=None) Unit.METRIC")
        cases: list[tuple[dict[str, Any], str]] = [
            ({}, "`point` is missing"),
            ({"point": {"x": "1"}}, '`point.x`: expected an integer, got "1"'),
            ({"point": {"x": 1}, "unit": "si"}, '`unit`: expected "metric", got "si"'),
            ({"point": {"x": 1}, "z": 1}, "there is no `z`; there is `point`, `unit`"),
        ]
        for arguments, expected in cases:
            with self.subTest(expected), self.assertRaises(InvalidArguments) as caught:
                testing.call(takes, arguments)
            self.assertEqual(str(caught.exception), expected)

    def test_a_tool_that_is_not_there(self) -> None:
        with self.assertRaisesRegex(Failed, "there is no tool `nothing`"):
            testing.call("nothing")
