"""Log lines. They go to the host's log, and to the client if it asked.

Messages of Python's own `logging` arrive there as well.
"""

from . import host
from .host import Level

__all__ = ["Level", "alert", "critical", "debug", "emergency", "error", "info", "notice", "warning"]


def debug(message: str) -> None:
    """Writes a line that helps to find a mistake."""
    host.current().log(Level.DEBUG, message)


def info(message: str) -> None:
    """Writes a line about what happens."""
    host.current().log(Level.INFO, message)


def notice(message: str) -> None:
    """Writes a line worth knowing."""
    host.current().log(Level.NOTICE, message)


def warning(message: str) -> None:
    """Writes a line about something odd."""
    host.current().log(Level.WARNING, message)


def error(message: str) -> None:
    """Writes a line about something that failed."""
    host.current().log(Level.ERROR, message)


def critical(message: str) -> None:
    """Writes a line about a part that others need."""
    host.current().log(Level.CRITICAL, message)


def alert(message: str) -> None:
    """Logs that immediate action is required."""
    host.current().log(Level.ALERT, message)


def emergency(message: str) -> None:
    """Logs that the system is unusable."""
    host.current().log(Level.EMERGENCY, message)
