"""What the tests share."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from typing import Any

from toolbay import registry, testing
from toolbay.definition import Tool
from toolbay.errors import DefinitionError


class TestCase(unittest.TestCase):
    """A test that begins with a plugin that offers nothing, and leaves none."""

    maxDiff = None

    def setUp(self) -> None:
        before, registry._seen = registry._seen, registry.Offers()
        self.addCleanup(setattr, registry, "_seen", before)

    def assert_refused(self, function: Callable[..., Any], message: str) -> None:
        """The function cannot be a tool, for the reason that holds `message`."""
        with self.assertRaises(DefinitionError) as caught:
            testing.definition(function)
        self.assertIn(message, str(caught.exception))

    def assert_wrong(self, *messages: str) -> None:
        """The plugin cannot be built, for reasons that hold these messages, one a line."""
        with self.assertRaises(DefinitionError) as caught:
            registry.offers()
        lines = str(caught.exception).splitlines()
        self.assertEqual(len(lines), len(messages), lines)
        for line, message in zip(lines, messages, strict=True):
            self.assertIn(message, line)


def parameter(function: Callable[..., Any], name: str = "x") -> dict[str, Any]:
    """The schema of a parameter."""
    return definition(function).input_schema["properties"][name]


def definition(function: Callable[..., Any]) -> Tool:
    """What clients are told."""
    return testing.definition(function)
