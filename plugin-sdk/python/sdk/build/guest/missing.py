"""What a component does not have: names that can be imported, and that raise an error in words when they are used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


class MissingFeatureError(NotImplementedError):
    """The use of something that a component does not have."""


def fail(name: str, instead: str) -> NoReturn:
    """Raises the error for a name."""
    raise MissingFeatureError(f"`{name}` is not available in a component: {instead}")


def function(name: str, instead: str) -> Callable[..., Any]:
    """Returns a function that raises the error when it is called."""

    def raises(*arguments: Any, **options: Any) -> NoReturn:
        fail(name, instead)

    raises.__name__ = raises.__qualname__ = name.rpartition(".")[2]
    return raises


def kind(name: str, instead: str, *bases: type) -> type:
    """Returns a class that can be subclassed, and that raises the error when an object is made."""

    def raises(cls: type, *arguments: Any, **options: Any) -> NoReturn:
        fail(name, instead)

    module, _, short = name.rpartition(".")
    return type(short, bases, {"__new__": raises, "__module__": module, "__doc__": f"Not available: {instead}."})
