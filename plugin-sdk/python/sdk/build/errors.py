"""The errors of a build: one line each, with the place in the author's files."""


class BuildError(Exception):
    """Why a plugin cannot be built."""


class NativeImportError(ImportError):
    """The import of a module with native code, which a component cannot run."""
