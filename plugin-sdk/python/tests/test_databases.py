"""Random numbers of SQLite in a component."""

import sqlite3
import types
import unittest
from unittest import mock

from toolbay import databases


def adapted() -> types.SimpleNamespace:
    """Returns a module like `sqlite3` that is adapted, so that other tests keep theirs."""
    module = types.SimpleNamespace(connect=sqlite3.connect, dbapi2=types.SimpleNamespace(connect=sqlite3.connect))
    databases.adapt(module)  # type: ignore[arg-type]
    return module


class RandomTest(unittest.TestCase):
    def test_the_numbers_are_those_of_the_system(self) -> None:
        module = adapted()
        for connect in (module.connect, module.dbapi2.connect):
            with mock.patch("os.urandom", lambda size: b"\xfe" + b"\xff" * (size - 1)):
                found = connect(":memory:").execute("SELECT random(), hex(randomblob(3)), hex(randomblob(0)), randomblob(NULL)")
                self.assertEqual(found.fetchone(), (-2, "FEFFFF", "FE", b"\xfe"))

    def test_rows_can_be_shuffled(self) -> None:
        connection = adapted().connect(":memory:", isolation_level=None)
        connection.execute("CREATE TABLE numbers (value INTEGER, key TEXT DEFAULT (hex(randomblob(8))))")
        connection.executemany("INSERT INTO numbers (value) VALUES (?)", [(number,) for number in range(50)])
        shuffled = [value for (value,) in connection.execute("SELECT value FROM numbers ORDER BY random()")]
        self.assertNotEqual(shuffled, list(range(50)))
        self.assertEqual(sorted(shuffled), list(range(50)))
        self.assertEqual(connection.execute("SELECT count(DISTINCT key) FROM numbers").fetchone(), (50,))


if __name__ == "__main__":
    unittest.main()
