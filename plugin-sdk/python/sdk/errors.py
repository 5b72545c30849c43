"""Why a call did not succeed, and what is wrong with a definition."""

from __future__ import annotations

import sys
import traceback


class Failed(Exception):
    """The tool could not do its work.

    The model reads the message and may try again, so say what was wrong and
    what would be right. Any other exception that leaves a tool is a failure as
    well; its message is then preceded by its type, as in `KeyError: 'unit'`.
    """


class InvalidArguments(Exception):
    """The arguments match the schema but make no sense."""


class AskError(Failed):
    """A question has no answer: the message says what is wrong with it, or with what was done before it."""


class Unsupported(AskError):
    """The client cannot answer this kind of question. Raised for a question with `required=False` only."""


class DefinitionError(TypeError):
    """A function cannot be a tool, a prompt or the like as it stands. Raised while the plugin is built."""


def describe(error: BaseException) -> str:
    """What the model reads of an exception: its type, its message, its cause."""
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
    # The last line of a traceback; a module's name before that of the type
    # means nothing to a model.
    said = "".join(traceback.format_exception_only(type(error), error)).strip()
    module = f"{type(error).__module__}."
    said = said[len(module) :] if said.startswith(module) else said
    # A component has no files to import from.
    if isinstance(error, ModuleNotFoundError) and sys.platform == "wasi":
        said += "; a plugin has the modules that were imported while it was built: import it at the top of app.py"
    return said
