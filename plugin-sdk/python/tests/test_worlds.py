"""The world that a plugin targets."""

import re
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Literal

from tests.support import TestCase
from toolbay import completion, prompt, registry, resource, tool, worlds
from toolbay.errors import DefinitionError

SDK = Path(worlds.__file__).parent

TOOL = '''
import toolbay

print("loaded")

@toolbay.tool
def one() -> str:
    """Is one."""
    return ""
'''

PROMPT = '''
@toolbay.prompt
def two() -> str:
    """Is two."""
    return ""
'''


def one(a: str = "") -> str:
    """Is one."""
    return ""


def chosen(a: Literal["b"]) -> str:
    """Is one of a few."""
    return ""


class Worlds(TestCase):
    def test_each_is_there(self) -> None:
        text = (SDK / "wit" / "python.wit").read_text()
        found = dict(re.findall(r"^world (\S+) \{\n    include python-imports;\n(.*?)^\}", text, re.M | re.S))
        parts = ["Tools", "Prompts", "Resources", "Completion"]
        expected = {}
        for chosen in product([False, True], repeat=4):
            some = [part for part, is_in in zip(parts, chosen, strict=True) if is_in]
            # Only completion, without other offers, would complete nothing.
            if some and set(some) & {"Prompts", "Resources"} or some == ["Tools"]:
                expected[worlds.world(some)] = "".join(f"    export {part.lower()};\n" for part in some)
        self.assertEqual(found, expected)

    def test_it_has_what_the_plugin_offers(self) -> None:
        self.assertEqual(worlds.needed(registry.offers()), [])
        prompt(one)
        self.assertEqual(worlds.needed(registry.offers()), ["Prompts"])
        completion(one, "a")(lambda value: [])
        self.assertEqual(worlds.needed(registry.offers()), ["Prompts", "Completion"])
        tool(one)
        resource("a:{a}")(one)
        self.assertEqual(worlds.needed(registry.offers()), ["Tools", "Prompts", "Resources", "Completion"])

    def test_what_is_one_of_a_few_values_is_completed(self) -> None:
        prompt(chosen)
        offered = registry.offers()
        self.assertEqual(worlds.needed(offered), ["Prompts", "Completion"])
        # The completion is optional.
        worlds.check(offered, {"Prompts"})

    def test_what_would_not_be_exported_is_an_error(self) -> None:
        with self.assertRaisesRegex(DefinitionError, "app.py offers nothing: put `@tool`, `@prompt` or `@resource`"):
            worlds.check(registry.offers(), {"Tools"})
        tool(one)
        worlds.check(registry.offers(), {"Tools"})
        prompt(one)
        completion(one, "a")(lambda value: [])
        with self.assertRaises(DefinitionError) as caught:
            worlds.check(registry.offers(), {"Tools"})
        self.assertEqual(
            str(caught.exception),
            "app.py has prompts, completions that the component would not export: write "
            "`--world python-tools-prompts-completion` in the build command, in plugin.toml",
        )

    def test_the_command_says_which(self) -> None:
        cases = [(TOOL, "python"), (TOOL + PROMPT, "python-tools-prompts")]
        for app, expected in cases:
            with self.subTest(expected):
                self.assertEqual(self.run_command(app), (0, f"{expected}\n", "loaded\n"))

    def test_the_command_says_what_is_wrong(self) -> None:
        for app, message in (
            ("import nothing_of_the_kind", "app.py:1: no module 'nothing_of_the_kind' is installed"),
            ("raise SystemExit", "app.py:1: the module ends the program"),
            ("", "app.py offers nothing"),
        ):
            with self.subTest(message):
                code, said, error = self.run_command(app)
                self.assertEqual((code, said), (1, ""))
                self.assertIn(message, error)

    def run_command(self, app: str) -> tuple[int, str, str]:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "app.py").write_text(app)
            command = [sys.executable, "-B", "-m", "toolbay.worlds", folder]
            done = subprocess.run(command, cwd=SDK.parent, capture_output=True, text=True, check=False)
            self.assertEqual([path.name for path in Path(folder).iterdir()], ["app.py"])
            return done.returncode, done.stdout, done.stderr
