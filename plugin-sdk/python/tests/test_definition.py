"""The definitions of tools, and functions that cannot be tools."""

import datetime
import enum
import json
import sys
import unittest
from dataclasses import InitVar, dataclass
from collections.abc import AsyncIterator
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar

from tests.support import TestCase, definition, parameter
from toolbay import Icon, Image, Output, Pattern, Range, Text, testing, tool
from toolbay.definition import Annotations
from toolbay.errors import DefinitionError

T = TypeVar("T")


@dataclass
class Count:
    words: int


@dataclass
class Box(Generic[T]):
    content: T


@dataclass
class Secret:
    seed: InitVar[int]


class Numbered(enum.Enum):
    ONE = object()


class Plain(enum.Enum):
    A = "a"


class Told(TestCase):
    def test_everything_comes_from_the_function(self) -> None:
        @tool
        def add(a: int, b: Annotated[int, "The other."] = 1) -> int:
            """Adds two numbers.

            Args:
                a: The one.
            """
            return a + b

        told = definition(add)
        self.assertEqual((told.name, told.description), ("add", "Adds two numbers."))
        self.assertEqual(
            told.input_schema,
            {
                "type": "object",
                "properties": {
                    "a": {"type": "integer", "description": "The one."},
                    "b": {"type": "integer", "description": "The other.", "default": 1},
                },
                "required": ["a"],
                "additionalProperties": False,
            },
        )
        self.assertEqual(told.output_schema and told.output_schema["properties"], {"result": {"type": "integer"}})
        self.assertEqual(told.annotations, Annotations())
        self.assertEqual(add(1, 2), 3)

    def test_the_decorator_says_more(self) -> None:
        @tool(
            name="notes.delete",
            title="Delete a note",
            description="Deletes a note.",
            destructive=True,
            open_world=False,
            icons=["https://example.com/a.png", Icon("data:,", theme="dark")],
            meta={"example.com/team": "notes"},
        )
        def delete() -> None:
            pass

        told = definition(delete)
        self.assertEqual(
            (told.name, told.title, told.description), ("notes.delete", "Delete a note", "Deletes a note.")
        )
        self.assertEqual(told.annotations, Annotations(destructive=True, open_world=False))
        self.assertEqual([icon.src for icon in told.icons], ["https://example.com/a.png", "data:,"])
        self.assertEqual(told.meta, {"example.com/team": "notes"})
        self.assertEqual(told.input_schema, {"type": "object", "additionalProperties": False})

    def test_the_name_can_be_the_first_argument(self) -> None:
        @tool("find_items")
        def find() -> str:
            """Finds items."""
            return "none"

        self.assertEqual([made.name for made in testing.tools()], ["find_items"])
        self.assertEqual(find(), "none")

    def test_hints_may_name_what_comes_later(self) -> None:
        @tool
        def later(x: "Later") -> None:
            """Takes it."""

        self.assertEqual(parameter(later)["properties"], {"a": {"type": "integer"}})

    def test_what_is_nearer_describes_it(self) -> None:
        @tool
        def described(a: Described, b: Annotated[Described, "Of the hint."], c: Described) -> None:
            """Takes it.

            :param b: Not this.
            :param c: Of the
                parameter.
            """

        told = [parameter(described, name)["description"] for name in "abc"]
        self.assertEqual(told, ["Of the class.", "Of the hint.", "Of the parameter."])
        self.assertEqual(definition(described).description, "Takes it.")

    def test_a_default_that_json_cannot_say_is_not_said(self) -> None:
        @tool
        def lost(x: int = object()) -> None:  # type: ignore[assignment]
            """Takes it."""

        self.assertEqual(parameter(lost), {"type": "integer"})
        self.assertNotIn("required", definition(lost).input_schema)

    def test_structured_results_are_promised(self) -> None:
        def told(hint: Any) -> Any:
            def returns() -> Any:
                """Returns it."""

            returns.__annotations__["return"] = hint
            tool(returns)
            return definition(returns).output_schema

        count = {
            "type": "object",
            "properties": {"words": {"type": "integer"}},
            "required": ["words"],
            "additionalProperties": False,
        }
        self.assertEqual(told(Count), count)
        self.assertEqual(told(tuple[Image, Count]), count)
        self.assertEqual(told(dict[str, int]), {"type": "object", "additionalProperties": {"type": "integer"}})
        self.assertEqual(told(Count | dict[str, str])["anyOf"][0], count)
        self.assertEqual(told(Count | dict[str, str])["type"], "object")
        nothing = [None, Any, str, Output, Image, list, list[Text], tuple[Image, str], tuple[Text, ...]]
        for hint in [*nothing, Optional[Count], Count | str, Literal["a"], Plain, Annotated[str, "A text."]]:
            with self.subTest(hint):
                self.assertIsNone(told(hint))

    def test_it_is_the_same_every_time(self) -> None:
        @tool
        def b(x: set[str] = {"c", "a", "b"}) -> None:
            """Is b."""

        @tool
        def a() -> None:
            """Is a."""

        self.assertEqual([one.name for one in testing.tools()], ["a", "b"])
        self.assertEqual(parameter(b)["default"], ["a", "b", "c"])
        json.dumps(definition(b).input_schema)


