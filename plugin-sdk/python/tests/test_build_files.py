"""The files of a component: the archive, modules and files from it, and which packages go in."""

import importlib
import io
import os
import pkgutil
import sys
import tempfile
import zlib
from contextlib import ExitStack, contextmanager, redirect_stderr
from importlib import resources
from pathlib import Path
from unittest import mock

from tests.support import TestCase
from toolbay.build import packages
from toolbay.build.errors import BuildError
from toolbay.build.guest import archive, files, modules
from toolbay.build.project import Project

FILES = {
    "/2/late/__init__.py": b"NAME = 'late'\n",
    "/2/late/inner.py": b"from pathlib import Path\nTEXT = Path(__file__).with_name('data.txt').read_text('utf-8')\n",
    "/2/late/data.txt": "Grüße\r\nzwei\n".encode(),
    "/2/late/folder/deep.bin": bytes(range(256)),
    "/2/space/part/__init__.py": b"",
    "/2/single.py": b"def fail():\n    raise ValueError('on line 2')\n",
    "/0/mine.py": b"def fail():\n    raise ValueError('mine')\n",
}


def made() -> archive.Archive:
    loaded = archive.Archive()
    loaded.add_all(archive.pack(FILES.items()))
    return loaded


@contextmanager
def component(missing=None):
    """Imports and opens from an archive, as in a component."""
    loaded = made()
    last = modules.MissingFinder(missing or {})
    names = ("open", "open_code")
    saved = {name: getattr(io, name) for name in names}
    functions = {name: getattr(os, name) for name in ("stat", "lstat", "listdir", "scandir", "access", "readlink")}
    with ExitStack() as stack:
        stack.enter_context(mock.patch("builtins.open", open))
        stack.enter_context(mock.patch.object(sys, "path", ["/0", "/2", *sys.path]))
        stack.enter_context(mock.patch.object(sys, "path_hooks", [lambda path: modules.ArchivedFinder(path, loaded)]))
        stack.enter_context(mock.patch.object(sys, "path_importer_cache", dict(sys.path_importer_cache)))
        stack.enter_context(mock.patch.object(sys, "meta_path", [*sys.meta_path, last]))
        stack.enter_context(mock.patch.dict(sys.modules))
        stack.callback(lambda: [setattr(os, name, function) for name, function in functions.items()])
        stack.callback(lambda: [setattr(io, name, function) for name, function in saved.items()])
        files.ArchivedFiles(loaded).install()
        yield last


class ArchiveTest(TestCase):
    def test_files_are_packed_in_any_order_with_the_same_bytes(self) -> None:
        items = list(FILES.items())
        self.assertEqual(archive.pack(items), archive.pack(items[::-1]))

    def test_files_are_read_back(self) -> None:
        loaded = made()
        for path, content in FILES.items():
            self.assertEqual(loaded.read(path), content)
            self.assertEqual(loaded.size(path), len(content))
        self.assertEqual(loaded.names("/2/late"), ["__init__.py", "data.txt", "folder", "inner.py"])
        self.assertRaises(KeyError, loaded.read, "/2/late")
        self.assertRaises(KeyError, loaded.mode, "/2/other")
        self.assertFalse(loaded.is_folder("/"))

    def test_files_can_be_added_one_by_one(self) -> None:
        loaded = made()
        loaded.add("/python/a/b.py", zlib.compress(b"x = 1"), 5)
        self.assertEqual(loaded.read("/python/a/b.py"), b"x = 1")
        self.assertEqual(loaded.names("/python"), ["a"])


