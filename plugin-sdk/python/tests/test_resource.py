"""Resources: their definitions, their contents, and functions that cannot be resources."""

from collections.abc import Callable
from dataclasses import dataclass
from collections.abc import Iterator
from typing import Any, Optional, TypedDict

from tests.support import TestCase
from toolbay import Contents, Failed, Icon, InvalidArguments, resource, resource_updated, testing


@dataclass
class Point:
    x: int


class Key(TypedDict):
    a: str


class Told(TestCase):
    def test_everything_comes_from_the_function(self) -> None:
        @resource("notes://{id}")
        def note(id: str) -> str:
            """A note."""
            return id

        @resource("notes://all")
        def every() -> str:
            """Every note."""
            return "all"

        one, two = testing.resources()
        self.assertEqual((one.uri, one.name, one.description), ("notes://all", "every", "Every note."))
        self.assertEqual((two.uri, two.name, two.description), ("notes://{id}", "note", "A note."))
        self.assertEqual((one.is_template, two.is_template), (False, True))
        self.assertEqual(note("a"), "a")

    def test_the_decorator_says_more(self) -> None:
        @resource(
            "a:b", name="b c", title="B", description="The b.", mime_type="text/plain", size=7, audience="user",
            priority=0.5, last_modified="2026-01-12T15:00:58Z", icons=["data:,"], meta={"example.com/a": 1},
        )  # fmt: skip
        def one() -> str:
            return ""

        [told] = testing.resources()
        self.assertEqual((told.name, told.title, told.description), ("b c", "B", "The b."))
        self.assertEqual((told.mime_type, told.size, told.audience, told.priority), ("text/plain", 7, "user", 0.5))
        self.assertEqual((told.last_modified, told.icons), ("2026-01-12T15:00:58Z", [Icon("data:,")]))
        self.assertEqual(told.meta, {"example.com/a": 1})


class Reading(TestCase):
    def read(self, value: Any, **options: Any) -> list[Contents]:
        self.setUp()

        @resource("a:b", **options)
        def returns() -> Any:
            """Returns it."""
            return value

        return testing.read("a:b")

    def test_contents(self) -> None:
        below = Contents(b"c", "image/png", "a:b/c", {"example.com/a": 1})
        cases: list[tuple[Any, list[Contents]]] = [
            ("text", [Contents("text", None, "a:b")]),
            (b"bytes", [Contents(b"bytes", None, "a:b")]),
            (bytearray(b"bytes"), [Contents(b"bytes", None, "a:b")]),
            (b"", [Contents(b"", None, "a:b")]),
            (Point(1), [Contents('{"x": 1}', "application/json", "a:b")]),
            ({"a": Point(1)}, [Contents('{"a": {"x": 1}}', "application/json", "a:b")]),
            (["a", below], [Contents("a", None, "a:b"), below]),
            (None, []),
            ([], []),
        ]
        for value, expected in cases:
            with self.subTest(value):
                self.assertEqual(self.read(value), expected)

    def test_the_mime_type_is_the_nearest(self) -> None:
        both = ["a", Contents("b", "text/html"), {}]
        kinds = [item.mime_type for item in self.read(both, mime_type="text/plain")]
        self.assertEqual(kinds, ["text/plain", "text/html", "text/plain"])

    def test_what_cannot_be_read(self) -> None:
        for value in [7, {1}, object()]:
            with self.subTest(value), self.assertRaisesRegex(Failed, "TypeError: it returned a `.*`; return `str` for"):
                self.read(value)
        with self.assertRaisesRegex(Failed, "ValueError: Out of range float"):
            self.read({"a": float("nan")})
        with self.assertRaisesRegex(TypeError, "Contents takes bytes, not int"):
            Contents(7)  # type: ignore[arg-type]

    def test_variables(self) -> None:
        @resource("notes://{folder}/{id}")
        def note(id: int, folder: str) -> Optional[str]:
            """A note."""
            return None if id == 0 else f"{folder} {id}"

        @resource("notes://{+path}")
        def anything(path: str) -> str:
            """Anything else."""
            return f"path {path}"

        @resource("notes://a/1")
        def one() -> str:
            """The one."""
            return "one"

        def text(uri: str) -> list[Any]:
            return [item.contents for item in testing.read(uri)]

        self.assertEqual(text("notes://a%20b/7"), ["a b 7"])
        self.assertEqual(text("notes://a/0"), [])
        self.assertEqual(text("notes://a/1"), ["one"], "one without variables comes first")
        self.assertEqual(text("notes://a%20/b/c"), ["path a%20/b/c"])
        self.assertEqual(text("other://a"), [])
        with self.assertRaisesRegex(InvalidArguments, '`id`: expected an integer, got "x"'):
            text("notes://a/x")

    def test_failures(self) -> None:
        @resource("a:{how}")
        def breaks(how: str) -> str:
            """Breaks."""
            raise ValueError(how)

        with self.assertRaisesRegex(Failed, "ValueError: well"):
            testing.read("a:well")

    def test_updates(self) -> None:
        with testing.recorder() as host:
            resource_updated("a:b")
        self.assertEqual(host.updates, ["a:b"])
        resource_updated("a:b")


