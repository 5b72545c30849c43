"""`_multiprocessing`, without processes."""

from toolbay_guest import missing

_INSTEAD = "it has one process and no threads"

SemLock = missing.kind("multiprocessing.SemLock", _INSTEAD)
sem_unlink = missing.function("multiprocessing.sem_unlink", _INSTEAD)
flags: dict[str, int] = {}
