"""Tests of the functions, with the bindings that `componentize-py bindings` writes."""

import unittest

from app import Counts, Err, Texts


class Plugin(unittest.TestCase):
    def test_greets(self):
        self.assertEqual(Texts().greet("Ada", None), "Hello, Ada.")
        self.assertEqual(Texts().greet("Ada", True), "HELLO, ADA!")
        with self.assertRaises(Err):
            Texts().greet(" ", None)

    def test_counts(self):
        self.assertEqual(Texts().count("one two\nthrée"), Counts(characters=13, words=3, lines=2))
        self.assertEqual(Texts().count(""), Counts(characters=0, words=0, lines=0))


if __name__ == "__main__":
    unittest.main()
