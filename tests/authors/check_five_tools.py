"""Calls the five tools of each of the seven servers, and compares the results.

    check_five_tools.py TOOLBAY PLUGINS FASTMCP TYPESCRIPT_SDK

TOOLBAY is the server's binary, PLUGINS a folder with `LANGUAGE/five-LANGUAGE.wasm`, FASTMCP a virtual environment, and
TYPESCRIPT_SDK the built project.
"""

import sys
import tempfile
from pathlib import Path

import conversation
import service
from servers import SOURCES, Installed


class Checks:
    """Counts and prints the checks."""

    passed = 0
    failed = 0

    def check(self, what: str, seen: object, expected: object) -> None:
        if seen == expected:
            self.passed += 1
            print(f"ok      {what}")
        else:
            self.failed += 1
            print(f"FAILED  {what}: {seen!r}, not {expected!r}")


def check_server(name: str, installed: Installed, origin: str, checks: Checks) -> None:
    with tempfile.TemporaryDirectory() as folder, installed.start(name, origin, Path(folder)) as connection:
        tools = connection.wait_for_tools(set(conversation.PROPERTIES))
        checks.check(f"{name}: offers the tools", conversation.seen_tools(tools), conversation.expected_tools())
        for step in conversation.STEPS:
            seen, expected = conversation.take(step, connection)
            checks.check(f"{name}: {step.what}", seen, expected)


def main() -> None:
    installed = Installed(*(Path(argument).absolute() for argument in sys.argv[1:]))
    checks = Checks()
    with service.running() as origin:
        for name in SOURCES:
            try:
                check_server(name, installed, origin, checks)
            except (OSError, KeyError, ValueError) as error:
                checks.check(f"{name}: answers", error, None)
    print(f"{checks.passed} passed, {checks.failed} failed")
    sys.exit(checks.failed > 0)


if __name__ == "__main__":
    main()
