"""The seven servers with the same five tools: a plugin in each of five languages, and two without a sandbox."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from connection import Connection

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples/five-tools"
HERE = Path(__file__).parent

SOURCES = {
    "javascript": EXAMPLES / "javascript/src/app.js",
    "typescript": EXAMPLES / "typescript/src/app.ts",
    "python": EXAMPLES / "python/src/app.py",
    "go": EXAMPLES / "go/src/main.go",
    "rust": EXAMPLES / "rust/src/lib.rs",
    "fastmcp": HERE / "fastmcp/server.py",
    "typescript-sdk": HERE / "typescript-sdk/src/server.ts",
}

TITLES = {
    "javascript": "plugin in JavaScript",
    "typescript": "plugin in TypeScript",
    "python": "plugin in Python",
    "go": "plugin in Go",
    "rust": "plugin in Rust",
    "fastmcp": "fastmcp",
    "typescript-sdk": "TypeScript SDK",
}

PLUGINS = ["javascript", "typescript", "python", "go", "rust"]


@dataclass
class Installed:
    """What is installed and built."""

    toolbay: Path
    plugins: Path
    """The folder with `LANGUAGE/five-LANGUAGE.wasm`."""
    fastmcp: Path
    """The virtual environment."""
    typescript_sdk: Path
    """The project, with `node_modules` and `build`."""

    def component(self, name: str) -> Path:
        return self.plugins / name / f"five-{name}.wasm"

    def start(self, name: str, service: str, folder: Path) -> Connection:
        """Starts a server, with its files in `folder`, which is empty."""
        log = folder / "log"
        if name == "fastmcp":
            command = [str(self.fastmcp / "bin/python"), "-B", str(SOURCES[name])]
        elif name == "typescript-sdk":
            command = ["node", str(self.typescript_sdk / "build/server.js")]
        else:
            plugins = folder / "plugins"
            plugins.mkdir()
            shutil.copy(self.component(name), plugins)
            plugins.joinpath(f"five-{name}.toml").write_text(grant(service))
            command = [str(self.toolbay), "serve", "--no-config", "--plugins", str(plugins)]
        state = {"XDG_STATE_HOME": str(folder / "state"), "XDG_CACHE_HOME": str(self.plugins.parent / "cache")}
        return Connection(command, {"SERVICE": service, **state}, log)


def grant(service: str) -> str:
    """Returns the grant that the book shows, for a service on this machine."""
    text = (EXAMPLES / "five-tools.toml").read_text()
    text = text.replace("https://api.example.com", service)
    return text.replace("[permissions]\n", '[permissions]\nprivate_networks = ["127.0.0.1"]\n')
