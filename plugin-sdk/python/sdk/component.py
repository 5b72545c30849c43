"""The module from which `componentize-py` builds the component. Tests cannot import it: they have no `wit_world`.

It runs once, while the plugin is built, and the component is a snapshot of the
memory at the end: then the plugin's offers are known, and every module is loaded.
"""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import contextlib
import logging
import traceback
from collections.abc import Iterator

from componentize_py_types import Err
from wit_world import exports

from . import adapters, host, keyvalue, preload, registry, wire, worlds
from .contract import types
from .errors import Failed, InvalidArguments, describe

host.use(wire.Building())
# Before the plugin's own modules, so that it does not replace their set-up.
logging.basicConfig(handlers=[wire.LogHandler()], level=logging.INFO, format="%(message)s")
# Before them as well: packages open sockets when they are imported.
adapters.install()

import app  # noqa: E402, F401  The plugin.

preload.preload()
adapters.finish()
_OFFERED = registry.offers()
worlds.check(_OFFERED, set(dir(exports)))
_TOOLS = [wire.definition(tool) for tool in _OFFERED.tools]
_PROMPTS = [wire.prompt(prompt) for prompt in _OFFERED.prompts]
_RESOURCES = [wire.resource(resource) for resource in _OFFERED.resources if not resource.is_template]
_TEMPLATES = [wire.template(resource) for resource in _OFFERED.resources if resource.is_template]
host.use(wire.WitHost())
with contextlib.suppress(ImportError):
    # Not in the world `plugin`, which older projects target.
    from . import kept

    keyvalue.use(kept.open_bucket)


@contextlib.contextmanager
def _failing() -> Iterator[None]:
    """Converts an exception to a failure of the contract."""
    # Any other exception that leaves an export is a trap, without a message.
    try:
        yield
        return
    except InvalidArguments as error:
        failure = types.Failure_InvalidArguments(wire.text(str(error)))
    except BaseException as error:
        failure = types.Failure_Failed(wire.text(str(error) if isinstance(error, Failed) else describe(error)))
        if error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
    raise Err(failure)


# The contract: the component exports those of these classes that are in its world.


class Tools:
    def list_tools(self) -> list[types.ToolDefinition]:
        return _TOOLS

    def call_tool(self, name: str, arguments: str) -> types.Output:
        with _failing():
            return wire.output(registry.call(name, arguments))


class Prompts:
    def list_prompts(self) -> list[types.PromptDefinition]:
        return _PROMPTS

    def get_prompt(self, name: str, arguments: list[tuple[str, str]]) -> types.PromptOutput:
        with _failing():
            return wire.filled(registry.get(name, dict(arguments)))


class Resources:
    def list_resources(self) -> list[types.ResourceDefinition]:
        return _RESOURCES

    def list_resource_templates(self) -> list[types.ResourceTemplate]:
        return _TEMPLATES

    def read_resource(self, uri: str) -> list[types.ResourceContents]:
        with _failing():
            return [wire.item(item) for item in registry.read(uri)]


class Completion:
    def complete(self, request: types.CompletionRequest) -> types.Completions:
        with _failing():
            found = registry.complete(request.name, request.argument, request.value, dict(request.context))
            return wire.completions(found)
