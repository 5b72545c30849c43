"""The event loop of `asyncio` over the host's events: timers and HTTP requests. Exists only in a component.

There are no threads: `asyncio.to_thread` and `run_in_executor` call the function
at once. There are no sockets and processes either.
"""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import asyncio
from asyncio import base_events
from collections.abc import Callable
from types import ModuleType
from typing import Any

from wit_world.imports import monotonic_clock, poll

_SOCKETS = "asyncio has no sockets in a plugin: send HTTP requests with `httpx.AsyncClient`, or without asyncio"
_PROCESSES = "a plugin cannot start processes, and has no pipes"

#: The longest time that the loop waits at once, in seconds.
_LONGEST = 86_400.0


class PollEventLoop(base_events.BaseEventLoop):
    """An event loop that waits with `wasi:io/poll`."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[asyncio.Future[None], Any] = {}
        # The base class waits by this.
        self._selector = self

    async def until(self, pollable: Any, seconds: float | None) -> None:
        """Waits for an event of the host. Raises `TimeoutError` after `seconds`."""
        future = self.create_future()
        self._waiting[future] = pollable
        try:
            async with asyncio.timeout(seconds):
                await future
        finally:
            # Before the caller drops the event.
            del self._waiting[future]

    def select(self, timeout: float | None) -> list[asyncio.Future[None]]:
        """Returns what has happened. Waits until then, or for at most `timeout` seconds."""
        pending = [(future, pollable) for future, pollable in self._waiting.items() if not future.done()]
        if timeout is not None and timeout <= 0:
            return [future for future, pollable in pending if pollable.ready()]
        pollables = [pollable for _, pollable in pending]
        if timeout is None:
            if not pollables:
                raise RuntimeError("the tool would wait forever: nothing that it awaits can happen")
            happened = poll.poll(pollables)
        else:
            with monotonic_clock.subscribe_duration(int(min(timeout, _LONGEST) * 1e9)) as timer:
                happened = poll.poll([*pollables, timer])
        return [pending[index][0] for index in happened if index < len(pending)]

    def _process_events(self, event_list: list[asyncio.Future[None]]) -> None:
        for future in event_list:
            if not future.done():
                future.set_result(None)

    def _write_to_self(self) -> None:
        # There is no other thread that would have to wake the loop.
        pass

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        self._check_closed()  # type: ignore[attr-defined]
        if executor is not None:
            return asyncio.wrap_future(executor.submit(func, *args), loop=self)
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except StopIteration as error:
            # A future cannot hold it.
            future.set_exception(RuntimeError(f"the function raised {error!r}"))
        except Exception as error:
            future.set_exception(error)
        return future

    async def create_connection(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(_SOCKETS)

    create_server = create_datagram_endpoint = create_connection
    create_unix_connection = create_unix_server = create_connection
    sock_connect = sock_accept = sock_recv = sock_recv_into = sock_sendall = create_connection

    async def subprocess_exec(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(_PROCESSES)

    subprocess_shell = connect_read_pipe = connect_write_pipe = subprocess_exec

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:
        raise NotImplementedError(_SOCKETS)

    add_writer = add_reader

    def add_signal_handler(self, sig: int, callback: Callable[..., Any], *args: Any) -> None:
        raise NotImplementedError("a plugin gets no signals")


def adapt(asyncio_module: ModuleType) -> None:
    """Makes this the event loop of `asyncio`."""
    unix_events: Any = asyncio_module.unix_events
    unix_events._UnixDefaultEventLoopPolicy._loop_factory = PollEventLoop
    for module in (asyncio_module, unix_events):
        module.SelectorEventLoop = module.EventLoop = PollEventLoop  # type: ignore[attr-defined]
