"""The tools are functions, so a test calls them. `testing` goes the way of a call, from JSON to content."""

import unittest

from app import Count, {{ident}}_count, {{ident}}_greet
from toolbay import InvalidArguments, testing


class Greet(unittest.TestCase):
    def test_greets_by_name(self):
        self.assertEqual({{ident}}_greet("Ada"), "Hello, Ada.")

    def test_shouts_if_asked(self):
        self.assertEqual({{ident}}_greet("Ada", excited=True), "HELLO, ADA!")

    def test_an_empty_name_is_refused(self):
        with self.assertRaisesRegex(InvalidArguments, "name is empty"):
            {{ident}}_greet("  ")

    def test_takes_json(self):
        self.assertEqual(testing.call({{ident}}_greet, {"name": "Ada"}).text(), "Hello, Ada.")
        with self.assertRaisesRegex(InvalidArguments, "`name` is missing"):
            testing.call({{ident}}_greet, {})


class CountText(unittest.TestCase):
    def test_counts(self):
        self.assertEqual({{ident}}_count("one two\nthrée"), Count(characters=13, words=3, lines=2))

    def test_of_nothing_there_is_none(self):
        self.assertEqual({{ident}}_count(""), Count(characters=0, words=0, lines=0))

    def test_returns_structured_content(self):
        output = testing.call({{ident}}_count, {"text": "a b"})
        self.assertEqual(output.structured, {"characters": 3, "words": 2, "lines": 1})


class Definitions(unittest.TestCase):
    def test_clients_are_told_what_each_tool_does(self):
        names = [tool.name for tool in testing.tools()]
        self.assertEqual(names, ["{{ident}}_count", "{{ident}}_greet"])


if __name__ == "__main__":
    unittest.main()
