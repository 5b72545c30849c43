"""URIs that match a template, and invalid templates."""

import time
import unittest

from toolbay.uri_template import UriTemplate


class Values(unittest.TestCase):
    def test_a_uri_fits_or_does_not(self) -> None:
        cases: list[tuple[str, str, dict[str, str] | None]] = [
            ("notes://all", "notes://all", {}),
            ("notes://all", "notes://al", None),
            ("notes://all", "notes://all/", None),
            ("notes://{id}", "notes://7", {"id": "7"}),
            ("notes://{id}", "notes://", None),
            ("notes://{id}", "notes://a/b", None),
            ("notes://{id}", "notes://a?b", None),
            ("notes://{id}", "notes://a#b", None),
            ("notes://{+path}", "notes://a/b?c%20", {"path": "a/b?c%20"}),
            ("notes://{id}", "notes://a%20%C3%A9", {"id": "a é"}),
            ("notes://{id}", "notes://a%2Fb", {"id": "a/b"}),
            ("notes://{id}", "notes://a%2", None),
            ("notes://{id}", "notes://a%ff", None),
            ("test://template/{id}/data", "test://template/123/data", {"id": "123"}),
            ("test://template/{id}/data", "test://template//data", None),
            ("a:{x}-{y}", "a:1-2-3", {"x": "1", "y": "2-3"}),
            ("a:{+x}-{y}", "a:1-2/3-4", {"x": "1-2/3", "y": "4"}),
            ("a:{+x}/end", "a:end/end/end", {"x": "end/end"}),
            ("a:{x}.txt", "a:b.txt.txt", {"x": "b.txt"}),
            ("a:{x}", "a:é", {"x": "é"}),
        ]
        for template, uri, expected in cases:
            with self.subTest(f"{template} {uri}"):
                self.assertEqual(UriTemplate(template).values(uri), expected)

    def test_time_has_a_bound(self) -> None:
        template = UriTemplate("a:" + "-".join(f"{{+v{number}}}" for number in range(16)) + "!")
        before = time.monotonic()
        self.assertIsNone(template.values("a:" + "-" * 500))
        self.assertLess(time.monotonic() - before, 20)

    def test_what_is_no_template(self) -> None:
        cases = [
            ("notes", "begins with a scheme"),
            ("{id}", "begins with a scheme"),
            ("1a:b", "begins with a scheme"),
            ("Toolbay://a/{id}", "the scheme `toolbay:` is reserved"),
            ("a:{b", "a brace is without its other half"),
            ("a:b}", "a brace is without its other half"),
            ("a:{}", "`{}` is no variable"),
            ("a:{?b}", "`{?b}` is no variable; write `{id}`, or `{+id}` for any characters"),
            ("a:{b}{c}", "nothing is between `{b}` and the next variable"),
            ("a:{b}/{b}", "`{b}` is there twice"),
        ]
        for template, message in cases:
            with self.subTest(template), self.assertRaises(ValueError) as caught:
                UriTemplate(template)
            self.assertIn(message, str(caught.exception))
