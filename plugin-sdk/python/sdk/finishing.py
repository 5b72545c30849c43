"""Runs what an `async` function returned to its end."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from .errors import Failed


def prepare(function: Callable[..., Any]) -> None:
    """Loads the event loop, if the function is asynchronous: a component cannot load it later."""
    if inspect.iscoroutinefunction(function):
        import asyncio  # noqa: F401


def finished(value: Any) -> Any:
    """Returns the value; if it is awaitable, that which it results in."""
    if not inspect.isawaitable(value):
        return value
    import asyncio

    async def run() -> Any:
        return await value

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run())
    if sys.platform == "wasi":
        raise Failed("an `async` function of the plugin is called by another one: await it")
    # A test that is asynchronous itself. Its loop cannot run this function.
    import contextvars
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(contextvars.copy_context().run, asyncio.run, run()).result()
