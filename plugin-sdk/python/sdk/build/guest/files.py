"""Opens files of the archive with `open`, `os` and `pathlib`, as if they were on a disk."""

from __future__ import annotations

import builtins
import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .archive import FILE_TIME, Archive

#: Modules whose functions open files of the system.
_SYSTEM_MODULES = frozenset("_io builtins io nt posix".split())


class ArchivedEntry:
    """An entry of `os.scandir`."""

    def __init__(self, folder: str, name: str, archive: Archive) -> None:
        self.name = name
        self.path = f"{folder}/{name}"
        self._archive = archive

    def __fspath__(self) -> str:
        return self.path

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self._archive.is_folder(self.path)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self._archive.is_file(self.path)

    def is_symlink(self) -> bool:
        return False

    def is_junction(self) -> bool:
        return False

    def inode(self) -> int:
        return 0

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return status(self._archive, self.path)


class ArchivedEntries:
    """The iterator of `os.scandir`."""

    def __init__(self, folder: str, archive: Archive) -> None:
        self._entries: Iterator[ArchivedEntry] = iter(
            [ArchivedEntry(folder, name, archive) for name in archive.names(folder)]
        )

    def __iter__(self) -> ArchivedEntries:
        return self

    def __next__(self) -> ArchivedEntry:
        return next(self._entries)

    def __enter__(self) -> ArchivedEntries:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._entries = iter(())


def status(archive: Archive, path: str) -> os.stat_result:
    """Returns what `os.stat` returns. Raises a `KeyError` if the archive has no such path."""
    mode = archive.mode(path)
    size = archive.size(path) if archive.is_file(path) else 0
    return os.stat_result((mode, 0, 0, 1, 0, 0, size, FILE_TIME, FILE_TIME, FILE_TIME))


class ArchivedFiles:
    """Functions of `os` and `io` that use the archive for its paths, and the system's functions for others."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._system: dict[str, Callable[..., Any]] = {
            name: getattr(os, name) for name in ("stat", "lstat", "listdir", "scandir", "access", "readlink")
        }
        self._open: Callable[..., Any] = io.open

    def install(self) -> None:
        """Replaces the functions of `os` and `io`, also in modules that are already imported."""
        for module in list(sys.modules.values()):
            # `tokenize`, for example, which reads the lines of tracebacks.
            for name, value in list(vars(module).items()) if module.__name__ not in _SYSTEM_MODULES else ():
                if value is self._open:
                    setattr(module, name, self.open)
        builtins.open = io.open = self.open  # type: ignore[assignment]
        io.open_code = self.open_code
        for name, function in self._system.items():
            own = getattr(self, name)
            setattr(os, name, own)
            for supporting in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
                if function in supporting:
                    supporting.add(own)

    def find(self, path: Any) -> str | None:
        """Returns the path in the archive, or `None` if the path is of the system."""
        if isinstance(path, int):
            return None
        try:
            text = os.fsdecode(path)
        except TypeError:
            return None
        if not text.startswith("/"):
            return None
        # Without `os.path.normpath`, which accepts `/2/missing/../file`.
        text = os.path.normpath(text)
        return text if self._archive.is_file(text) or self._archive.is_folder(text) else None

    def open(
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        path = self.find(file)
        if path is None or opener is not None:
            return self._open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        if self._archive.is_folder(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if set(mode) & set("wax+"):
            raise OSError(errno.EROFS, "the files of a component are read-only", path)
        content = io.BytesIO(self._archive.read(path))
        content.name = path  # type: ignore[attr-defined]
        content.mode = "rb"  # type: ignore[attr-defined]
        if "b" in mode:
            return content
        text = io.TextIOWrapper(content, io.text_encoding(encoding), errors, newline)
        text.mode = mode  # type: ignore[misc]
        return text

    def open_code(self, path: str) -> Any:
        return self.open(path, "rb")

    def stat(self, path: Any, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        found = self.find(path) if dir_fd is None else None
        if found is None:
            return self._call("stat", path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        return status(self._archive, found)

    def lstat(self, path: Any, *, dir_fd: int | None = None) -> os.stat_result:
        found = self.find(path) if dir_fd is None else None
        return self._call("lstat", path, dir_fd=dir_fd) if found is None else status(self._archive, found)

    def listdir(self, path: Any = ".") -> Any:
        found = self._folder(path)
        if found is None:
            return self._call("listdir", path)
        names = self._archive.names(found)
        return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names

    def scandir(self, path: Any = ".") -> Any:
        found = self._folder(path)
        return self._call("scandir", path) if found is None else ArchivedEntries(found, self._archive)

    def access(self, path: Any, mode: int, **options: Any) -> bool:
        found = self.find(path)
        return self._call("access", path, mode, **options) if found is None else not mode & os.W_OK

    def readlink(self, path: Any, **options: Any) -> Any:
        if self.find(path) is not None:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        return self._call("readlink", path, **options)

    def _folder(self, path: Any) -> str | None:
        found = self.find(path)
        if found is not None and not self._archive.is_folder(found):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), found)
        return found

    def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        return self._system[name](*arguments, **options)
