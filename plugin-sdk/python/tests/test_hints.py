"""The meaning of hints: their schemas, and the values that are read with them."""

import typing
import unittest
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Annotated, Any, Dict, List, Literal, NewType, Optional, Tuple, TypedDict, Union

from tests.support import TestCase
from toolbay import IntString, Length, Pattern, Range
from toolbay.hints import Reader
from toolbay.shapes import Definitions, Mismatch, root


class Unit(Enum):
    METRIC = "metric"
    IMPERIAL = "imperial"


class Word(str, Enum):
    YES = "yes"
    NO = "no"


class Rank(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Place:
    """Where it is."""

    lat: float
    lon: Annotated[float, "East is positive."]
    name: Optional[str] = None
    tags: List[str] = field(default_factory=list)


@dataclass
class Even:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError(f"{self.number} is odd")


@dataclass
class Tree:
    value: int
    children: List["Tree"] = field(default_factory=list)


@dataclass
class Left:
    right: Optional["Right"] = None


@dataclass
class Right:
    left: Optional[Left] = None


class Partial(TypedDict, total=False):
    a: int


class Both(Partial):
    b: str


Metres = NewType("Metres", float)
MaybeInt = NewType("MaybeInt", Optional[int])  # type: ignore[valid-newtype]


def shape(hint: Any) -> Any:
    return Reader().shape(hint, "here")


def schema(hint: Any) -> Any:
    return shape(hint).schema(Definitions())


def read(hint: Any, value: Any) -> Any:
    return shape(hint).read(value, "x")


class Schemas(TestCase):
    def test_of_plain_types(self) -> None:
        cases = [
            (str, {"type": "string"}),
            (int, {"type": "integer"}),
            (float, {"type": "number"}),
            (bool, {"type": "boolean"}),
            (None, {"type": "null"}),
            (Any, {}),
            (Metres, {"type": "number"}),
            (list, {"type": "array"}),
            (List, {"type": "array"}),
            (List[int], {"type": "array", "items": {"type": "integer"}}),
            (Sequence[str], {"type": "array", "items": {"type": "string"}}),
            (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
            (dict, {"type": "object"}),
            (Dict, {"type": "object"}),
            (dict[str, Any], {"type": "object"}),
            (Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
            (
                dict[Word, int],
                {
                    "type": "object",
                    "propertyNames": {"type": "string", "enum": ["yes", "no"]},
                    "additionalProperties": {"type": "integer"},
                },
            ),
            (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
            (
                Tuple[int, str],
                {
                    "type": "array",
                    "prefixItems": [{"type": "integer"}, {"type": "string"}],
                    "items": False,
                    "minItems": 2,
                    "maxItems": 2,
                },
            ),
            (tuple[()], {"type": "array", "items": False, "minItems": 0, "maxItems": 0}),
        ]
        for hint, expected in cases:
            with self.subTest(hint):
                self.assertEqual(schema(hint), expected)

    def test_of_choices(self) -> None:
        cases = [
            (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
            (Literal["a", 1, None], {"type": ["string", "integer", "null"], "enum": ["a", 1, None]}),
            (Unit, {"type": "string", "enum": ["metric", "imperial"]}),
            (Rank, {"type": "integer", "enum": [1, 2]}),
            (Optional[Unit], {"type": ["string", "null"], "enum": ["metric", "imperial", None]}),
        ]
        for hint, expected in cases:
            with self.subTest(hint):
                self.assertEqual(schema(hint), expected)

    def test_of_unions(self) -> None:
        cases = [
            (Optional[int], {"type": ["integer", "null"]}),
            (int | str, {"type": ["integer", "string"]}),
            (Optional[List[int]], {"type": ["array", "null"], "items": {"type": "integer"}}),
            (Union[int, List[int]], {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}),
            (Union[int, Any], {}),
            (Union[MaybeInt, str], {"type": ["integer", "null", "string"]}),
        ]
        for hint, expected in cases:
            with self.subTest(hint):
                self.assertEqual(schema(hint), expected)

    def test_of_annotated(self) -> None:
        cases = [
            (Annotated[str, "A name."], {"type": "string", "description": "A name."}),
            (Annotated[int, Range(1, 9)], {"type": "integer", "minimum": 1, "maximum": 9}),
            (Annotated[float | None, Range(0)], {"type": ["number", "null"], "minimum": 0}),
            (Annotated[str, Length(1, 5), Pattern("^a")], {
                "type": "string", "minLength": 1, "maxLength": 5, "pattern": "^a"}),
            (Annotated[List[Annotated[str, "A tag."]], Length(maximum=3)], {
                "type": "array", "items": {"type": "string", "description": "A tag."}, "maxItems": 3}),
            (Annotated[int, object(), 7], {"type": "integer"}),
            (IntString, {"type": "string", "pattern": "^-?[0-9]+$"}),
            (list[IntString], {"type": "array", "items": {"type": "string", "pattern": "^-?[0-9]+$"}}),
        ]  # fmt: skip
        for hint, expected in cases:
            with self.subTest(hint):
                self.assertEqual(schema(hint), expected)

    def test_of_a_dataclass(self) -> None:
        self.assertEqual(
            schema(Place),
            {
                "type": "object",
                "description": "Where it is.",
                "properties": {
                    "lat": {"type": "number"},
                    "lon": {"type": "number", "description": "East is positive."},
                    "name": {"type": ["string", "null"], "default": None},
                    "tags": {"type": "array", "items": {"type": "string"}, "default": []},
                },
                "required": ["lat", "lon"],
                "additionalProperties": False,
            },
        )

    def test_a_returned_dataclass_has_all_its_members(self) -> None:
        returned = Reader(returned=True).shape(Place, "here").schema(Definitions())
        self.assertEqual(returned["required"], ["lat", "lon", "name", "tags"])
        self.assertNotIn("default", returned["properties"]["name"])

    def test_of_a_typed_dict(self) -> None:
        both = schema(Both)
        self.assertEqual(both["required"], ["b"])
        self.assertEqual(set(both["properties"]), {"a", "b"})

    @unittest.skipUnless(hasattr(typing, "NotRequired"), "of Python 3.11")
    def test_what_is_not_required(self) -> None:
        names = {"TypedDict": TypedDict, "NotRequired": typing.NotRequired, "Required": typing.Required}
        # Hints as text, with which Python itself does not detect required
        # members.
        for future in ("", "from __future__ import annotations\n"):
            exec(
                f"{future}class A(TypedDict):\n  a: NotRequired[int]\n  b: str\n"
                "class B(TypedDict, total=False):\n  a: Required[int]\n  b: str\n",
                names,
            )
            kind = names["A"]
            kind.__module__ = names["B"].__module__ = __name__
            globals().update(names)
            self.assertEqual(schema(kind)["required"], ["b"])
            self.assertEqual(schema(names["B"])["required"], ["a"])

    def test_what_refers_to_itself(self) -> None:
        tree = {"$ref": "#/$defs/Tree"}
        members = {
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "children": {"type": "array", "items": tree, "default": []},
            },
            "required": ["value"],
            "additionalProperties": False,
        }
        self.assertEqual(root(shape(Tree)), {"type": "object", **tree, "$defs": {"Tree": members}})
        self.assertEqual(read(Tree, {"value": 1, "children": [{"value": 2}]}), Tree(1, [Tree(2)]))

    def test_what_refers_to_each_other(self) -> None:
        whole = root(shape(List[Right]))
        self.assertEqual(set(whole["$defs"]), {"Right"})
        self.assertEqual(read(Right, {"left": {"right": {}}}), Right(Left(Right())))


class Values(TestCase):
    def test_that_fit(self) -> None:
        cases = [
            (int, 2.0, 2),
            (float, 2, 2.0),
            (Optional[int], None, None),
            (Union[int, str], "a", "a"),
            (Unit, "metric", Unit.METRIC),
            (Rank, 2, Rank.HIGH),
            (Rank, 2.0, Rank.HIGH),
            (Literal[1, True], True, True),
            (set[int], [1, 1], {1}),
            (frozenset[int], [1], frozenset({1})),
            (tuple[int, ...], [1, 2], (1, 2)),
            (tuple[int, str], [1, "a"], (1, "a")),
            (dict[str, Unit], {"a": "metric"}, {"a": Unit.METRIC}),
            (dict[Word, int], {"yes": 1}, {Word.YES: 1}),
            (Place, {"lat": 1, "lon": 2}, Place(1.0, 2.0)),
            (Both, {"b": "x"}, {"b": "x"}),
            (Any, {"a": [1]}, {"a": [1]}),
        ]
        for hint, value, expected in cases:
            with self.subTest(hint):
                got = read(hint, value)
                self.assertEqual(got, expected)
                self.assertIs(type(got), type(expected))

    def test_that_do_not(self) -> None:
        cases = [
            (str, 1, "`x`: expected a string, got 1"),
            (int, True, "`x`: expected an integer, got true"),
            (int, 1.5, "`x`: expected an integer, got 1.5"),
            (Optional[int], "a", '`x`: expected an integer, got "a"'),
            (None, 1, "`x`: expected null, got 1"),
            (Union[int, List[int]], "a", '`x`: expected an integer, got "a"; or `x`: expected a list, got "a"'),
            (List[int], [1, "b"], '`x[1]`: expected an integer, got "b"'),
            (List[int], "y" * 100, "`x`: expected a list, got a string"),
            (dict[str, int], {"k": None}, "`x.k`: expected an integer, got null"),
            (tuple[int, str], [1], "`x`: expected 2 items, got 1"),
            (Unit, "si", '`x`: expected "metric" or "imperial", got "si"'),
            (Literal[1], True, "`x`: expected 1, got true"),
            (Place, {"lat": 1}, "`x`: `lon` is missing"),
            (Place, {"lat": 1, "lon": 2, "z": 3}, "`x`: there is no `z`; there is `lat`, `lon`, `name`, `tags`"),
            (Even, {"number": 3}, "`x`: 3 is odd"),
        ]
        for hint, value, expected in cases:
            with self.subTest(hint):
                with self.assertRaises(Mismatch) as caught:
                    read(hint, value)
                self.assertEqual(str(caught.exception), expected)
