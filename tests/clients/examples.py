"""The plugins of `examples/` in languages other than Rust, with their grants."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from mcp import Client

from client import Checks
from site_for_plugins import Site

EXAMPLES = Path(__file__).parents[2] / "examples"

TABLE = "region,amount\nnorth,0.1\nsouth,3\nnorth,0.2\n"


def prepare(plugins: Path, site: Site) -> None:
    """Adds the grants of the examples that are present: those that authors copy, for servers of this machine."""
    for name in ("weather", "csv", "notes", "sqlite"):
        if not (plugins / f"{name}.wasm").exists():
            continue
        grant = (EXAMPLES / name / f"{name}.toml").read_text()
        grant = grant.replace("https://api.open-meteo.com", site.origin)
        grant = grant.replace("[permissions]\n", '[permissions]\nprivate_networks = ["127.0.0.1"]\n')
        (plugins / f"{name}.toml").write_text(grant)
    tables = plugins.parent / "tables"
    tables.mkdir(exist_ok=True)
    (tables / "sales.csv").write_text(TABLE)
    databases = plugins.parent / "databases"
    databases.mkdir(exist_ok=True)
    make_database(databases / "sales.db", "DELETE")
    make_database(databases / "logged.db", "WAL")


def make_database(file: Path, journal: str) -> None:
    """Creates a database with two sales, written with this kind of journal."""
    file.unlink(missing_ok=True)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(f"PRAGMA journal_mode = {journal}")
        database.execute("CREATE TABLE sales (region TEXT, amount REAL, note BLOB)")
        database.executemany("INSERT INTO sales VALUES (?, ?, ?)", [("north", 0.5, None), ("café", 3, b"\x00\xff")])


async def check(client: Client, plugins: Path, site: Site, checks: Checks) -> None:
    """Calls the examples that are present."""
    for name, calls in (("weather", weather), ("csv", csv), ("notes", notes), ("sqlite", sqlite)):
        if (plugins / f"{name}.wasm").exists():
            await calls(Example(client, name, checks))


class Example:
    """Calls one example, and checks the results."""

    def __init__(self, client: Client, name: str, checks: Checks) -> None:
        self.client = client
        self.name = name
        self.checks = checks

    async def answers(self, what: str, tool: str, arguments: dict, expected: object) -> None:
        result = await self.client.call_tool(tool, arguments)
        text = "".join(block.text for block in result.content if block.type == "text")
        found = text if isinstance(expected, str) else result.structured_content
        self.checks.check(f"{self.name}: {what}", not result.is_error and found == expected, str(result)[:1_000])

    async def fails(self, what: str, tool: str, arguments: dict, words: str) -> None:
        result = await self.client.call_tool(tool, arguments)
        text = "".join(block.text for block in result.content if block.type == "text")
        self.checks.check(f"{self.name}: {what}", bool(result.is_error) and words in text, str(result)[:1_000])


async def weather(example: Example) -> None:
    expected = {
        "temperature": 12.5,
        "wind": 9,
        "days": [{"date": "2026-04-01", "low": 4, "high": 14, "rain": 0.3}],
    }
    await example.answers("tells the weather", "get_weather", {"latitude": 52.52, "longitude": 13.41}, expected)
    await example.fails("refuses no place", "get_weather", {"latitude": 91, "longitude": 0}, "latitude")


async def csv(example: Example) -> None:
    north = {"group": "north", "count": 2, "sum": 0.3, "average": 0.15, "minimum": 0.1, "maximum": 0.2}
    south = {"group": "south", "count": 1, "sum": 3.0, "average": 3.0, "minimum": 3.0, "maximum": 3.0}
    grouped = {"column": "amount", "group_by": "region"}
    for given in ({"file": "sales.csv"}, {"text": TABLE}):
        expected = {"rows": 3, "groups": [north, south]}
        await example.answers(f"sums up a {next(iter(given))}", "analyze_csv", {**grouped, **given}, expected)
    outside = {"column": "amount", "file": "../notes.toml"}
    await example.fails("reads no other folder", "analyze_csv", outside, "cannot be read")
    await example.fails("says which files there are", "analyze_csv", {"column": "a", "file": "x.csv"}, "only sales.csv")


async def notes(example: Example) -> None:
    await example.answers("writes", "notes_write", {"title": "milk", "text": "buy some"}, "Noted.")
    await example.answers("reads what another call wrote", "notes_read", {"title": "milk"}, "buy some")
    await example.answers("lists", "notes_list", {}, {"titles": ["milk"]})
    await example.answers("deletes", "notes_delete", {"title": "milk"}, "There is no such note now.")
    await example.fails("misses what was deleted", "notes_read", {"title": "milk"}, "there is no note")


async def sqlite(example: Example) -> None:
    sales = {"columns": ["region", "amount", "note"], "rows": [["café", 3, "00ff"], ["north", 0.5, None]], "more": False}
    for file in ("sales.db", "logged.db"):
        asked = {"file": file, "sql": "SELECT * FROM sales ORDER BY amount DESC"}
        await example.answers(f"reads {file}", "query_sqlite", asked, sales)
    first = {"columns": ["amount"], "rows": [[0.5]], "more": True}
    asked = {"file": "sales.db", "sql": "SELECT amount FROM sales ORDER BY 1", "limit": 1}
    await example.answers("returns as many rows as were asked for", "query_sqlite", asked, first)
    for sql in ("DELETE FROM sales", "ATTACH '/data/logged.db' AS other", "PRAGMA journal_mode = DELETE", "VACUUM"):
        asked = {"file": "sales.db", "sql": sql}
        await example.fails(f"refuses {sql}", "query_sqlite", asked, "only SELECT is possible")
    asked = {"file": "none.db", "sql": "SELECT 1"}
    await example.fails("says which file there is not", "query_sqlite", asked, "none.db cannot be opened")
    asked = {"file": "../sales.db", "sql": "SELECT 1"}
    await example.fails("reads no other folder", "query_sqlite", asked, "/file")
