"""State in the memory of tests, which is used like that of the host."""

from tests.support import TestCase
from toolbay import keyvalue


class Buckets(TestCase):
    def setUp(self) -> None:
        keyvalue.forget()

    def test_a_bucket_is_a_mapping(self) -> None:
        bucket = keyvalue.open("a")
        bucket["x"] = "é"
        bucket["y"] = b"\xff"
        self.assertEqual((bucket["x"], bucket["y"]), ("é".encode(), b"\xff"))
        self.assertEqual((bucket.text("x"), bucket.text("z"), bucket.text("z", "none")), ("é", None, "none"))
        self.assertEqual((bucket.get("z"), bucket.get("z", b"")), (None, b""))
        self.assertTrue("x" in bucket and "z" not in bucket and 5 not in bucket)
        del bucket["y"]
        for missing in (lambda: bucket["y"], lambda: bucket.pop("y")):
            with self.assertRaises(KeyError):
                missing()
        self.assertEqual(dict(keyvalue.open("a")), {"x": "é".encode()})
        self.assertEqual(len(keyvalue.open()), 0)

    def test_keys_come_page_by_page(self) -> None:
        bucket = keyvalue.open()
        names = [f"key {number}" for number in range(5)]
        for name in names:
            bucket[name] = ""
        self.assertEqual(sorted(bucket), names)

    def test_calls_count(self) -> None:
        bucket = keyvalue.open()
        self.assertEqual([bucket.increment("n"), bucket.increment("n", 4)], [1, 5])
