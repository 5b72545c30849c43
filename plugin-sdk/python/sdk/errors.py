"""Failures of calls, and errors in definitions."""

from __future__ import annotations

import sys
import traceback


class Failed(Exception):
    """A failure of the tool.

    The model reads the message and may try again, so state the problem and how
    to solve it. Any other exception that leaves a tool is also a failure. Its
    message is then preceded by its type, as in `KeyError: 'unit'`.
    """


class InvalidArguments(Exception):
    """The arguments match the schema but make no sense."""


class AskError(Failed):
    """A question has no answer: the message states the error in it, or in an earlier operation."""


class Unsupported(AskError):
    """The client cannot answer this kind of question. Raised only for a question with `required=False`."""


class DefinitionError(TypeError):
    """A function has an error, so it cannot be a tool, a prompt, a resource or a completion.

    Raised while the plugin is built.
    """


def describe(error: BaseException) -> str:
    """Returns the text of an exception for the model: its type, its message, its cause."""
    said = _line(error)
    seen = {id(error)}
    while error.__cause__ is not None and id(error.__cause__) not in seen:
        error = error.__cause__
        seen.add(id(error))
        said += f"; caused by {_line(error)}"
    return said


def _line(error: BaseException) -> str:
    if isinstance(error, (Failed, InvalidArguments)):
        return str(error)
    # The last line of a traceback, without the module's name before that of
    # the type, which is of no use to a model.
    said = "".join(traceback.format_exception_only(type(error), error)).strip()
    module = f"{type(error).__module__}."
    said = said[len(module) :] if said.startswith(module) else said
    # The build names the reason of the modules that it knows.
    if isinstance(error, ModuleNotFoundError) and sys.platform == "wasi" and ": " not in str(error):
        said += (
            "; the plugin's component does not have it: add its package to requirements.txt, and its name to `include` "
            "under [python] in plugin.toml"
        )
    return said
