"""The functions that `wit/{{name}}.wit` declares: each is a tool."""

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.texts import Counts


class Texts(exports.Texts):
    def greet(self, name: str, excited: bool | None) -> str:
        if not name.strip():
            raise Err("name is empty: say who to greet")
        return f"HELLO, {name.upper()}!" if excited else f"Hello, {name}."

    def count(self, text: str) -> Counts:
        lines = text.count("\n") + 1 if text else 0
        return Counts(characters=len(text), words=len(text.split()), lines=lines)
