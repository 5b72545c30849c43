"""What `componentize-py` makes the component of; nothing for tests, which have no `wit_world`.

It runs once, while the plugin is built, and what is in memory at the end is the
component: the tools are known by then, and every module is loaded.
"""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import contextlib
import logging
import sys
import traceback

from componentize_py_types import Err
from wit_world import exports

from . import host, keyvalue, preload, registry, wire
from .contract import types
from .errors import DefinitionError, Failed, InvalidArguments, describe

host.use(wire.Building())
# Before the plugin's own modules, so that what they set up does not take its
# place.
logging.basicConfig(handlers=[wire.LogHandler()], level=logging.INFO, format="%(message)s")

import app  # noqa: E402, F401  The plugin.

preload.preload()
if "urllib.request" in sys.modules:
    from . import web

    web.install()
_DEFINITIONS = [wire.definition(tool) for tool in registry.tools()]
if not _DEFINITIONS:
    raise DefinitionError("app.py has no tool: put `@tool` above a function")
host.use(wire.WitHost())
with contextlib.suppress(ImportError):
    # Not in the world `plugin`, which an older project builds for.
    from . import kept

    keyvalue.use(kept.open_bucket)


class Tools(exports.Tools):  # type: ignore[misc]
    """The contract."""

    def list_tools(self) -> list[types.ToolDefinition]:
        return _DEFINITIONS

    def call_tool(self, name: str, arguments: str) -> types.Output:
        # Whatever else leaves this function is a trap, without a message.
        try:
            return wire.output(registry.call(name, arguments))
        except InvalidArguments as error:
            failure = types.Failure_InvalidArguments(wire.text(str(error)))
        except BaseException as error:
            failure = types.Failure_Failed(wire.text(str(error) if isinstance(error, Failed) else describe(error)))
            if error.__cause__ is not None:
                traceback.print_exception(error.__cause__)
        raise Err(failure)
