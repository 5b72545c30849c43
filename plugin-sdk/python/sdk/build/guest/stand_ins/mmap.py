"""`mmap`, without mapped files."""

from toolbay_guest import missing

ACCESS_DEFAULT, ACCESS_READ, ACCESS_WRITE, ACCESS_COPY = range(4)
ALLOCATIONGRANULARITY = PAGESIZE = 65536
MAP_SHARED, MAP_PRIVATE, MAP_ANON = 1, 2, 0x20
MAP_ANONYMOUS = MAP_ANON
PROT_READ, PROT_WRITE, PROT_EXEC = 1, 2, 4

mmap = missing.kind("mmap.mmap", "read the file with `open`")
error = OSError
