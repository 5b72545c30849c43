"""The host's functions for tools, and their replacement in tests."""

import contextlib
import enum
import io
from typing import Literal, Optional

from tests.support import TestCase
from toolbay import Failed, cancelled, config, config_all, log, progress, testing


class Unit(enum.Enum):
    METRIC = "metric"


class Host(TestCase):
    def test_a_recorder_keeps_what_was_said(self) -> None:
        with testing.recorder() as host:
            progress(1, 2)
            progress(2, message="almost")
            log.info("working")
            log.emergency("nothing works")
        self.assertEqual(host.reports, [testing.Progress(1, 2), testing.Progress(2, None, "almost")])
        self.assertEqual(host.lines, [(log.Level.INFO, "working"), (log.Level.EMERGENCY, "nothing works")])

    def test_a_call_may_be_cancelled(self) -> None:
        with testing.recorder(cancelled=True):
            self.assertTrue(cancelled())
        self.assertFalse(cancelled())

    def test_each_level_has_a_function(self) -> None:
        with testing.recorder() as host:
            for level in log.Level:
                getattr(log, level.value)("x")
        self.assertEqual([level for level, _ in host.lines], list(log.Level))

    def test_configuration_is_read_as_what_is_asked_for(self) -> None:
        values = {"units": "metric", "port": 80, "hosts": ["a"], "name": "5", "ratio": 0.5}
        with testing.recorder(values):
            self.assertEqual(config("units"), "metric")
            self.assertEqual(config("units", Unit), Unit.METRIC)
            self.assertEqual(config("port"), "80")
            self.assertEqual(config("port", int), 80)
            self.assertEqual(config("hosts", list[str]), ["a"])
            self.assertEqual(config("name", Optional[str]), "5")
            self.assertEqual(config("ratio", float), 0.5)
            self.assertIsNone(config("absent", int))
            self.assertEqual(config_all()["hosts"], '["a"]')
            self.assertEqual(list(config_all()), ["hosts", "name", "port", "ratio", "units"])

    def test_configuration_that_does_not_fit(self) -> None:
        cases = [
            ("units", int, 'the operator\'s `config.units`: expected an integer, got "si"'),
            ("units", Literal["metric"], 'the operator\'s `config.units`: expected "metric", got "si"'),
            ("hosts", list[str], "the operator's `config.hosts[0]`: expected a string, got 1"),
        ]
        with testing.recorder({"units": "si", "hosts": [1]}):
            for key, hint, expected in cases:
                with self.subTest(key), self.assertRaises(Failed) as caught:
                    config(key, hint)
                self.assertEqual(str(caught.exception), expected)

    def test_without_a_host_nothing_happens(self) -> None:
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            log.warning("odd")
            progress(1)
        self.assertEqual(errors.getvalue(), "warning: odd\n")
        self.assertIsNone(config("units"))
