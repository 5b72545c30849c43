"""Views: the metadata of tools and pages, and errors in it."""

from tests.support import TestCase
from toolbay import DefinitionError, View, resource, testing, tool


class Told(TestCase):
    def test_a_tool_names_its_view_and_whom_it_is_for(self) -> None:
        @tool(view="ui://a/b", meta={"example.com/a": 1})
        def shown() -> str:
            """Shows it."""
            return "shown"

        @tool(app_only=True)
        def helper() -> str:
            """Helps the view."""
            return "helped"

        metas = {one.name: one.meta for one in testing.tools()}
        self.assertEqual(metas["shown"], {"example.com/a": 1, "ui": {"resourceUri": "ui://a/b"}})
        self.assertEqual(metas["helper"], {"ui": {"visibility": ["app"]}})

    def test_a_view_has_its_type_and_says_what_it_asks_for(self) -> None:
        asks = View(
            connect=["https://a.example", "wss://b.example"],
            resources=["https://c.example"],
            frames=["https://d.example"],
            base=["https://e.example"],
            permissions=["camera", "clipboard_write"],
            border=False,
            domain="f.example",
        )

        @resource("ui://a/b", view=asks)
        def page() -> str:
            """The page."""
            return "<!doctype html>"

        [told] = testing.resources()
        self.assertEqual(told.mime_type, "text/html;profile=mcp-app")
        self.assertEqual(
            told.meta["ui"],
            {
                "csp": {
                    "connectDomains": ["https://a.example", "wss://b.example"],
                    "resourceDomains": ["https://c.example"],
                    "frameDomains": ["https://d.example"],
                    "baseUriDomains": ["https://e.example"],
                },
                "permissions": {"camera": {}, "clipboardWrite": {}},
                "prefersBorder": False,
                "domain": "f.example",
            },
        )

    def test_a_view_that_asks_for_nothing_says_nothing(self) -> None:
        @resource("ui://a/b")
        def page() -> str:
            """The page."""
            return "<!doctype html>"

        [told] = testing.resources()
        self.assertEqual((told.mime_type, dict(told.meta)), ("text/html;profile=mcp-app", {}))

    def test_mistakes_are_named(self) -> None:
        for wrong, words in [
            (lambda: View(connect="https://a.example"), "is a list"),
            (lambda: View(permissions=["usb"]), "no permission 'usb'; there are camera"),  # type: ignore[list-item]
            (lambda: tool(view="page.html")(lambda: ""), "begins with `ui://`"),
            (lambda: resource("a:b", view=View())(lambda: ""), "begins with `ui://`"),
        ]:
            with self.assertRaisesRegex(DefinitionError, words):
                wrong()