class FilesTest(TestCase):
    def test_data_files_are_read_in_every_way(self) -> None:
        with component():
            late = importlib.import_module("late")
            folder = Path(late.__file__).parent
            self.assertEqual((folder / "data.txt").read_text("utf-8"), "Grüße\nzwei\n")
            with open(folder / "data.txt", encoding="utf-8", newline="") as file:
                self.assertEqual(file.readlines(), ["Grüße\r\n", "zwei\n"])
            with open(os.fsencode(folder / "folder/deep.bin"), "rb") as file:
                file.seek(-1, 2)
                self.assertEqual(file.read(), b"\xff")
            self.assertEqual(pkgutil.get_data("late", "folder/deep.bin"), bytes(range(256)))
            self.assertEqual(resources.files("late").joinpath("data.txt").read_bytes(), FILES["/2/late/data.txt"])
            self.assertEqual(importlib.import_module("late.inner").TEXT, "Grüße\nzwei\n")

    def test_modules_that_were_imported_before_open_files_too(self) -> None:
        import linecache
        import tokenize

        with mock.patch.object(tokenize, "_builtin_open", io.open), component():
            self.assertEqual(linecache.getline("/2/single.py", 2), "    raise ValueError('on line 2')\n")

    def test_folders_are_listed(self) -> None:
        with component():
            self.assertEqual(sorted(os.listdir("/2/late")), ["__init__.py", "data.txt", "folder", "inner.py"])
            self.assertEqual(sorted(path.name for path in Path("/2/late").iterdir()), sorted(os.listdir("/2/late")))
            found = {root: (folders, names) for root, folders, names in os.walk("/2/late")}
            self.assertEqual(found["/2/late/folder"], ([], ["deep.bin"]))
            self.assertTrue(os.path.isdir("/2/late") and not os.path.isfile("/2/late"))
            self.assertTrue(Path("/2/late/data.txt").exists() and not Path("/2/late/none").exists())
            self.assertEqual(os.stat("/2/late/data.txt").st_size, len(FILES["/2/late/data.txt"]))

    def test_errors_are_those_of_a_disk(self) -> None:
        with component():
            self.assertRaises(FileNotFoundError, open, "/2/late/none.txt")
            self.assertRaises(IsADirectoryError, open, "/2/late")
            self.assertRaises(NotADirectoryError, os.listdir, "/2/late/data.txt")
            with self.assertRaisesRegex(OSError, "read-only"):
                open("/2/late/data.txt", "w")
            self.assertFalse(os.access("/2/late/data.txt", os.W_OK))
            self.assertTrue(os.access("/2/late/data.txt", os.R_OK))

    def test_other_files_are_those_of_the_system(self) -> None:
        with tempfile.TemporaryDirectory() as folder, component():
            path = Path(folder) / "a.txt"
            path.write_text("mine")
            self.assertEqual(path.read_text(), "mine")
            self.assertEqual(os.listdir(folder), ["a.txt"])
            with open(os.open(path, os.O_RDONLY)) as file:
                self.assertEqual(file.read(), "mine")


class ModulesTest(TestCase):
    def test_packages_modules_and_namespaces_are_imported(self) -> None:
        with component():
            self.assertEqual(importlib.import_module("late").NAME, "late")
            self.assertEqual(list(importlib.import_module("space").__path__), ["/2/space"])
            importlib.import_module("space.part")
            self.assertEqual([module.name for module in pkgutil.iter_modules(["/2/late"])], ["inner"])

    def test_tracebacks_name_the_authors_file(self) -> None:
        with component():
            for name, shown in (("mine", "src/mine.py"), ("single", "/2/single.py")):
                function = importlib.import_module(name).fail
                self.assertEqual(function.__code__.co_filename, shown)

    def test_a_module_that_is_elsewhere_is_explained_once(self) -> None:
        with component({"numpy": "it has native code; use lists"}) as last:
            error = io.StringIO()
            with redirect_stderr(error):
                self.assertRaisesRegex(ModuleNotFoundError, "use lists", importlib.import_module, "numpy")
                self.assertEqual(error.getvalue(), "")
                last.is_running = True
                for _ in range(2):
                    with self.assertRaises(ImportError) as raised:
                        importlib.import_module("numpy")
            self.assertEqual(raised.exception.name, "numpy")
            self.assertEqual(error.getvalue(), "import numpy: it has native code; use lists\n")
            self.assertRaisesRegex(ModuleNotFoundError, "^No module named 'none'$", importlib.import_module, "none")
            self.assertRaises(ModuleNotFoundError, importlib.import_module, "late.none")


