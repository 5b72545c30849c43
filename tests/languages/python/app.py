"""An acceptance plugin: every kind of result of a tool, and all other offers."""

import asyncio
import datetime
import http.client
import socket
import sqlite3
import tempfile
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TypedDict
from urllib.parse import urlsplit

import httpx
import requests

from toolbay import (
    Accepted,
    Declined,
    Form,
    Image,
    InvalidArguments,
    Text,
    Unsupported,
    ask,
    beginning_with,
    cancelled,
    completion,
    config,
    keyvalue,
    log,
    progress,
    prompt,
    resource,
    resource_updated,
    tool,
)


@tool(read_only=True)
def python_echo(text: str) -> str:
    """Says a text back."""
    return text


@tool
def python_boom() -> str:
    """Raises an exception that nothing catches."""
    raise ValueError("kaboom: 42")


@tool
def python_refuse() -> str:
    """Refuses its arguments."""
    raise InvalidArguments("not today")


@tool(read_only=True)
def python_image() -> tuple[Image, Text]:
    """Shows a picture, and says that it is one."""
    return Image(b"\x89PNG\r\n\x1a\n"), Text("a picture")


class Report(TypedDict):
    units: str | None
    cancelled: bool


@tool(read_only=True)
def python_report() -> Report:
    """Says how it gets on, and what the operator configured."""
    log.info("working")
    progress(1, 2)
    progress(2, 2)
    return {"units": config("units"), "cancelled": cancelled()}


class Response(TypedDict):
    status: int
    header: str
    text: str