class Refused(TestCase):
    def refused(self, function: Callable[..., Any], message: str, uri: str = "a:{x}", **options: Any) -> None:
        self.setUp()
        resource(uri, **options)(function)
        with self.subTest(message):
            self.assert_wrong(message)

    def test_variables(self) -> None:
        def none() -> str:
            """Takes nothing."""
            return ""

        def x(x: str) -> str:
            """Takes it."""
            return x

        def several(x: list[str]) -> str:
            """Takes it."""
            return ""

        self.refused(none, "it has no parameter for `{x}`; add `x: str`")
        self.refused(x, "parameter `x`: the URI `a:b` has no variable `{x}`", "a:b")
        self.refused(several, "parameter `x`: clients give it as text")
        self.refused(x, "the URI `a:{x`: a brace is without its other half", "a:{x")
        self.refused(x, "the URI `{x}`: a URI begins with a scheme", "{x}")
        self.refused(x, "a URI with variables has no `size` and no `last_modified`", size=1)
        self.refused(x, "a URI with variables has no `size` and no `last_modified`", last_modified="2026")

    def test_options(self) -> None:
        def none() -> str:
            """Takes nothing."""
            return ""

        self.refused(none, "its name is empty", "a:b", name="")
        self.refused(none, "priority is 2; it is from 0.0 to 1.0", "a:b", priority=2)
        self.refused(none, "audience is 'model'", "a:b", audience="model")
        self.refused(none, "size is -1, which is no number of bytes", "a:b", size=-1)
        with self.assertRaisesRegex(TypeError, r'a resource has a URI: `@resource\("notes://\{id\}"\)`'):
            resource(none)  # type: ignore[arg-type]

    def test_results(self) -> None:
        def returning(hint: Any) -> Callable[..., Any]:
            def returns() -> Any:
                """Returns it."""

            returns.__annotations__["return"] = hint
            return returns

        for hint in [int, list[int], Optional[float]]:
            self.refused(returning(hint), "; return `str` for text, `bytes`", "a:b")
        may = [str, bytes, Contents, None, Optional[str], Point, Key, dict[str, int], list[Contents | str], Any, list]
        for hint in may:
            self.setUp()
            resource("a:b")(returning(hint))
            with self.subTest(hint):
                testing.resources()

    def test_functions(self) -> None:
        def silent() -> str:
            return ""

        def later() -> Iterator[str]:
            """Takes its time."""
            yield ""

        self.refused(silent, "it has no docstring; models and users decide by it", "a:b")
        self.refused(later, "a resource is a function without `yield`", "a:b")

    def test_uris_are_unique_and_names_of_templates(self) -> None:
        def one(x: str) -> str:
            """Is one."""
            return x

        def two() -> str:
            """Is two."""
            return ""

        resource("a:b")(two)
        resource("b:c")(two)
        resource("a:b")(two)
        self.assert_wrong("has the same URI")
        self.setUp()
        resource("a:{x}")(one)
        resource("b:{x}")(one)
        self.assert_wrong('has the same name; give one of them `@resource(name="…")`')
