"""Values beyond JSON's own, in arguments and results, and functions that are asynchronous."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import enum
import pathlib
import types
import unittest
import uuid
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict

from toolbay import (
    Failed,
    Field,
    Image,
    InvalidArguments,
    Output,
    completion,
    prompt,
    resource,
    testing,
    tool,
)

from .support import TestCase, definition, parameter


class Point(NamedTuple):
    x: int
    y: float = 0.5


class Color(enum.Enum):
    RED = "red"


@dataclass
class Line:
    start: Point
    tags: list[str] = field(default_factory=list)
    made: datetime.date = datetime.date(2026, 1, 31)


class Options(TypedDict, total=False):
    price: decimal.Decimal


#: A type, how a value of it is written, and the value.
VALUES: list[tuple[Any, Any, Any]] = [
    (datetime.datetime, "2026-01-31T12:00:00+00:00", datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.timezone.utc)),
    (datetime.datetime, "2026-01-31T12:00:00.250000", datetime.datetime(2026, 1, 31, 12, 0, 0, 250_000)),
    (datetime.date, "2026-01-31", datetime.date(2026, 1, 31)),
    (datetime.time, "12:30:00", datetime.time(12, 30)),
    (datetime.timedelta, "P1DT3600S", datetime.timedelta(days=1, hours=1)),
    (datetime.timedelta, "-PT0.5S", datetime.timedelta(seconds=-0.5)),
    (datetime.timedelta, "PT0S", datetime.timedelta()),
    (uuid.UUID, "6fa459ea-ee8a-3ca4-894e-db77e160355e", uuid.UUID("6fa459ea-ee8a-3ca4-894e-db77e160355e")),
    (decimal.Decimal, "12.50", decimal.Decimal("12.50")),
    (decimal.Decimal, "1E+400", decimal.Decimal("1E+400")),
    (pathlib.Path, "/data/a b.txt", pathlib.Path("/data/a b.txt")),
    (bytes, "AP8=", b"\x00\xff"),
    (bytearray, "", bytearray()),
    (Optional[datetime.date], "2026-01-31", datetime.date(2026, 1, 31)),
    (list[uuid.UUID], ["6fa459ea-ee8a-3ca4-894e-db77e160355e"], [uuid.UUID("6fa459ea-ee8a-3ca4-894e-db77e160355e")]),
    (Point, [1, 2.5], Point(1, 2.5)),
]


def same(hint: Any) -> Any:
    """Returns a tool that returns its argument."""

    def returns(x: Any) -> Any:
        """Returns it."""
        SEEN.append(x)
        return x

    returns.__annotations__.update({"x": hint, "return": hint})
    return tool(returns)


SEEN: list[Any] = []


class Values(TestCase):
    def test_they_are_strings_with_a_format_in_both_directions(self) -> None:
        for hint, text, value in VALUES:
            with self.subTest(text, hint=hint):
                self.setUp()
                output = testing.call(same(hint), {"x": text})
                self.assertEqual((SEEN[-1], type(SEEN[-1])), (value, type(value)))
                self.assertEqual(output.structured, {"result": text})

    def test_what_is_none_names_the_member(self) -> None:
        @tool
        def takes(line: Line, options: Options | None = None) -> None:
            """Takes it."""

        for given, message in [
            ({"start": [1], "made": "yesterday"}, "`line.made`: expected a date, such as 2026-01-31, got \"yesterday\""),
            ({"start": []}, "`line.start`: expected 1 to 2 items, got 0"),
            ({"start": [1, 2, 3]}, "`line.start`: expected 1 to 2 items, got 3"),
            ({"start": [1, "2"]}, "`line.start[1]`: expected a number"),
        ]:
            with self.assertRaises(InvalidArguments) as caught:
                testing.call(takes, {"line": given})
            self.assertIn(message, str(caught.exception))
        with self.assertRaisesRegex(InvalidArguments, "`options.price`: expected a decimal number as a string"):
            testing.call(takes, {"line": {"start": [1]}, "options": {"price": "NaN"}})
        for hint, wrong in [
            (datetime.datetime, "12"),
            (datetime.timedelta, "P"),
            (datetime.timedelta, "P1DT"),
            (uuid.UUID, "1"),
            (decimal.Decimal, "1_0"),
            (bytes, "A"),
            (bytes, "A?=="),
            (pathlib.Path, "\0"),
            (datetime.date, 5),
            (bytes, None),
        ]:
            with self.subTest(wrong, hint=hint), self.assertRaisesRegex(InvalidArguments, "`x`: expected"):
                self.setUp()
                testing.call(same(hint), {"x": wrong})

    def test_schemas(self) -> None:
        @tool
        def takes(a: datetime.datetime, b: bytes, c: Point, d: Line, e: datetime.date | None = None) -> None:
            """Takes it."""

        self.assertEqual(parameter(takes, "a"), {"type": "string", "format": "date-time"})
        self.assertEqual(parameter(takes, "b"), {"type": "string", "format": "byte", "contentEncoding": "base64"})
        point = {
            "type": "array",
            "prefixItems": [{"title": "x", "type": "integer"}, {"title": "y", "type": "number", "default": 0.5}],
            "items": False,
            "minItems": 1,
            "maxItems": 2,
        }
        self.assertEqual(parameter(takes, "c"), point)
        made = {"type": "string", "format": "date", "default": "2026-01-31"}
        self.assertEqual(parameter(takes, "d")["properties"]["made"], made)
        self.assertEqual(parameter(takes, "e")["type"], ["string", "null"])

    def test_not_a_number_cannot_be_returned(self) -> None:
        @tool
        def price() -> decimal.Decimal:
            """Returns it."""
            return decimal.Decimal("NaN")

        with self.assertRaisesRegex(Failed, "NaN cannot be written as JSON"):
            testing.call(price)


class Results(TestCase):
    def test_values_that_are_no_objects_are_the_member_result(self) -> None:
        cases: list[tuple[Any, Any, Any, str]] = [
            (int, 7, 7, "7"),
            (float, 0.5, 0.5, "0.5"),
            (bool, True, True, "true"),
            (list[str], ["a", "b"], ["a", "b"], "a\nb"),
            (list[int], [], [], ""),
            (tuple[int, str], (1, "a"), [1, "a"], "1\na"),
            (set[int], {2, 1}, [1, 2], ""),
            (list[Point], [Point(1)], [[1, 0.5]], ""),
            (list[Line], [Line(Point(1))], [{"start": [1, 0.5], "tags": [], "made": "2026-01-31"}], ""),
            (list[dict[str, int]], [{"a": 1}], [{"a": 1}], ""),
            (Optional[int], None, None, ""),
            (int | str, "a", "a", "a"),
            (Literal[1, 2], 1, 1, "1"),
            (datetime.date, datetime.date(2026, 1, 31), "2026-01-31", "2026-01-31"),
            (bytes, b"a", "YQ==", ""),
        ]
        for hint, value, structured, text in cases:
            with self.subTest(hint):
                self.setUp()

                def returns() -> Any:
                    """Returns it."""
                    return value  # noqa: B023

                returns.__annotations__["return"] = hint
                tool(returns)
                output = testing.call(returns)
                self.assertEqual((output.structured, output.text()), ({"result": structured}, text))
                schema = definition(returns).output_schema or {}
                self.assertEqual((schema["type"], schema["required"]), ("object", ["result"]))

    def test_text_and_content_are_not(self) -> None:
        cases: list[tuple[Any, Any, Any]] = [
            (str, "a", None),
            (Color, Color.RED, None),
            (Optional[str], None, None),
            (list[Image], [Image(b"")], None),
            (list[Image | str], ["a"], None),
            (list[Any], [1], None),
            (list, [1], None),
            (Any, 5, None),
            (int, Output(["a"], {"result": 4}), {"result": 4}),
            (dict[str, int], {"a": 1}, {"a": 1}),
            (Line | None, None, None),
        ]
        for hint, value, structured in cases:
            with self.subTest(hint):
                self.setUp()

                def returns() -> Any:
                    """Returns it."""
                    return value  # noqa: B023

                returns.__annotations__["return"] = hint
                tool(returns)
                self.assertEqual(testing.call(returns).structured, structured)

    def test_a_picture_that_is_not_promised_is_an_error(self) -> None:
        @tool
        def returns() -> list[int]:
            """Returns it."""
            return [Image(b"")]

        with self.assertRaisesRegex(Failed, "which its return type does not say"):
            testing.call(returns)


class Fields(TestCase):
    def test_a_field_is_a_default_a_description_and_bounds(self) -> None:
        @tool
        def takes(
            a: Annotated[int, Field(description="How many.", ge=1, lt=10)],
            b: str = Field("x", min_length=1, pattern="^x"),
            c: list[int] = Field(default_factory=lambda: [1]),
            d: float = Field(..., multiple_of=0.5),
        ) -> str:
            """Takes it."""
            return f"{a} {b} {c} {d}"

        bounds = {"type": "integer", "description": "How many.", "minimum": 1, "exclusiveMaximum": 10}
        self.assertEqual(parameter(takes, "a"), bounds)
        self.assertEqual(parameter(takes, "b"), {"type": "string", "minLength": 1, "pattern": "^x", "default": "x"})
        self.assertEqual(parameter(takes, "c"), {"type": "array", "items": {"type": "integer"}, "default": [1]})
        self.assertEqual(definition(takes).input_schema["required"], ["a", "d"])
        self.assertEqual(testing.call(takes, {"a": 1, "d": 1}).text(), "1 x [1] 1.0")

    def test_one_that_makes_no_sense_is_refused(self) -> None:
        @tool
        def bounds(x: str = Field("a", ge=1)) -> None:
            """Takes it."""

        @dataclass
        class Wrong:
            x: int = Field(5)  # type: ignore[assignment]

        @tool
        def inner(x: Any) -> None:
            """Takes it."""

        inner.__annotations__["x"] = Wrong
        Wrong.__annotations__["x"] = int
        self.assert_refused(bounds, "`Field(minimum=1)` says nothing about `str`")
        self.assert_refused(inner, "write `Annotated[int, Field(…)]` here")

    def test_annotated_types(self) -> None:
        # As the package has them, which the tests do not need.
        module = types.ModuleType("annotated_types")
        made: dict[str, Any] = {}
        for name, members in {"Ge": ["ge"], "Len": ["min_length", "max_length"], "Other": []}.items():
            made[name] = type(name, (), {"__module__": module.__name__, "__init__": _set(members)})

        def takes(a: Any, b: Any, c: Any) -> None:
            """Takes it."""

        takes.__annotations__.update(
            a=Annotated[int, made["Ge"](1)], b=Annotated[str, made["Len"](1, None)], c=Annotated[str, made["Other"]()]
        )
        tool(takes)
        self.assertEqual(parameter(takes, "a"), {"type": "integer", "minimum": 1})
        self.assertEqual(parameter(takes, "b"), {"type": "string", "minLength": 1})
        self.assertEqual(parameter(takes, "c"), {"type": "string"})

    def test_a_model_of_pydantic_is_refused_in_words(self) -> None:
        base = type("BaseModel", (), {"__module__": "pydantic.main"})

        def takes(x: Any) -> None:
            """Takes it."""

        takes.__annotations__["x"] = type("Mine", (base,), {})
        tool(takes)
        self.assert_refused(takes, "`Mine` is a model of pydantic, whose core is compiled")


def _set(members: list[str]) -> Any:
    def initialize(self: Any, *values: Any) -> None:
        self.__dict__.update(zip(members, values, strict=True))

    return initialize


class Asynchronous(TestCase):
    def test_every_function_may_be(self) -> None:
        @tool
        async def double(x: int) -> int:
            """Doubles it."""
            await asyncio.sleep(0)
            return 2 * x

        @prompt
        async def review(code: Literal["a", "b"], day: datetime.date) -> str:
            """Reviews it."""
            await asyncio.sleep(0)
            return f"{code} {day:%d}"

        @resource("a://{x}")
        async def read(x: str) -> str:
            """Reads it."""
            await asyncio.sleep(0)
            return x

        @completion(read, "x")
        async def values(value: str) -> list[str]:
            await asyncio.sleep(0)
            return [value * 2]

        self.assertEqual(testing.call(double, {"x": 4}).structured, {"result": 8})
        self.assertEqual(testing.get(review, {"code": "a", "day": "2026-01-31"}).messages[0].content.text, "a 31")
        self.assertEqual(testing.read("a://b")[0].contents, "b")
        self.assertEqual(testing.complete(read, "x", "b").values, ["bb"])

    def test_a_test_may_be_as_well(self) -> None:
        @tool
        async def double(x: int) -> int:
            """Doubles it."""
            await asyncio.sleep(0)
            return 2 * x

        async def run() -> Any:
            return testing.call(double, {"x": 4}).structured

        self.assertEqual(asyncio.run(run()), {"result": 8})

    def test_an_exception_is_a_failure(self) -> None:
        @tool
        async def fails() -> None:
            """Fails."""
            await asyncio.sleep(0)
            raise KeyError("unit")

        with self.assertRaisesRegex(Failed, "KeyError: 'unit'"):
            testing.call(fails)


if __name__ == "__main__":
    unittest.main()
