"""`ctypes`, without native code: types can be declared, and nothing can be called."""

from typing import Any, NoReturn

from toolbay_guest import missing

_INSTEAD = "it cannot load native code; look for a package in pure Python"

__version__ = "1.1.0"
DEFAULT_MODE = RTLD_LOCAL = 0
RTLD_GLOBAL = 0x100


class ArgumentError(Exception):
    """A wrong argument of a function."""


class _Type(type):
    """A C type, of which no object can be made. Types are often declared when a module is imported."""

    def __call__(cls, *arguments: Any, **options: Any) -> NoReturn:
        missing.fail(f"ctypes.{cls.__name__}", _INSTEAD)

    def __mul__(cls, length: int) -> type:
        return _declared(f"{cls.__name__}_Array_{length}", Array)

    __rmul__ = __mul__

    def __getattr__(cls, name: str) -> Any:
        if name in ("from_param", "from_buffer", "from_buffer_copy", "from_address", "in_dll"):
            return missing.function(f"ctypes.{cls.__name__}.{name}", _INSTEAD)
        raise AttributeError(name)


def _declared(name: str, *bases: type) -> Any:
    return _Type(name, bases, {"__module__": "ctypes"})


_SimpleCData = _declared("_SimpleCData")
Array = _declared("Array")
_Pointer = _declared("_Pointer")
_CFuncPtr = _declared("_CFuncPtr")
Structure = _declared("Structure")
BigEndianStructure = _declared("BigEndianStructure", Structure)
LittleEndianStructure = _declared("LittleEndianStructure", Structure)
Union = _declared("Union")
BigEndianUnion = _declared("BigEndianUnion", Union)
LittleEndianUnion = _declared("LittleEndianUnion", Union)
py_object = _declared("py_object", _SimpleCData)

for _name in (
    "bool byte char char_p double float int int8 int16 int32 int64 long longdouble longlong short size_t ssize_t "
    "time_t ubyte uint uint8 uint16 uint32 uint64 ulong ulonglong ushort void_p voidp wchar wchar_p"
).split():
    globals()[f"c_{_name}"] = _declared(f"c_{_name}", _SimpleCData)


def POINTER(cls: type | None) -> type:  # noqa: N802  The name in ctypes.
    """Declares a type."""
    return _declared(f"LP_{getattr(cls, '__name__', cls)}", _Pointer)


def CFUNCTYPE(restype: type | None, *argtypes: type, **options: Any) -> type:  # noqa: N802  The name in ctypes.
    """Declares a type."""
    return _declared("CFunctionType", _CFuncPtr)


PYFUNCTYPE = CFUNCTYPE

for _name in (
    "CDLL PyDLL LibraryLoader addressof alignment byref cast create_string_buffer create_unicode_buffer get_errno "
    "memmove memset pointer resize set_errno string_at wstring_at"
).split():
    globals()[_name] = missing.function(f"ctypes.{_name}", _INSTEAD)


#: The sizes of simple types in WebAssembly, which packages compute when they are imported. Others have four bytes.
_SIZES = {
    1: "bool byte char int8 ubyte uint8",
    2: "short ushort int16 uint16",
    8: "double int64 uint64 longlong ulonglong time_t",
    16: "longdouble",
}


def sizeof(kind: Any) -> int:
    """Returns the size of a simple type, in bytes."""
    name = getattr(kind, "__name__", "").removeprefix("c_")
    if not (isinstance(kind, _Type) and f"c_{name}" in globals()):
        missing.fail("ctypes.sizeof", _INSTEAD)
    return next((size for size, names in _SIZES.items() if name in names.split()), 4)


class _Libraries:
    """`cdll`, `pydll` and `pythonapi`: loads a library when an attribute is read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        missing.fail(f"ctypes.{self._name}.{name}", _INSTEAD)


cdll = _Libraries("cdll")
pydll = _Libraries("pydll")
pythonapi = _Libraries("pythonapi")
