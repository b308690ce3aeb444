"""One function per system call that changes something. `calls.py prepare` makes a folder for each, `calls.py list` names
them, `calls.py run` makes each call in its folder and prints {name: "ok" or the errno}.

Used by p01-complete.test.ts: what is in this list is captured, and what is in REFUSED is refused, never passed blind.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import socket
import stat
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
CWD = -100
PAGE = 4096


def libc(name, *args):
    if getattr(LIBC, name)(*args) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def fd(path="f", flags=os.O_RDWR):
    return os.open(path, flags | os.O_CLOEXEC, 0o640)


def fallocate(mode, offset, length, path="f"):
    libc("fallocate", fd(path), mode, ctypes.c_long(offset), ctypes.c_long(length))


def mapped(sync):
    f = fd()
    m = mmap.mmap(f, PAGE)
    m[10:16] = b"mapped"
    if sync:
        m.flush()
    m.close()
    os.close(f)


def bind(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)


def tmpfile_link():
    f = fd(".", os.O_TMPFILE | os.O_RDWR)
    os.write(f, b"born nameless")
    libc("linkat", CWD, b"/proc/self/fd/%d" % f, CWD, b"named", 0x400)


def copy_range():
    os.copy_file_range(fd("g", os.O_RDONLY), fd(), 3000, 0, 1000)


def renameat2(one, other, flags):
    libc("renameat2", CWD, one, CWD, other, flags)


def acl(name):
    entry = lambda tag, perm, who=0xFFFFFFFF: struct.pack("<HHI", tag, perm, who)
    os.setxattr("d" if name.endswith("default") else "f", name, struct.pack("<I", 2) + entry(1, 7) + entry(2, 6, 1000) + entry(4, 5) + entry(16, 7) + entry(32, 0))


def unlinked_write():
    f = fd()
    os.unlink("f")
    os.pwrite(f, b"after the unlink", 0)


def sendfile():
    os.sendfile(fd(), fd("g", os.O_RDONLY), 0, 2000)


def splice():
    r, w = os.pipe()
    os.write(w, b"through a pipe")
    os.splice(r, fd(), 14, offset_dst=7)


CALLS = {
    "write": lambda: os.write(fd(), b"written"),
    "pwrite": lambda: os.pwrite(fd(), b"written", 5000),
    "pwritev": lambda: os.pwritev(fd(), [b"one", b"two"], 100),
    "write with O_APPEND": lambda: os.write(fd("f", os.O_WRONLY | os.O_APPEND), b"appended"),
    "write with O_SYNC": lambda: os.write(fd("f", os.O_WRONLY | os.O_SYNC), b"synced"),
    "write past the end": lambda: os.pwrite(fd(), b"far", 500_000),
    "sendfile": sendfile,
    "splice": splice,
    "mmap store, msync": lambda: mapped(True),
    "mmap store, no msync": lambda: mapped(False),
    "truncate down": lambda: os.truncate("f", 10),
    "truncate up": lambda: os.truncate("f", 100_000),
    "ftruncate": lambda: os.ftruncate(fd(), 0),
    "open with O_TRUNC": lambda: fd("f", os.O_WRONLY | os.O_TRUNC),
    "fallocate": lambda: fallocate(0, 0, 50_000),
    "fallocate keeping the size": lambda: (fallocate(1, 0, 50_000), os.utime("f")),
    "fallocate punch": lambda: fallocate(3, PAGE, PAGE, "g"),
    "fallocate zero range": lambda: fallocate(0x10, 100, 3000),
    "copy_file_range": copy_range,
    "create": lambda: fd("new", os.O_CREAT | os.O_EXCL | os.O_WRONLY),
    "creat over a file": lambda: fd("f", os.O_CREAT | os.O_TRUNC | os.O_WRONLY),
    "mknod file": lambda: os.mknod("new", stat.S_IFREG | 0o600),
    "mknod FIFO": lambda: os.mkfifo("new"),
    "mknod device": lambda: os.mknod("new", stat.S_IFCHR | 0o600, os.makedev(1, 3)),
    "bind": lambda: bind("new"),
    "mkdir": lambda: os.mkdir("new"),
    "rmdir": lambda: os.rmdir("d"),
    "unlink": lambda: os.unlink("f"),
    "unlink one of two names": lambda: os.unlink("h1"),
    "unlink a symlink": lambda: os.unlink("l"),
    "unlink a FIFO": lambda: os.unlink("p"),
    "unlink, then write": unlinked_write,
    "rename": lambda: os.rename("f", "new"),
    "rename into another folder": lambda: os.rename("f", "full/f"),
    "rename over a file": lambda: os.rename("f", "g"),
    "rename over one of two names": lambda: os.rename("f", "h1"),
    "rename over a symlink": lambda: os.rename("f", "l"),
    "rename a folder": lambda: os.rename("full", "new"),
    "rename a folder over an empty one": lambda: os.rename("full", "d"),
    "renameat2 NOREPLACE": lambda: renameat2(b"f", b"new", 1),
    "renameat2 EXCHANGE files": lambda: renameat2(b"f", b"g", 2),
    "renameat2 EXCHANGE a file and a folder": lambda: renameat2(b"f", b"full", 2),
    "link": lambda: os.link("f", "new"),
    "symlink": lambda: os.symlink("f", "new"),
    "O_TMPFILE and linkat": tmpfile_link,
    "chmod": lambda: os.chmod("f", 0o4711),
    "fchmod": lambda: os.fchmod(fd(), 0o600),
    "chmod of a folder": lambda: os.chmod("d", 0o2700),
    "chown": lambda: os.chown("f", 12, 34),
    "lchown": lambda: os.lchown("l", 12, 34),
    "utimensat": lambda: os.utime("f", ns=(5, 6)),
    "utimensat of a symlink": lambda: os.utime("l", ns=(5, 6), follow_symlinks=False),
    "utimensat of a folder": lambda: os.utime("d", ns=(7, 8)),
    "futimens": lambda: os.utime(fd()),
    "setxattr": lambda: os.setxattr("f", "user.mine", b"changed"),
    "setxattr of a new name": lambda: os.setxattr("f", "user.new", b"new"),
    "setxattr of a folder": lambda: os.setxattr("d", "user.new", b"new"),
    "removexattr": lambda: os.removexattr("f", "user.mine"),
    "setxattr security.capability": lambda: os.setxattr("f", "security.capability", struct.pack("<IIIII", 0x02000001, 1, 0, 0, 0)),
    "set an ACL": lambda: acl("system.posix_acl_access"),
    "set a default ACL": lambda: acl("system.posix_acl_default"),
}

FS_IOC_SETFLAGS, FICLONE, FS_IOC_FSSETXATTR = 0x40086602, 0x40049409, 0x401C5820
REFUSED = {
    "ioctl SETFLAGS": (lambda: fcntl.ioctl(fd(), FS_IOC_SETFLAGS, struct.pack("l", 0x20)), {"ENOTTY", "ENOTSUP"}),
    "ioctl FSSETXATTR": (lambda: fcntl.ioctl(fd(), FS_IOC_FSSETXATTR, bytes(28)), {"ENOTTY", "ENOTSUP"}),
    "ioctl FICLONE": (lambda: fcntl.ioctl(fd(), FICLONE, fd("g")), {"ENOTSUP", "EINVAL", "EXDEV", "ENOTTY"}),
    # The kernel's FUSE client knows neither.
    "fallocate collapse": (lambda: fallocate(0x08, PAGE, PAGE, "g"), {"ENOTSUP"}),
    "fallocate insert": (lambda: fallocate(0x20, PAGE, PAGE, "g"), {"ENOTSUP"}),
    "renameat2 WHITEOUT": (lambda: renameat2(b"f", b"new", 4), {"EINVAL"}),
}


def folder(name):
    return name.replace(" ", "-").replace(",", "")


def prepare():
    for name in [*CALLS, *REFUSED]:
        os.mkdir(folder(name))
        os.chdir(folder(name))
        for file, length in (("f", 6000), ("g", 40_000)):
            with open(file, "wb") as f:
                f.write((file.encode() + name.encode()) * (length // 10))
            os.utime(file, ns=(1, 1_500_000_000_123_456_789))
        os.setxattr("f", "user.mine", b"mine")
        with open("h1", "w") as f:
            f.write("hard")
        os.link("h1", "h2")
        os.symlink("f", "l")
        os.mkfifo("p")
        os.mkdir("d")
        os.mkdir("full")
        with open("full/in", "w") as f:
            f.write("in")
        os.utime(".", ns=(1, 1_600_000_000_000_000_001))
        os.chdir("..")


def attempt(name, call):
    home = os.getcwd()
    os.chdir(folder(name))
    try:
        call()
        return "ok"
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e.errno))
    finally:
        os.chdir(home)


def main():
    if sys.argv[1] == "prepare":
        prepare()
    elif sys.argv[1] == "list":
        print(json.dumps({"calls": {n: folder(n) for n in CALLS}, "refused": {n: [folder(n), sorted(e)] for n, (_, e) in REFUSED.items()}}))
    else:
        print(json.dumps({**{n: attempt(n, c) for n, c in CALLS.items()}, **{n: attempt(n, c) for n, (c, _) in REFUSED.items()}}))


main()
