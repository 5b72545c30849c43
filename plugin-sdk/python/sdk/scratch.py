"""Temporary files in a component, which has a folder for them only if the grant says so. Used only in a component."""

from __future__ import annotations

import functools
import io
from types import ModuleType
from typing import Any

_WORDS = (
    "there is no folder for temporary files: the operator's grant needs `[permissions.scratch]` for it, at "
    "`/tmp`, the default, or at another path that `tempfile.tempdir` is set to; without it, keep the data in memory, for "
    "example in `io.BytesIO`"
)


def adapt(module: ModuleType) -> None:
    """Explains a missing folder, and spares a library from needing one."""
    if module.__name__ == "tempfile":
        _adapt_tempfile(module)
    else:
        _adapt_openpyxl(module)


def finish() -> None:
    """Forgets the folder of the machine that built the plugin."""
    import tempfile

    tempfile.tempdir = None


def _adapt_tempfile(tempfile: Any) -> None:
    find = tempfile._get_default_tempdir

    @functools.wraps(find)
    def find_or_explain(*args: Any, **keywords: Any) -> Any:
        try:
            return find(*args, **keywords)
        except FileNotFoundError as error:
            raise FileNotFoundError(error.errno, _WORDS) from None

    tempfile._get_default_tempdir = find_or_explain


def _adapt_openpyxl(excel: Any) -> None:
    """Writes each sheet of a workbook in memory: openpyxl would write it to a temporary file first."""
    owner: Any = excel.ExcelWriter
    write = owner.write_worksheet

    @functools.wraps(write)
    def write_worksheet(self: Any, ws: Any) -> None:
        if self.workbook.write_only:
            write(self, ws)
            return
        ws._drawing = excel.SpreadsheetDrawing()
        ws._drawing.charts = ws._charts
        ws._drawing.images = ws._images
        out = io.BytesIO()
        writer = excel.WorksheetWriter(ws, out)
        writer.write()
        ws._rels = writer._rels
        self._archive.writestr(ws.path[1:], out.getvalue())
        self.manifest.append(ws)

    owner.write_worksheet = write_worksheet
