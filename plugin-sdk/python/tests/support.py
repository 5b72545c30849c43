"""Code that the tests share."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from typing import Any

from toolbay import registry, testing
from toolbay.definition import Tool
from toolbay.errors import DefinitionError


class TestCase(unittest.TestCase):
    """A test that begins with a plugin without offers, and removes those of the test at the end."""

    maxDiff = None

    def setUp(self) -> None:
        before, registry._seen = registry._seen, registry.Offers()
        self.addCleanup(setattr, registry, "_seen", before)

    def assert_refused(self, function: Callable[..., Any], message: str) -> None:
        """Asserts that the function cannot be a tool, with an error that contains `message`."""
        with self.assertRaises(DefinitionError) as caught:
            testing.definition(function)
        self.assertIn(message, str(caught.exception))

    def assert_wrong(self, *messages: str) -> None:
        """Asserts that the plugin cannot be built, with errors that contain these messages, one per line."""
        with self.assertRaises(DefinitionError) as caught:
            registry.offers()
        lines = str(caught.exception).splitlines()
        self.assertEqual(len(lines), len(messages), lines)
        for line, message in zip(lines, messages, strict=True):
            self.assertIn(message, line)


def parameter(function: Callable[..., Any], name: str = "x") -> dict[str, Any]:
    """Returns the schema of a parameter."""
    return definition(function).input_schema["properties"][name]


def definition(function: Callable[..., Any]) -> Tool:
    """Returns the definition that clients receive."""
    return testing.definition(function)
