"""The modules that exist only in a component, with a host of the test's own."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import io
import sys
import threading
import types
import unittest
from collections.abc import Iterator
from typing import Any

NAMES = [
    "componentize_py_types",
    "wit_world",
    "wit_world.imports",
    "toolbay.exchange",
    "toolbay.eventloop",
    "toolbay.httpclient",
    "toolbay.sockets",
    "toolbay.threads",
    "toolbay.scratch",
    "toolbay.home",
    "toolbay.adapters",
]


class Ok:
    __match_args__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Err(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class Event:
    """A pollable, which happens after some polls, and whose drops are counted."""

    def __init__(self, host: FakeHost, polls: float = 0) -> None:
        self.host, self.polls, self.is_open = host, polls, True
        host.open.append(self)

    def ready(self) -> bool:
        assert self.is_open
        return self.polls <= 0

    def block(self) -> None:
        self.host.poll([self])

    def __enter__(self) -> Event:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.is_open, "dropped twice"
        self.is_open = False
        self.host.open.remove(self)


class FakeHost:
    """The functions of the host."""

    def __init__(self) -> None:
        self.open: list[Event] = []
        self.timers: list[float] = []

    def poll(self, events: list[Event]) -> list[int]:
        assert events and all(event.is_open for event in events)
        least = min(event.polls for event in events)
        for event in events:
            event.polls -= least
        return [index for index, event in enumerate(events) if event.polls <= 0]

    def subscribe_duration(self, nanoseconds: int) -> Event:
        self.timers.append(nanoseconds)
        # A timer is later than every other event.
        return Event(self, 1_000)


@contextlib.contextmanager
def guest() -> Iterator[FakeHost]:
    """Makes the modules of a component importable."""
    host = FakeHost()
    before = {name: sys.modules.pop(name, None) for name in NAMES}
    imports: Any = types.ModuleType("wit_world.imports")
    imports.poll = types.SimpleNamespace(poll=host.poll)
    imports.monotonic_clock = types.SimpleNamespace(subscribe_duration=host.subscribe_duration)
    imports.outgoing_handler = imports.streams = imports.wasi_http_types = types.SimpleNamespace()
    kinds: Any = types.ModuleType("componentize_py_types")
    kinds.Ok, kinds.Err = Ok, Err
    sys.modules |= {"wit_world": types.ModuleType("wit_world"), "wit_world.imports": imports, kinds.__name__: kinds}
    try:
        yield host
    finally:
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


def adapter(name: str) -> Any:
    return importlib.import_module(f"toolbay.{name}")


@unittest.skipIf(sys.version_info < (3, 11), "components have Python 3.14")
class Loop(unittest.TestCase):
    def run_in_loop(self, coroutine: Any) -> Any:
        loop = adapter("eventloop").PollEventLoop()
        try:
            return loop.run_until_complete(coroutine)
        finally:
            loop.close()

    def test_several_events_are_waited_for_at_once(self) -> None:
        with guest() as host:
            order: list[str] = []

            async def wait(name: str, polls: int) -> None:
                with Event(host, polls) as event:
                    loop: Any = asyncio.get_running_loop()
                    await loop.until(event, None)
                order.append(name)

            async def all_of_them() -> None:
                await asyncio.gather(wait("c", 3), wait("a", 1), wait("b", 2))

            self.run_in_loop(all_of_them())
            self.assertEqual((order, host.open), (["a", "b", "c"], []))

    def test_a_cancelled_wait_leaves_nothing(self) -> None:
        with guest() as host:

            async def wait() -> None:
                with Event(host, 5_000) as event:
                    loop: Any = asyncio.get_running_loop()
                    await loop.until(event, None)

            async def cancel() -> str:
                task = asyncio.create_task(wait())
                await asyncio.sleep(0)
                task.cancel()
                try:
                    await task
                except asyncio.CancelledError:
                    return "cancelled"
                return "done"

            self.assertEqual((self.run_in_loop(cancel()), host.open), ("cancelled", []))

    def test_a_wait_that_cannot_end_is_an_error(self) -> None:
        with guest(), self.assertRaisesRegex(RuntimeError, "would wait forever"):
            self.run_in_loop(asyncio.Event().wait())

    def test_functions_run_at_once(self) -> None:
        with guest():

            async def run() -> list[Any]:
                said: list[Any] = [await asyncio.to_thread(threading.get_ident)]
                for error in (KeyError("a"), StopIteration("b")):
                    try:
                        await asyncio.to_thread(_raise, error)
                    except Exception as raised:
                        said.append(type(raised))
                return said

            self.assertEqual(self.run_in_loop(run()), [threading.get_ident(), KeyError, RuntimeError])

    def test_sockets_and_processes_are_refused_in_words(self) -> None:
        with guest():

            async def connect() -> None:
                await asyncio.open_connection("localhost", 1)

            async def start() -> None:
                await asyncio.create_subprocess_exec("ls")

            with self.assertRaisesRegex(NotImplementedError, "no sockets in a plugin"):
                self.run_in_loop(connect())
            with self.assertRaisesRegex(NotImplementedError, "cannot start processes"):
                self.run_in_loop(start())


def _raise(error: Exception) -> None:
    raise error


class FakeExchange:
    """Takes a request, and answers with it."""

    made: list[FakeExchange] = []

    def __init__(self, target: Any, headers: Any, connect: Any = None) -> None:
        self.target, self.headers, self.connect = target, headers, connect
        self.body, self.is_finished, self.is_closed = b"", False, False
        self.parts = [b"one ", b"two"]
        FakeExchange.made.append(self)

    async def write(self, data: bytes, seconds: Any = None) -> None:
        assert not self.is_finished
        self.body += data

    async def finish(self, seconds: Any = None) -> None:
        self.is_finished = True

    async def head(self, seconds: Any = None) -> tuple[int, list[tuple[str, bytes]]]:
        assert self.is_finished
        return 201, [("x-a", b"b")]

    async def read(self, seconds: Any = None, size: int = 0) -> bytes:
        return self.parts.pop(0) if self.parts else b""

    def close(self) -> None:
        self.is_closed = True


class HttpClient(unittest.TestCase):
    def test_requests_of_each_form_are_read_and_answered(self) -> None:
        import http.client as real

        with guest():
            # A copy, so that the test's own module stays as it is.
            spec: Any = importlib.util.find_spec("http.client")
            client: Any = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(client)
            module = adapter("httpclient")
            module.Exchange = FakeExchange
            module.adapt(client)
            bodies: list[tuple[Any, dict[str, str], bytes]] = [
                (None, {}, b""),
                (b"abc", {}, b"abc"),
                ("é", {"Content-Length": "1"}, b"\xe9"),
                (io.BytesIO(b"x" * 20_000), {}, b"x" * 20_000),
                ((piece for piece in [b"a\r\n0\r\n\r\n", b"", b"b"]), {}, b"a\r\n0\r\n\r\nb"),
            ]
            for body, headers, expected in bodies:
                with self.subTest(expected[:10]):
                    connection = client.HTTPSConnection("example.com", 8443, timeout=5)
                    connection.request("POST", "/a?b=c", body, headers, encode_chunked=not hasattr(body, "read"))
                    exchange = FakeExchange.made[-1]
                    response = connection.getresponse()
                    self.assertEqual(exchange.body, expected)
                    target = exchange.target
                    self.assertEqual((target.method, target.scheme), ("POST", "https"))
                    self.assertEqual((target.authority, target.path), ("example.com:8443", "/a?b=c"))
                    self.assertEqual((response.status, response.getheader("X-A")), (201, "b"))
                    self.assertEqual((response.read(), exchange.is_closed), (b"one two", True))
            self.assertFalse(hasattr(real.HTTPConnection.connect, "__self__"))

    def test_ports_and_addresses(self) -> None:
        with guest():
            socket = adapter("httpclient").HostSocket
            for host, port, authority in [
                ("example.com", 80, "example.com"),
                ("example.com", 443, "example.com:443"),
                ("::1", 80, "[::1]"),
                ("[::1]", 8080, "[::1]:8080"),
            ]:
                self.assertEqual(socket("http", host, port, None)._authority, authority)

    def test_a_proxy_is_refused(self) -> None:
        with guest():
            spec: Any = importlib.util.find_spec("http.client")
            client: Any = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(client)
            module = adapter("httpclient")
            module.adapt(client)
            connection = client.HTTPConnection("proxy.example.com")
            connection.set_tunnel("example.com")
            with self.assertRaisesRegex(OSError, "proxies are configured by the operator"):
                connection.request("GET", "/")


class Modules(unittest.TestCase):
    def test_a_module_is_adapted_when_it_is_imported(self) -> None:
        with guest():
            adapters = adapter("adapters")
            seen: list[Any] = []
            sys.modules["toolbay.adapter_of_the_test"] = types.SimpleNamespace(adapt=seen.append)  # type: ignore[assignment]
            adapters._ADAPTERS.clear()
            adapters._ADAPTERS["this"] = "adapter_of_the_test"
            finder = adapters._Finder()
            sys.meta_path.insert(0, finder)
            sys.modules.pop("this", None)
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    this: Any = importlib.import_module("this")
                    importlib.import_module("this")
            finally:
                sys.meta_path.remove(finder)
                del sys.modules["toolbay.adapter_of_the_test"]
            self.assertEqual(seen, [this])
            self.assertIs(this.__spec__.loader, this.__loader__)
            self.assertNotIsInstance(this.__loader__, adapters._Loader)

    def test_no_socket_is_opened_while_the_plugin_is_built(self) -> None:
        with guest():

            class Socket:
                def __init__(self) -> None:
                    self.is_open = True

                def connect(self, address: Any) -> None:
                    raise PermissionError(2, "Permission denied")

                connect_ex = bind = listen = connect

            module: Any = types.SimpleNamespace(socket=Socket, getaddrinfo=lambda host: [host])
            sockets = adapter("sockets")
            sockets.adapt(module)
            with self.assertRaisesRegex(OSError, "no network while a plugin is built"):
                module.socket()
            with self.assertRaisesRegex(OSError, "no network while a plugin is built"):
                module.getaddrinfo("a")
            sockets.finish()
            self.assertEqual(module.getaddrinfo("a"), ["a"])
            with self.assertRaisesRegex(PermissionError, r"`connect` of a socket is denied: .*`tcp ="):
                module.socket().connect("a")

    def test_the_home_folder_is_the_root_if_there_is_none(self) -> None:
        with guest():
            expand = {"~": "/home/ada", "~/a": "/home/ada/a"}
            for path, without, with_one in [
                ("~", "/", "/home/ada"),
                ("~/a", "/a", "/home/ada/a"),
                (b"~/a", b"/a", b"/a"),
                ("~ada/a", "~ada/a", "~ada/a"),
                ("a/~", "a/~", "a/~"),
            ]:
                for known, expected in [({}, without), (expand, with_one)]:
                    module: Any = types.SimpleNamespace(expanduser=lambda path, known=known: known.get(path, path))
                    adapter("home").adapt(module)
                    self.assertEqual(module.expanduser(path), expected)

    def test_threads_and_temporary_files_are_refused_in_words(self) -> None:
        with guest():

            class Thread:
                pass

            threads: Any = types.SimpleNamespace(__name__="threading", Thread=Thread)
            adapter("threads").adapt(threads)
            with self.assertRaisesRegex(RuntimeError, "a plugin has no threads"):
                threads.Thread().start()

            def find() -> str:
                raise FileNotFoundError(44, "none")

            files: Any = types.SimpleNamespace(__name__="tempfile", _get_default_tempdir=find)
            adapter("scratch").adapt(files)
            with self.assertRaisesRegex(FileNotFoundError, r"the operator's grant needs `\[permissions.scratch\]`"):
                files._get_default_tempdir()


if __name__ == "__main__":
    unittest.main()
