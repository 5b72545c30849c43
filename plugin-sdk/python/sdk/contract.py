"""The contract's modules, whose names depend on what else the world of the plugin has. Exists in a component only."""

# mypy: disable-error-code="import-not-found"

try:
    from wit_world.imports import toolbay_plugin_types as types
except ImportError:
    # The world `plugin`, which an older project builds for, has no other types.
    from wit_world.imports import types  # type: ignore[no-redef]

__all__ = ["types"]