@dataclass
class Later:
    a: int


@dataclass
class Described:
    """Of the class."""

    a: int


class Refused(TestCase):
    def refused(self, hint: Any, message: str) -> None:
        def takes(x: Any) -> None:
            """Takes it."""

        takes.__annotations__["x"] = hint
        tool(takes)
        with self.subTest(hint):
            self.assert_refused(takes, message)
            self.assert_refused(takes, "test_definition.py:")
            self.assert_refused(takes, "parameter `x`")
        self.setUp()

    def test_hints_without_json(self) -> None:
        self.refused(complex, "`complex` has no place in JSON; take two `float`s")
        self.refused(tuple, "say what is in it")
        self.refused(list[complex], "`complex` has no place")
        self.refused(dict[datetime.date, str], "`date` must be a `str` as well")
        self.refused(object, "use `Any`")
        self.refused(T, "`~T` has no place in JSON; use `str`, `int`")
        self.refused(Box[int], "Box[int]` has no place in JSON")
        self.refused([int], "`[<class 'int'>]` has no place in JSON")
        self.refused(dict[int, str], "the keys of a JSON object are strings, not `int`")
        self.refused(dict[Plain, str], "`Plain` must be a `str` as well: `class Plain(str, Enum)`")
        self.refused(Literal[b"a"], "`Literal[b'a']` has no place in JSON")
        self.refused(Numbered, "the value of `Numbered.ONE` has no place in JSON")
        self.refused(enum.Enum("Empty", []), "`Empty` has no members")
        self.refused(Secret, "`Secret.seed` is an `InitVar`")
        self.refused(Annotated[str, Range(1, 2)], "says nothing about `str`")
        self.refused(Annotated[int, Pattern("a")], "says nothing about `int`")

    @unittest.skipIf(sys.version_info < (3, 12), "of Python 3.12")
    def test_a_name_that_refers_to_itself(self) -> None:
        names: dict[str, Any] = {}
        exec("type Tree = dict[str, Tree]\ntype Names = list[str]", names)
        self.refused(names["Tree"], "`Tree` refers to itself; only a dataclass or a `TypedDict` can")

        @tool
        def takes(x: names["Names"]) -> None:  # type: ignore[name-defined]
            """Takes it."""

        self.assertEqual(parameter(takes), {"type": "array", "items": {"type": "string"}})

    def test_a_default_of_another_type(self) -> None:
        @tool
        def none(x: int = None) -> None:  # type: ignore[assignment]
            """Takes it."""

        @tool
        def text(x: int = "a") -> None:  # type: ignore[assignment]
            """Takes it."""

        # Before Python 3.11, `get_type_hints` makes `int | None` of it.
        if sys.version_info >= (3, 11):
            self.assert_refused(none, "the default `None` is not `int`: write `int | None`")
        self.assert_refused(text, "the default `'a'` is not `int`: expected an integer, got \"a\"")

    def test_functions(self) -> None:
        @tool
        def untyped(x) -> None:  # type: ignore[no-untyped-def]
            """Takes it."""

        @tool
        def silent() -> None:
            pass

        @tool
        def result():  # type: ignore[no-untyped-def]
            """Returns it."""

        @tool
        def rest(*x: int) -> None:
            """Takes it."""

        @tool
        async def later() -> AsyncIterator[int]:
            """Takes its time."""
            yield 1

        @tool(name="a b")
        def named() -> None:
            """Has a name."""

        @tool
        def unknown(x: "Nowhere") -> None:  # type: ignore[name-defined] # noqa: F821
            """Takes it."""

        @tool
        def other() -> None:
            """Takes nothing.

            Args:
                x: What is not there.
            """

        self.assert_refused(untyped, "parameter `x`: it has no type; write `x: str`")
        self.assert_refused(silent, "it has no docstring")
        self.assert_refused(result, "say what it returns, such as `-> str`")
        self.assert_refused(rest, "arguments have names; no `*`, `**` or `/`")
        self.assert_refused(later, "a tool is a function without `yield`; return a list")
        self.assert_refused(named, "a name has 1 to 128 of")
        self.assert_refused(unknown, "a type hint names `Nowhere`")
        self.assert_refused(other, "its docstring describes `x`, which is no parameter")

    def test_results(self) -> None:
        def refused(hint: Any, message: str) -> None:
            def returns() -> Any:
                """Returns it."""

            returns.__annotations__["return"] = hint
            tool(returns)
            self.assert_refused(returns, message)
            self.setUp()

        refused(tuple[Count, Count], "it returns structured content twice")
        refused(set[complex], "`complex` has no place in JSON")
        refused(list[datetime.tzinfo], "`tzinfo` has no place in JSON")

    def test_all_that_is_wrong_is_said_at_once(self) -> None:
        @tool
        def one() -> None:
            pass

        @tool(name="one")
        def two(x: complex) -> None:
            """Takes it."""

        with self.assertRaises(DefinitionError) as caught:
            testing.tools()
        lines = str(caught.exception).splitlines()
        self.assertEqual(len(lines), 3, lines)
        self.assertIn("has the same name", lines[2])
