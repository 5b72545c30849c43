import tempfile
import unittest
from pathlib import Path
from unittest import mock

import app
from app import Summary, analyze_csv
from toolbay import InvalidArguments

SALES = "region,amount\nnorth,0.1\nsouth,3\nnorth,0.2\nsouth,\n"


class Analyze(unittest.TestCase):
    def test_groups_a_text(self):
        found = analyze_csv("amount", text=SALES, group_by="region")
        self.assertEqual(found.rows, 3)
        north = Summary("north", 2, 0.3, 0.15, 0.1, 0.2)
        self.assertEqual(found.groups, [north, Summary("south", 1, 3, 3, 3, 3)])

    def test_sums_a_file(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(app, "DATA", Path(folder)):
            Path(folder, "sales.csv").write_text("\ufeff" + SALES, encoding="utf-8")
            self.assertEqual(analyze_csv("amount", file="sales.csv").groups, [Summary(None, 3, 3.3, 1.1, 0.1, 3)])
            with self.assertRaisesRegex(InvalidArguments, "there is no other.csv, only sales.csv"):
                analyze_csv("amount", file="other.csv")

    def test_says_what_is_wrong(self):
        for arguments, words in [
            ({}, "give either"),
            ({"text": SALES, "file": "a"}, "give either"),
            ({"text": "a,b\n1,2"}, "there is no column amount, only a, b"),
            ({"text": ""}, "only an empty table"),
            ({"text": "amount\n1\nten"}, "line 3 has 'ten', which is no number"),
            ({"text": "amount\nnan"}, "no number"),
        ]:
            with self.assertRaisesRegex(InvalidArguments, words):
                analyze_csv("amount", **arguments)


if __name__ == "__main__":
    unittest.main()
