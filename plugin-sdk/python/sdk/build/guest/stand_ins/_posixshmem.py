"""`_posixshmem`, without shared memory."""

from toolbay_guest import missing

_INSTEAD = "it has one process"

shm_open = missing.function("multiprocessing.shared_memory", _INSTEAD)
shm_unlink = missing.function("multiprocessing.shared_memory", _INSTEAD)