@tool
def python_send(url: str, method: str = "GET", body: str = "") -> Response:
    """Sends an HTTP request."""
    request = urllib.request.Request(url, body.encode() or None, {"X-Own": "value"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return {
                "status": response.status,
                "header": response.headers.get("X-Got", ""),
                "text": response.read().decode(),
            }
    except urllib.error.HTTPError as error:
        return {"status": error.code, "header": "", "text": error.read().decode()}


@tool
async def python_meet(url: str) -> list[str]:
    """Sends three requests that the server answers only when it has all of them."""
    async with httpx.AsyncClient() as client, asyncio.timeout(60):
        answers = await asyncio.gather(*(client.get(url) for _ in range(3)))
    return [answer.text for answer in answers]


@tool
async def python_later(day: datetime.date, days: int) -> datetime.date:
    """Says which day is some days later, after a while."""
    done = []

    async def wait(part: int) -> None:
        await asyncio.sleep(0.001)
        done.append(await asyncio.to_thread(lambda: part))

    async with asyncio.TaskGroup() as group:
        for part in range(days):
            group.create_task(wait(part))
    try:
        await asyncio.wait_for(asyncio.Event().wait(), 0.001)
    except TimeoutError:
        pass
    return day + datetime.timedelta(days=len(done))


@tool
def python_libraries(base: str) -> list[str]:
    """Sends requests with each library."""
    said = []
    with requests.Session() as session:
        session.auth = ("me", "secret")
        said.append(session.get(f"{base}/echo", params={"a": "é"}, timeout=10).text)
        said.append(session.post(f"{base}/echo", data=b"x" * 100_000, verify=False).text[-10:])
        redirected = session.get(f"{base}/redirect")
        said.append(f"{redirected.history[0].status_code} {redirected.text}")
        said.append(b"".join(session.get(f"{base}/echo", stream=True).iter_content(5)).decode())
    with httpx.Client(follow_redirects=True) as client:
        said.append(client.put(f"{base}/echo", content=(piece for piece in [b"a", b"b"])).text)
        redirected = client.get(f"{base}/redirect")
        said.append(f"{redirected.history[0].status_code} {redirected.text}")
    address = urlsplit(base)
    connection = http.client.HTTPConnection(address.hostname or "", address.port)
    connection.request("GET", "/echo")
    said.append(connection.getresponse().read().decode())
    return said


@tool
def python_denials(base: str) -> list[str]:
    """Does what is denied, with each library, and says how it ends."""
    acts = [
        lambda: requests.get("https://example.com/"),
        lambda: httpx.get("https://example.com/"),
        lambda: asyncio.run(httpx.AsyncClient().get("https://example.com/")),
        lambda: requests.get(f"{base}/cut"),
        lambda: httpx.get(f"{base}/cut"),
        lambda: socket.create_connection(("example.com", 80)),
        lambda: threading.Thread(target=print).start(),
        lambda: tempfile.TemporaryFile(),
        lambda: asyncio.run(asyncio.Event().wait()),
    ]
    said = []
    for act in acts:
        try:
            act()
            said.append("it worked")
        except Exception as error:
            said.append(f"{type(error).__name__}: {error}")
    return said


class State(TypedDict):
    before: str
    count: int
    keys: list[str]


@tool
def python_keep(key: str, value: str) -> State:
    """Keeps a value, and returns what was there before."""
    bucket = keyvalue.open()
    before = bucket.text(key, "")
    bucket[key] = value
    bucket["gone"] = b""
    del bucket["gone"]
    return {"before": before, "count": bucket.increment("count", 2), "keys": sorted(bucket)}


@dataclass
class Name:
    name: str


@tool
def python_ask() -> str:
    """Asks for a name."""
    try:
        answer = ask("name", Form("Which name?", Name, required=False))
    except Unsupported:
        return "nobody to ask"
    match answer:
        case Accepted(Name(name)):
            return f"Hello, {name}."
        case Declined():
            return "declined"
        case _:
            return "cancelled"


ABOUT = "python://about"


@tool
def python_touch() -> str:
    """Says that a resource changed."""
    resource_updated(ABOUT)
    return "touched"


@prompt
def python_greeting(name: str, style: str | None = None) -> str:
    """Greets somebody."""
    return f"Greet {name}." if style is None else f"Greet {name} in a {style} style."


@completion(python_greeting, "style")
def styles(value: str) -> list[str]:
    return beginning_with(value, ["formal", "friendly", "funny"])


@resource(ABOUT, name="about", mime_type="text/plain")
def about() -> str:
    """Says what this is."""
    return "A plugin in python."


@resource("python://notes/{id}", name="note", mime_type="text/plain")
def note(id: str) -> str | None:
    """A note."""
    return None if id == "none" else f"Note {id}."


@tool(read_only=True)
def python_library() -> dict[str, str]:
    """Uses parts of Python's library that a component could lack: modules, data and time zones that are read in a call."""
    from datetime import datetime
    from importlib import import_module
    from pathlib import Path
    from zoneinfo import ZoneInfo

    with sqlite3.connect(":memory:") as database:
        answer = database.execute("SELECT 40 + 2").fetchone()[0]
    # `ctypes` can be imported, and cannot be used.
    try:
        import_module("ctypes").CDLL("libc.so.6")
        native = "loaded"
    except NotImplementedError as error:
        native = str(error).partition(":")[0]
    return {
        "zone": datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Europe/Paris")).isoformat(),
        "codecs": "".join(text.encode(codec).hex() for text, codec in (("я", "cp1251"), ("日", "shift_jis"), ("ü", "idna"))),
        "computed": import_module("html" + ".entities").name2codepoint["auml"].__str__(),
        "data": Path(__file__).with_name("requirements.txt").read_text(encoding="utf-8").partition("=")[0],
        "database": str(answer),
        "native": native,
    }


# Opened in the build, so that its random numbers would be the same in every call.
DATABASE = sqlite3.connect(":memory:")


@tool
def python_draw() -> dict[str, str]:
    """Draws random numbers, which differ between calls although the builds are the same."""
    import random
    import secrets
    import tempfile
    import uuid

    return {
        "random": str(random.random()),
        "secrets": secrets.token_hex(8),
        "uuid": str(uuid.uuid4()),
        "database": str(DATABASE.execute("SELECT random()").fetchone()[0]),
        "file": next(tempfile._get_candidate_names()),
    }
