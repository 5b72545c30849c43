"""The errors of a build: one line each, before and after `componentize-py`."""

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from tests.support import TestCase
from toolbay.build import componentize, natives
from toolbay.build.errors import NativeImportError

ROOT = Path(__file__).parent.parent

TRACEBACK = """Traceback (most recent call last):
  File "/x/.venv/bin/componentize-py", line 8, in <module>
    sys.exit(script())
AssertionError: printed at the top level

Traceback (most recent call last):
  File "/1/toolbay_guest/start.py", line 60, in <module>
  File "src/app.py", line 7, in <module>
    import helper
  File "src/helper.py", line 3, in <module>
    1 / 0
ZeroDivisionError: division by zero

Caused by:
    0: error while executing at wasm backtrace:
           0:  0x21d8c - libc.so!exit_exit
    1: Exited with i32 exit status 1

Stack backtrace:
   0: <anyhow::Error>::new
  31: _start
"""

WIT = """Traceback (most recent call last):
  File "/x/.venv/bin/componentize-py", line 8, in <module>
    sys.exit(script())
AssertionError: failed to resolve directory while parsing WIT for path [wit]

Caused by:
    0: failed to parse package: wit
    1: failed to read file "wit/plugin.wit"
    2: No such file or directory (os error 2)

Stack backtrace:
   0: <core::io::error::Error as anyhow::context::ext::StdError>::ext_context
"""

TRAP = """AssertionError: so far

Caused by:
    0: error while executing at wasm backtrace:
           0: 0x39a7b7 - libpython3.14.so!Py_Exit
    1: wasm trap: call stack exhausted

Stack backtrace:
   0: <anyhow::Error>::new
"""


