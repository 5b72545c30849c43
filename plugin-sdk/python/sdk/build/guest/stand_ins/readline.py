"""`readline`, without a terminal."""

from typing import Any

from toolbay_guest import missing


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return missing.function(f"readline.{name}", "a tool has no terminal")