class SelectionTest(TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.sources = Path(folder.name) / "src"
        self.packages = Path(folder.name) / "packages"
        #: The packages that work without their native code.
        self.slow: set[str] = set()
        self.write(
            self.sources, {"app.py": "import used\ndef late():\n    from zoneinfo import ZoneInfo\n", "words.txt": "a"}
        )
        self.write(
            self.packages,
            {
                "used/__init__.py": "import importlib\n",
                "used/plugins/late.py": "try:\n    import other.part\nexcept ImportError:\n    pass\n",
                "used/data/table.json": "{}",
                "used/tests/test_used.py": "import development\n",
                "used/_speedups.so": "",
                "other/__init__.py": "",
                "other/part.py": "import fast, os\n",
                "fast/__init__.py": "from . import core\n",
                "fast/core.abi3.so": "",
                "development.py": "",
                "computed.py": "",
                "tzdata/zoneinfo/Europe/Paris": "TZif",
                "pip/__init__.py": "",
            },
        )

    def write(self, folder: Path, contents: dict[str, str]) -> None:
        for name, content in contents.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)

    def select(self, include=(), exclude=(), imported=("used",)) -> packages.Selection:
        project = Project(Path("a.wasm"), tuple(include), tuple(exclude))
        return packages.select(
            project, self.sources, packages.Environment([self.packages]), imported, self.slow.__contains__
        )

    def test_packages_that_are_imported_are_whole(self) -> None:
        found = self.select().files
        self.assertIn("/0/words.txt", found)
        for path in ("used/plugins/late.py", "used/data/table.json", "other/part.py", "tzdata/zoneinfo/Europe/Paris"):
            self.assertIn(f"/2/{path}", found)
        for path in ("used/tests/test_used.py", "used/_speedups.so", "development.py", "pip/__init__.py"):
            self.assertNotIn(f"/2/{path}", found)

    def test_what_stays_out_has_a_reason(self) -> None:
        missing = self.select().missing
        self.assertIn("native code", missing["fast"])
        self.assertIn('include = ["computed"]', missing["computed"])
        self.assertNotIn("used", missing)

    def test_a_package_that_works_without_native_code_is_included(self) -> None:
        self.slow.add("fast")
        selection = self.select()
        self.assertIn("/2/fast/__init__.py", selection.files)
        self.assertNotIn("/2/fast/core.abi3.so", selection.files)
        self.assertNotIn("fast", selection.missing)

    def test_time_zones_that_are_not_installed_are_named(self) -> None:
        (self.packages / "tzdata/zoneinfo/Europe/Paris").unlink()
        for folder in ("zoneinfo/Europe", "zoneinfo", ""):
            (self.packages / "tzdata" / folder).rmdir()
        self.assertIn("add `tzdata` to requirements.txt", self.select().missing["tzdata"])

    def test_the_project_includes_and_excludes(self) -> None:
        found = self.select(["computed"], ["used/data/*"])
        self.assertIn("/2/computed.py", found.files)
        self.assertNotIn("computed", found.missing)
        self.assertNotIn("/2/used/data/table.json", found.files)
        self.assertRaisesRegex(BuildError, "no module 'absent' is installed", self.select, ["absent"])
        self.assertRaisesRegex(BuildError, "fast has native code", self.select, ["fast"])

    def test_the_project_file_is_checked(self) -> None:
        def read(text: str) -> Project:
            (self.sources / "plugin.toml").write_text(text)
            return Project.read(self.sources)

        self.assertEqual(read('output = "a.wasm"\n[python]\ninclude = ["x"]').include, ("x",))
        self.assertEqual(read('output = "a.wasm"').exclude, ())
        for text, message in (
            ("", "output: write the path"),
            ("output =", "plugin.toml: "),
            ('output = "a"\npython = 1', "write a table"),
            ('output = "a"\n[python]\nincluded = []', "python.included: there is no such key"),
            ('output = "a"\n[python]\ninclude = "x"', "python.include: write a list"),
        ):
            self.assertRaisesRegex(BuildError, message, read, text)
