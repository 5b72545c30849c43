"""Descriptions in docstrings: of the function, and of each parameter."""

import unittest

from toolbay.docstring import parse


class Docstring(unittest.TestCase):
    def test_google(self) -> None:
        self.assertEqual(
            parse("""Finds a place.

            It may take a while.

            Args:
                name: What it is called,
                    or was: once.
                limit (int): How many.

            Returns:
                Places.
            """),
            (
                "Finds a place.\n\nIt may take a while.\n\nReturns:\n    Places.",
                {"name": "What it is called, or was: once.", "limit": "How many."},
            ),
        )

    def test_fields(self) -> None:
        self.assertEqual(
            parse("""Finds a place.

            :param name: What it is called,
                or was.
            :param int limit: How many.
            :type name: str
            """),
            ("Finds a place.", {"name": "What it is called, or was.", "limit": "How many."}),
        )

    def test_numpy(self) -> None:
        self.assertEqual(
            parse("""Finds a place.

            It may take a while.

            Parameters
            ----------
            name : str
                What it is called,
                or was.
            x, y : float, optional
                Where it is.

            Returns
            -------
            list
                Places.
            """),
            (
                "Finds a place.\n\nIt may take a while.\n\nReturns\n-------\nlist\n    Places.",
                {"name": "What it is called, or was.", "x": "Where it is.", "y": "Where it is."},
            ),
        )
        text = "Says:\n\nParameters\n\nare not needed.\n\nA table\n-------\nname : str\n    text"
        self.assertEqual(parse(text), (text, {}))

    def test_nothing(self) -> None:
        self.assertEqual(parse(None), (None, {}))
        self.assertEqual(parse("   "), (None, {}))

    def test_what_only_looks_like_it(self) -> None:
        text = "Says:\n\n    name: text\n\nArgs are not needed."
        self.assertEqual(parse(text), (text, {}))
