import componentize_py_types
from wit_world import exports
from wit_world.exports.texts import Place


class Texts(exports.Texts):
    def greet(self, name: str) -> str:
        if not name:
            raise componentize_py_types.Err("the name is empty")
        return f"Hello, {name}."

    def double(self, n: int) -> int:
        return n * 2

    def find(self, text: str, word: str) -> list[Place]:
        lines = enumerate(text.split("\n"), 1)
        return [Place(line, found) for line, words in lines for found in words.split() if found == word]
