"""Completion: values that an argument could have, suggested while a user types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .definition import check_plain, place
from .errors import DefinitionError

#: The parameters of the function, for messages.
_SHAPE = "it takes what the user has typed, and the other arguments if it needs them: `(value)` or `(value, arguments)`"

#: The types that a completion may return, for messages.
_MAY = "return a list of `str`, or `Completions`"


@dataclass(frozen=True)
class Completions:
    """Values that an argument could have, with further properties."""

    #: The values, best first. Clients get the first hundred.
    values: Sequence[str]
    #: The total number of values, if it is known.
    total: int | None = None
    #: True if there are more values than those in `values`.
    has_more: bool = False


@dataclass
class Completion:
    """A function that completes an argument of a prompt, or a variable of a template."""

    function: Callable[..., Any]
    #: The function of the prompt or the resource, the prompt's name, or the template's URI.
    target: Callable[..., Any] | str
    argument: str

    @property
    def where(self) -> str:
        """Returns its location, for messages."""
        return place(self.function, getattr(self.function, "__name__", self.argument))

    def check(self) -> None:
        """Raises a `DefinitionError` if something is wrong with the function."""
        check_plain(self.function, self.where, "a completion")
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (TypeError, ValueError):
            # A built-in function, which has no signature.
            return
        positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        needed = [one for one in parameters if one.default is one.empty and one.kind is one.KEYWORD_ONLY]
        required = [one for one in positional if one.default is one.empty]
        if needed or not positional or len(required) > 2:
            raise DefinitionError(f"{self.where}: {_SHAPE}")

    def complete(self, value: str, arguments: Mapping[str, str]) -> Any:
        """Calls the function, and returns its result."""
        try:
            inspect.signature(self.function).bind(value, {})
        except (TypeError, ValueError):
            return self.function(value)
        return self.function(value, dict(arguments))


def completions(value: Any) -> Completions:
    """Converts a returned value. Raises `TypeError` or `ValueError` if it cannot be sent."""
    if isinstance(value, Completions):
        found = Completions(list(value.values), value.total, value.has_more)
    elif isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)):
        found = Completions(list(value))
    else:
        raise TypeError(f"it returned a `{type(value).__name__}`; {_MAY}")
    for one in found.values:
        if not isinstance(one, str):
            raise TypeError(f"a value is a `str`, not a `{type(one).__name__}`; {_MAY}")
    if found.total is not None and not (isinstance(found.total, int) and 0 <= found.total < 1 << 32):
        raise ValueError(f"total is {found.total!r}, which is no number of values")
    return found


def beginning_with(value: str, values: Iterable[str]) -> list[str]:
    """Returns those of `values` that begin with the text that the user has typed, ignoring case."""
    typed = value.casefold()
    return [one for one in values if one.casefold().startswith(typed)]
