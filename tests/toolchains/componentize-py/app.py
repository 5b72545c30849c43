# Modules that are imported only on demand are not in the component.
import encodings.idna  # noqa: F401
import urllib.request

import componentize_py_types
from wit_world import exports
from wit_world.exports.texts import Place
from wit_world.imports import store


class Texts(exports.Texts):
    async def greet(self, name: str) -> str:
        if not name:
            raise componentize_py_types.Err("the name is empty")
        return f"Hello, {name}."

    def double(self, n: int) -> int:
        return n * 2

    def find(self, text: str, word: str) -> list[Place]:
        lines = enumerate(text.split("\n"), 1)
        return [Place(line, found) for line, words in lines for found in words.split() if found == word]

    def visits(self) -> int:
        bucket = store.open("")
        visits = int(bucket.get("visits") or b"0") + 1
        bucket.set("visits", str(visits).encode())
        return visits

    def fetch(self, url: str) -> str:
        with urllib.request.urlopen(url) as response:
            return response.read().decode()
