"""Log lines. They are sent to the host's log, and to the client if it requested logs.

Messages of Python's own `logging` are also sent there.
"""

from . import host
from .host import Level

__all__ = ["Level", "alert", "critical", "debug", "emergency", "error", "info", "notice", "warning"]


def debug(message: str) -> None:
    """Logs a message for debugging."""
    host.current().log(Level.DEBUG, message)


def info(message: str) -> None:
    """Logs a normal event."""
    host.current().log(Level.INFO, message)


def notice(message: str) -> None:
    """Logs a normal but significant event."""
    host.current().log(Level.NOTICE, message)


def warning(message: str) -> None:
    """Logs a possible problem."""
    host.current().log(Level.WARNING, message)


def error(message: str) -> None:
    """Logs an error."""
    host.current().log(Level.ERROR, message)


def critical(message: str) -> None:
    """Logs the failure of an essential component."""
    host.current().log(Level.CRITICAL, message)


def alert(message: str) -> None:
    """Logs that immediate action is required."""
    host.current().log(Level.ALERT, message)


def emergency(message: str) -> None:
    """Logs that the system is unusable."""
    host.current().log(Level.EMERGENCY, message)
