"""`ctypes.util`: there are no libraries."""


def find_library(name: str) -> None:
    """Returns `None`, as for a library that is not installed."""
    return None


def find_msvcrt() -> None:
    """Returns `None`."""
    return None
