"""The contract's modules, whose names depend on the rest of the plugin's world. Exists only in a component."""

# mypy: disable-error-code="import-not-found"

try:
    from wit_world.imports import toolbay_plugin_types as types
except ImportError:
    # The world `plugin`, which older projects target, has no other types.
    from wit_world.imports import types  # type: ignore[no-redef]

__all__ = ["types"]
