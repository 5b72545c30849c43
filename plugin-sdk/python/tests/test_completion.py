"""Values that an argument could have, and functions that cannot suggest any."""

import enum
from typing import Any, Literal, Optional

from tests.support import TestCase
from toolbay import Completions, Failed, beginning_with, completion, prompt, resource, testing


class Tone(enum.Enum):
    FRIENDLY = "friendly"
    FORMAL = "formal"


def travel(country: str, city: str, days: Literal[1, 7] = 1, tone: Optional[Tone] = None) -> str:
    """Plans a journey."""
    return ""


def note(id: str) -> str:
    """A note."""
    return id


class Suggested(TestCase):
    def setUp(self) -> None:
        super().setUp()
        prompt(travel)
        resource("notes://{id}")(note)

    def test_by_a_function(self) -> None:
        @completion(travel, "country")
        def countries(value: str) -> list[str]:
            return beginning_with(value, ["France", "Finland", "Italy"])

        @completion("travel", "city")
        def cities(value: str, arguments: dict[str, str]) -> Completions:
            return Completions([value + arguments.get("country", "?")], total=300, has_more=True)

        @completion("notes://{id}", "id")
        def ids(value: str) -> tuple[str, ...]:
            return ("a", "b")

        testing.prompts()
        self.assertEqual(testing.complete(travel, "country", "f").values, ["France", "Finland"])
        self.assertEqual(testing.complete("travel", "country").values, ["France", "Finland", "Italy"])
        self.assertEqual(
            testing.complete(travel, "city", "P", {"country": "France"}), Completions(["PFrance"], 300, True)
        )
        self.assertEqual(testing.complete("notes://{id}", "id").values, ["a", "b"])
        self.assertEqual(testing.complete(note, "id").values, ["a", "b"])
        self.assertEqual(countries("I"), ["Italy"])

    def test_by_the_values_that_there_are(self) -> None:
        self.assertEqual(testing.complete(travel, "days").values, ["1", "7"])
        self.assertEqual(testing.complete(travel, "tone", "FO").values, ["formal"])

        @completion(travel, "tone")
        def tones(value: str) -> list[str]:
            return ["formal"]

        self.assertEqual(testing.complete(travel, "tone").values, ["formal"])

    def test_by_nothing(self) -> None:
        self.assertEqual(testing.complete(travel, "country").values, [])
        self.assertEqual(testing.complete("nothing", "country").values, [])

    def test_what_cannot_be_suggested(self) -> None:
        for value in ["abc", None, {"a": 1}, [7], Completions([7])]:  # type: ignore[list-item]
            with self.subTest(value):
                self.setUp()
                completion(travel, "city")(lambda typed: value)
                with self.assertRaisesRegex(Failed, "TypeError: .*; return a list of `str`, or `Completions`"):
                    testing.complete(travel, "city")
        self.setUp()
        completion(travel, "city")(lambda typed: Completions([], total=-1))
        with self.assertRaisesRegex(Failed, "ValueError: total is -1, which is no number of values"):
            testing.complete(travel, "city")


class Refused(TestCase):
    def setUp(self) -> None:
        super().setUp()
        prompt(travel)
        resource("notes://{id}")(note)

    def test_what_it_completes(self) -> None:
        def suggests(value: str) -> list[str]:
            return []

        cases: list[tuple[Any, str, str]] = [
            (travel, "cities", "`travel` has no argument `cities`; it has `country`, `city`, `days`, `tone`"),
            (note, "text", "`note` has no argument `text`; it has `id`"),
            (suggests, "a", "`suggests` is no prompt and no resource; put `@prompt` or `@resource` above it"),
            ("notes://{ids}", "id", "`notes://{ids}` is no prompt and no resource"),
        ]
        for target, argument, message in cases:
            with self.subTest(message):
                self.setUp()
                completion(target, argument)(suggests)
                self.assert_wrong(message)
                self.setUp()
                completion(target, argument)(suggests)
                self.assert_wrong("test_completion.py:")

    def test_one_argument_has_one(self) -> None:
        completion(travel, "city")(lambda value: [])
        completion("travel", "city")(lambda value: [])
        self.assert_wrong("completes `city` already")

    def test_functions(self) -> None:
        def generates(value: str) -> Any:
            yield value

        def many(value: str, arguments: Any, context: Any) -> list[str]:
            return []

        def named(value: str, *, arguments: Any) -> list[str]:
            return []

        shape = "it takes what the user has typed, and the other arguments if it needs them"
        plain = "a completion is a function without `yield`"
        cases: list[tuple[Any, str]] = [
            (generates, plain),
            (many, shape),
            (named, shape),
            (lambda: [], shape),
        ]
        for function, message in cases:
            with self.subTest(message):
                self.setUp()
                completion(travel, "city")(function)
                self.assert_wrong(message)