class BuildTest(TestCase):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        # A temporary folder may be a link.
        self.folder = Path(folder.name).resolve()
        (self.folder / "plugin.toml").write_text('output = "a.wasm"\n')
        # Where packages would be installed.
        self.packages = self.folder / "packages"
        (self.folder / "src").mkdir()

    def package(self, name: str, content: str) -> None:
        path = self.packages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def native(self, name: str) -> None:
        self.package(name + (sysconfig.get_config_var("EXT_SUFFIX") or ".so"), "not a library")

    def error(self, source: str) -> str:
        """Returns the output of a build that fails before `componentize-py` runs, which is not installed here."""
        (self.folder / "src/app.py").write_text(source)
        path = os.pathsep.join([str(ROOT), str(self.packages)])
        done = subprocess.run(
            [sys.executable, "-B", "-m", "toolbay.build"],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        return done.stderr

    def test_native_code_is_one_line_with_the_chain(self) -> None:
        self.package("mcp/__init__.py", "from .server import x\n")
        self.package("mcp/server.py", "import pydantic\nx = 1\n")
        self.package("pydantic/__init__.py", "from pydantic_core import y\n")
        self.package("pydantic_core/__init__.py", "from ._pydantic_core import y\n")
        self.native("pydantic_core/_pydantic_core")
        self.assertEqual(
            self.error("import json\n\nimport mcp\n"),
            "src/app.py:3: mcp needs native code (mcp > pydantic > pydantic_core), and a plugin is pure Python: use the "
            "SDK that you already have: `from toolbay import tool`, which has FastMCP's decorators\n",
        )

    def test_native_code_that_a_package_reports_itself(self) -> None:
        self.package(
            "numpy/__init__.py",
            "try:\n    from . import core\nexcept ImportError as e:\n    raise ImportError('long') from e\n",
        )
        self.native("numpy/core")
        self.assertEqual(
            self.error("import numpy\n"),
            "src/app.py:1: numpy has native code, and a plugin is pure Python: use lists with `statistics`, `math` and "
            "`array`, or a plugin in Rust or Go\n",
        )

    def test_native_code_that_the_package_above_reports_too(self) -> None:
        report = "try:\n    import {}\nexcept ImportError as e:\n    raise ImportError('long') from e\n"
        self.package("pandas/__init__.py", report.format("numpy"))
        self.package("numpy/__init__.py", report.format("numpy.core"))
        self.native("numpy/core")
        self.assertEqual(
            self.error("import pandas\n"),
            "src/app.py:1: pandas needs native code (pandas > numpy), and a plugin is pure Python: use `csv` and `sqlite3`, "
            "or the package `agate`\n",
        )

    def test_what_replaces_a_package_that_another_one_needs_does_not_replace_the_latter(self) -> None:
        self.package("wrapper/__init__.py", "import regex\n")
        self.native("regex")
        self.assertEqual(
            self.error("import wrapper\n"),
            "src/app.py:1: wrapper needs native code (wrapper > regex), and a plugin is pure Python: look for another "
            "package than wrapper; instead of regex, use `re`\n",
        )

    def test_native_code_of_an_unknown_package(self) -> None:
        self.native("unheard")
        self.assertIn("unheard has native code", self.error("def f():\n    import unheard\nf()\n"))
        self.assertIn("src/app.py:2: ", self.error("def f():\n    import unheard\nf()\n"))

    def test_native_code_with_a_substitute_is_no_error(self) -> None:
        self.package(
            "quick/__init__.py",
            "try:\n    from . import fast\nexcept ImportError:\n    fast = None\nfrom . import both\n",
        )
        self.native("quick/fast")
        self.native("quick/both")
        self.package("quick/both.py", "x = 1\n")
        error = self.error("import quick\nfrom toolbay import tool\n@tool\ndef a() -> str:\n    'A.'\n    return ''\n")
        self.assertIn("componentize-py is missing", error)

    def test_other_errors_are_one_line_with_the_place(self) -> None:
        self.package("broken.py", "import sys\n1 / 0\n")
        for source, line in (
            ("a = 1\nif a\n", "src/app.py:2: SyntaxError: expected ':'"),
            ("import absent\n", "src/app.py:1: no module 'absent' is installed: add its package to requirements.txt"),
            ("x = 1\nimport broken\n", "src/app.py:2: ZeroDivisionError: division by zero"),
            ("def f():\n    raise KeyError('k')\n\nf()\n", "src/app.py:2: KeyError: 'k'"),
            ("import sys\nsys.exit(3)\n", "src/app.py:2: the module ends the program: SystemExit(3)"),
            ("x = 1\n", "app.py offers nothing"),
            ("from toolbay import tool\n@tool\ndef f(x: object) -> str:\n    'F.'\n    return ''\n", "object"),
        ):
            with self.subTest(source):
                error = self.error(source)
                self.assertIn(line, error)
                self.assertEqual(len(error.splitlines()), 1, error)

    def test_a_missing_app_is_named(self) -> None:
        done = subprocess.run(
            [sys.executable, "-B", "-m", "toolbay.build", "--source", "none"],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual((done.returncode, done.stderr), (1, f"{self.folder / 'none'}: there is no app.py\n"))


class NativesTest(TestCase):
    def test_pythons_own_native_modules_are_not_refused(self) -> None:
        with natives.NativeFinder() as finder:
            for name in ("_json", "_ctypes", "_decimal"):
                sys.modules.pop(name, None)
                __import__(name)
        self.assertEqual(finder.refused, [])
        self.assertTrue(issubclass(NativeImportError, ImportError))


class ShortenedTest(TestCase):
    def test_an_error_of_the_plugin_has_its_place(self) -> None:
        self.assertEqual(
            componentize.shortened(TRACEBACK),
            "printed at the top level\nsrc/helper.py:3: ZeroDivisionError: division by zero",
        )

    def test_an_error_of_componentize_is_in_one_line(self) -> None:
        self.assertEqual(
            componentize.shortened(WIT),
            "failed to resolve directory while parsing WIT for path [wit]: failed to parse package: wit: failed to read "
            'file "wit/plugin.wit": No such file or directory (os error 2)',
        )

    def test_a_trap_is_named(self) -> None:
        said = componentize.shortened(TRAP)
        self.assertTrue(said.startswith("so far\n") and said.endswith("wasm trap: call stack exhausted"), said)

    def test_too_much_memory_is_said(self) -> None:
        said = "AssertionError: retrieving memory with component-init-get-memory\n\nCaused by:\n    0: too much data is being copied between the host and the guest: fuel allocated for hostcalls has been exhausted\n"
        self.assertIn("more than 128 MiB", componentize.shortened(said))

    def test_no_output_is_said(self) -> None:
        self.assertEqual(componentize.shortened(""), "componentize-py failed without a message")


class RequirementsTest(TestCase):
    def test_every_project_has_the_same_requirements(self) -> None:
        requirements = (ROOT / "template/requirements.txt").read_text()
        self.assertIn("componentize-py==0.25.1\n", requirements)
        self.assertEqual(requirements, (ROOT / "plain/requirements.txt").read_text())
