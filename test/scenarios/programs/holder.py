"""A program that goes on holding descriptors, mappings and a working directory while turns come and go.

One JSON array a line, `[verb, …]`, one JSON answer a line: {"ok": …} or {"errno": "ENOENT"}. Bytes travel as latin1 text.
"""

import ctypes
import errno
import json
import os
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100
FDS = {}
MAPS = {}
OPEN = {
    "r": os.O_RDONLY,
    "r+": os.O_RDWR,
    "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "w+": os.O_RDWR | os.O_CREAT | os.O_TRUNC,
    "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "tmpfile": os.O_RDWR | os.O_TMPFILE,
    "folder": os.O_RDONLY | os.O_DIRECTORY,
}


def call(name, *args):
    if getattr(LIBC, name)(*args) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def do_open(slot, path, how):
    FDS[slot] = os.open(path, OPEN[how] | os.O_CLOEXEC, 0o644)


def do_write(slot, offset, text):
    return os.pwrite(FDS[slot], text.encode("latin1"), offset)


def do_append(slot, text):
    return os.write(FDS[slot], text.encode("latin1"))


def do_read(slot, offset, length):
    return os.pread(FDS[slot], length, offset).decode("latin1")


def do_truncate(slot, size):
    os.ftruncate(FDS[slot], size)


def do_punch(slot, offset, length):
    call("fallocate", FDS[slot], 0x03, ctypes.c_long(offset), ctypes.c_long(length))


def do_fallocate(slot, mode, offset, length):
    call("fallocate", FDS[slot], mode, ctypes.c_long(offset), ctypes.c_long(length))


def do_fsync(slot):
    os.fsync(FDS[slot])


def do_stat(slot):
    s = os.fstat(FDS[slot])
    return {"ino": str(s.st_ino), "links": s.st_nlink, "size": s.st_size, "mtime": str(s.st_mtime_ns)}


def do_close(slot):
    os.close(FDS.pop(slot))


# Python's own mmap keeps a copy of the descriptor; here a mapping may well outlive the last one.
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.msync.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def do_map(slot):
    length = os.fstat(FDS[slot]).st_size
    address = LIBC.mmap(None, length, 3, 1, FDS[slot], 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    MAPS[slot] = (address, length)


def do_store(slot, offset, text):
    ctypes.memmove(MAPS[slot][0] + offset, text.encode("latin1"), len(text))


def do_load(slot, offset, length):
    return ctypes.string_at(MAPS[slot][0] + offset, length).decode("latin1")


def do_msync(slot):
    call("msync", *MAPS[slot], 4)


def do_unmap(slot):
    call("munmap", *MAPS.pop(slot))


def do_link(slot, path):
    """Gives a nameless file a name."""
    call("linkat", AT_FDCWD, b"/proc/self/fd/%d" % FDS[slot], AT_FDCWD, path.encode(), 0x400)


def do_exchange(one, other):
    call("renameat2", AT_FDCWD, one.encode(), AT_FDCWD, other.encode(), 2)


def do_unlink(path):
    os.unlink(path)


def do_rename(one, other):
    os.rename(one, other)


def do_chdir(path):
    os.chdir(path)


def do_list(path):
    return sorted(os.listdir(path))


def do_create(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))


def do_getcwd():
    return os.getcwd()


def main():
    for line in sys.stdin:
        verb, *args = json.loads(line)
        try:
            reply = {"ok": globals()["do_" + verb](*args)}
        except OSError as e:
            reply = {"errno": errno.errorcode.get(e.errno, str(e.errno))}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


main()
