"""Files in memory: a component has no file system, so the build puts modules and data files in an archive."""

from __future__ import annotations

import json
import stat
import zlib
from collections.abc import Iterable

#: The time of every file in an archive, so that builds do not differ: 1980-01-01, as in ZIP.
FILE_TIME = 315532800

_LENGTH_BYTES = 8


def pack(files: Iterable[tuple[str, bytes]], level: int = 9) -> bytes:
    """Returns an archive of files, which are named by their paths in the component."""
    index: dict[str, tuple[int, int, int]] = {}
    parts: list[bytes] = []
    offset = 0
    for path, content in sorted(files):
        compressed = zlib.compress(content, level)
        index[path] = (offset, len(compressed), len(content))
        parts.append(compressed)
        offset += len(compressed)
    header = json.dumps(index, separators=(",", ":")).encode()
    return b"".join([len(header).to_bytes(_LENGTH_BYTES, "little"), header, *parts])


class Archive:
    """Files that are read from memory, by their absolute paths."""

    def __init__(self) -> None:
        #: The compressed content of each file, and its size when it is not compressed.
        self._files: dict[str, tuple[bytes | memoryview, int]] = {}
        #: The names in each folder.
        self._folders: dict[str, dict[str, bool]] = {}

    def add_all(self, packed: bytes) -> None:
        """Adds the files of an archive that `pack` made."""
        start = _LENGTH_BYTES + int.from_bytes(packed[:_LENGTH_BYTES], "little")
        index = json.loads(packed[_LENGTH_BYTES:start])
        # Not copies: the memory that they need would be in the component too.
        view = memoryview(packed)
        for path, (offset, length, size) in index.items():
            self.add(path, view[start + offset : start + offset + length], size)

    def add(self, path: str, compressed: bytes | memoryview, size: int) -> None:
        """Adds a file whose content is compressed."""
        self._files[path] = (compressed, size)
        name, is_folder = path, False
        while name not in ("", "/"):
            folder, _, child = name.rpartition("/")
            names = self._folders.setdefault(folder or "/", {})
            known = child in names
            names[child] = is_folder
            if known:
                break
            name, is_folder = folder, True

    def is_file(self, path: str) -> bool:
        return path in self._files

    def is_folder(self, path: str) -> bool:
        return path != "/" and path in self._folders

    def read(self, path: str) -> bytes:
        """Returns the content of a file. Raises a `KeyError` if there is no such file."""
        return zlib.decompress(self._files[path][0])

    def names(self, folder: str) -> list[str]:
        """Returns the names in a folder. Raises a `KeyError` if there is no such folder."""
        return sorted(self._folders[folder])

    def size(self, path: str) -> int:
        return self._files[path][1]

    def mode(self, path: str) -> int:
        """Returns the mode of a file or a folder, as in `os.stat`. Raises a `KeyError` if neither exists."""
        if path in self._files:
            return stat.S_IFREG | 0o444
        if self.is_folder(path):
            return stat.S_IFDIR | 0o555
        raise KeyError(path)
