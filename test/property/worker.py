"""A process that stands in the mount and does what it is told: one JSON request a line, one JSON answer a line.

The property test drives two of these: one works inside the mount, the other looks at the folder behind it. An
operation that fails is part of the game (its errno is the answer): the sequences are random and have no model, the truth
is the tree itself at the moment a turn begins. Descriptors and mappings live in numbered slots that outlive turns.
"""

import ctypes
import errno
import hashlib
import json
import mmap
import os
import socket
import stat
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from snapshot_tree import walk  # noqa: E402

LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_SYMLINK_FOLLOW = 0x400
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
KEEP_SIZE, PUNCH_HOLE, COLLAPSE, INSERT = 0x01, 0x02, 0x08, 0x20
NAMES = [b"a", b"b", b"c", b"d", b"e.txt", b"f\xff.bin", "gr\u00fc\u00df".encode()]
SLOTS = {}


def call(name, *args):
    """A libc function that sets errno, as an OSError."""
    result = getattr(LIBC, name)(*args)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def fill(seed, length):
    """Bytes that differ for every seed and compress badly enough to be told apart at any offset."""
    if length <= 0:
        return b""
    block = hashlib.sha256(b"%d" % seed).digest()
    return (block * (length // len(block) + 1))[:length]


class Tree:
    """Picks by number among what is there now, in byte order, so that a sequence means the same on every run."""

    def __init__(self, root):
        self.root = root
        self.dirs, self.files, self.all = [root], [], []
        self.walk(root)

    def walk(self, folder):
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda e: e.name)
        for entry in entries:
            self.all.append(entry.path)
            if entry.is_dir(follow_symlinks=False):
                self.dirs.append(entry.path)
                self.walk(entry.path)
            elif entry.is_file(follow_symlinks=False):
                self.files.append(entry.path)

    @staticmethod
    def choose(paths, number):
        if not paths:
            raise OSError(errno.ENOENT, "nothing to choose from")
        return paths[number % len(paths)]

    def dir(self, number):
        return self.choose(self.dirs, number)

    def below(self, number):
        """A directory, but not the root of the case."""
        return self.choose(self.dirs[1:], number)

    def file(self, number):
        return self.choose(self.files, number)

    def any(self, number):
        return self.choose(self.all, number)

    def any_or_root(self, number):
        return self.choose([self.root] + self.all, number)

    def new(self, number, name):
        return os.path.join(self.dir(number), NAMES[name % len(NAMES)])


class Slot:
    def __init__(self, fd):
        self.fd = fd
        self.map = None

    def close(self):
        if self.map is not None:
            self.map.close()
        if self.fd >= 0:
            os.close(self.fd)


def slot(number):
    """Any slot that is in use."""
    if not SLOTS:
        raise OSError(errno.EBADF, "nothing is open")
    return SLOTS[sorted(SLOTS)[number % len(SLOTS)]]


def put(number, value):
    if number in SLOTS:
        SLOTS.pop(number).close()
    SLOTS[number] = value


def with_fd(path, flags, work):
    # Never through a symlink (some lead out of the project), and never waiting for the other end of a FIFO.
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    try:
        return work(fd)
    finally:
        os.close(fd)


def op_create(t, d, name, length, seed):
    with_fd(t.new(d, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, lambda fd: os.write(fd, fill(seed, length)))


def op_excl(t, d, name, mode):
    os.close(os.open(t.new(d, name), os.O_NOFOLLOW | os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))


def op_write(t, f, offset, length, seed):
    with_fd(t.file(f), os.O_WRONLY, lambda fd: os.pwrite(fd, fill(seed, length), offset))


def op_append(t, f, length, seed):
    with_fd(t.file(f), os.O_WRONLY | os.O_APPEND, lambda fd: os.write(fd, fill(seed, length)))


def op_truncate(t, f, size):
    os.truncate(t.file(f), size)


def op_fallocate(t, f, how, offset, length):
    # Not plain allocation and ZERO_RANGE: what they leave is neither hole nor data. SEEK_DATA calls it a hole until somebody
    # reads it, so that looking at a tree would change it. The promise tests have them.
    mode = [PUNCH_HOLE | KEEP_SIZE, COLLAPSE, INSERT][how % 3]
    if mode in (COLLAPSE, INSERT):
        offset, length = offset & ~4095, (length & ~4095) or 4096
    offset, length = ctypes.c_long(offset), ctypes.c_long(max(1, length))
    with_fd(t.file(f), os.O_RDWR, lambda fd: call("fallocate", fd, mode, offset, length))


def op_copy_range(t, f, g, from_offset, to_offset, length):
    def work(fd):
        return with_fd(t.file(g), os.O_RDWR, lambda to: os.copy_file_range(fd, to, length, from_offset, to_offset))

    with_fd(t.file(f), os.O_RDONLY, work)


def op_mkdir(t, d, name, mode):
    os.mkdir(t.new(d, name), mode)


def op_rmdir(t, d):
    os.rmdir(t.below(d))


def remove_tree(folder):
    with os.scandir(folder) as listing:
        entries = list(listing)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            remove_tree(entry.path)
        else:
            os.unlink(entry.path)
    os.rmdir(folder)


def op_remove_tree(t, d):
    remove_tree(t.below(d))


def op_unlink(t, a):
    os.unlink(t.any(a))


def op_rename(t, a, d, name):
    os.rename(t.any(a), t.new(d, name))


def op_rename_onto(t, a, b):
    os.rename(t.any(a), t.any(b))


def op_noreplace(t, a, d, name):
    call("renameat2", AT_FDCWD, t.any(a), AT_FDCWD, t.new(d, name), RENAME_NOREPLACE)


def op_exchange(t, a, b):
    call("renameat2", AT_FDCWD, t.any(a), AT_FDCWD, t.any(b), RENAME_EXCHANGE)


def op_cycle(t, a, b, c):
    """a → b → c → a by way of a fourth name."""
    x, y, z = t.any(a), t.any(b), t.any(c)
    spare = os.path.join(t.root, b".cycle")
    os.rename(x, spare)
    try:
        os.rename(z, x)
        os.rename(y, z)
        os.rename(spare, y)
    except OSError:
        if os.path.lexists(spare) and not os.path.lexists(x):
            os.rename(spare, x)
        raise


def op_link(t, a, d, name):
    os.link(t.any(a), t.new(d, name), follow_symlinks=False)


def op_symlink(t, d, name, target):
    os.symlink([b"a", b"../b", b"/nowhere/at all", b"./c/d", b"/proc/self/nothing"][target % 5], t.new(d, name))


def op_mknod(t, d, name, how):
    path = t.new(d, name)
    if how % 3 == 0:
        os.mkfifo(path, 0o640)
    elif how % 3 == 1:
        # A socket's path may have 108 bytes: bind it by way of the folder's descriptor.
        def work(fd):
            with socket.socket(socket.AF_UNIX) as s:
                s.bind(b"/proc/self/fd/%d/%s" % (fd, os.path.basename(path)))

        with_fd(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY, work)
    else:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))


def op_chmod(t, a, mode):
    path = t.any_or_root(a)
    if not os.path.islink(path):
        os.chmod(path, mode)


def op_chown(t, a, uid, gid):
    os.lchown(t.any_or_root(a), uid, gid)


def op_utimes(t, a, seconds, nanoseconds):
    ns = seconds * 1_000_000_000 + nanoseconds
    os.utime(t.any_or_root(a), ns=(ns, ns), follow_symlinks=False)


def op_setxattr(t, a, name, length, seed):
    os.setxattr(t.any_or_root(a), [b"user.one", b"user.two", b"trusted.three"][name % 3], fill(seed, length), 0, follow_symlinks=False)


def op_removexattr(t, a, name):
    os.removexattr(t.any_or_root(a), [b"user.one", b"user.two", b"trusted.three"][name % 3], follow_symlinks=False)


def op_acl(t, a, uid, permissions, default):
    def entry(tag, perm, who=0xFFFFFFFF):
        return struct.pack("<HHI", tag, perm, who)

    value = struct.pack("<I", 2) + entry(0x01, 7) + entry(0x02, permissions & 7, uid) + entry(0x04, 5) + entry(0x10, 7) + entry(0x20, 0)
    path = t.any_or_root(a)
    name = "system.posix_acl_default" if default and os.path.isdir(path) else "system.posix_acl_access"
    os.setxattr(path, name, value, 0, follow_symlinks=False)


def op_save(t, f, length, seed, how):
    """How editors save: a new file renamed over, a backup first, or in place."""
    path = t.file(f)
    if how % 3 == 0:
        spare = path + b".tmp"
        with_fd(spare, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, lambda fd: (os.write(fd, fill(seed, length)), os.fsync(fd)))
        os.rename(spare, path)
    elif how % 3 == 1:
        os.rename(path, path + b"~")
        with_fd(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, lambda fd: os.write(fd, fill(seed, length)))
        os.unlink(path + b"~")
    else:
        with_fd(path, os.O_WRONLY | os.O_TRUNC, lambda fd: os.write(fd, fill(seed, length)))


def op_open(t, s, f):
    put(s, Slot(os.open(t.file(f), os.O_RDWR | os.O_CLOEXEC)))


def op_open_unlink(t, s, f):
    path = t.file(f)
    put(s, Slot(os.open(path, os.O_RDWR | os.O_CLOEXEC)))
    os.unlink(path)


def op_tmpfile(t, s, d, length, seed):
    fd = os.open(t.dir(d), os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    put(s, Slot(fd))
    os.write(fd, fill(seed, length))


def op_link_slot(t, s, d, name):
    fd = slot(s).fd
    call("linkat", AT_FDCWD, b"/proc/self/fd/%d" % fd, AT_FDCWD, t.new(d, name), AT_SYMLINK_FOLLOW)


def op_slot_write(t, s, offset, length, seed):
    os.pwrite(slot(s).fd, fill(seed, length), offset)


def op_slot_truncate(t, s, size):
    os.ftruncate(slot(s).fd, size)


def op_slot_chmod(t, s, mode):
    os.fchmod(slot(s).fd, mode)


def op_slot_fsync(t, s):
    os.fsync(slot(s).fd)


def op_map(t, s):
    one = slot(s)
    if one.map is None:
        size = os.fstat(one.fd).st_size
        if size == 0:
            raise OSError(errno.EINVAL, "nothing to map")
        one.map = mmap.mmap(one.fd, size)


def op_store(t, s, offset, length, seed):
    """A store past the end of a file that was cut meanwhile would be SIGBUS: stay below its present end."""
    one = slot(s)
    if one.map is None:
        raise OSError(errno.EINVAL, "no mapping")
    end = min(len(one.map), os.fstat(one.fd).st_size)
    if end == 0:
        raise OSError(errno.EINVAL, "cut to nothing")
    start = offset % end
    stop = min(end, start + length)
    one.map[start:stop] = fill(seed, stop - start)


def op_msync(t, s):
    one = slot(s)
    if one.map is None:
        raise OSError(errno.EINVAL, "no mapping")
    one.map.flush()


def op_close(t, s):
    one = slot(s)
    del SLOTS[next(number for number, held in SLOTS.items() if held is one)]
    one.close()


def op_read(t, a):
    path = t.any(a)
    if stat.S_ISREG(os.lstat(path).st_mode):
        with_fd(path, os.O_RDONLY, lambda fd: os.read(fd, 1 << 16))


def run_ops(root, ops):
    results = []
    for name, *numbers in ops:
        try:
            globals()["op_" + name](Tree(root), *numbers)
            results.append("ok")
        except OSError as e:
            results.append(errno.errorcode.get(e.errno, str(e.errno)))
    return results


class StatxTime(ctypes.Structure):
    _fields_ = [("sec", ctypes.c_int64), ("nsec", ctypes.c_uint32), ("pad", ctypes.c_int32)]


def birth(path):
    """Birth time: an inode number alone may have been given to something new."""
    buffer = ctypes.create_string_buffer(256)
    call("statx", AT_FDCWD, path, 0x100, 0x800, buffer)
    born = StatxTime.from_buffer(buffer, 80)
    return f"{born.sec}.{born.nsec:09d}"


def snapshot(root):
    """Everything the promise of exactness names, of the folder and of all below it; the store in it is not part of it."""
    tree = walk(root, {b".turnfs"})
    for name, one in tree.items():
        one["birth"] = birth(root if name == "." else os.path.join(root, name.encode("latin1")))
    return tree


def answer(request):
    do = request["do"]
    if do == "ops":
        return run_ops(request["root"].encode(), request["ops"])
    if do == "snapshot":
        return snapshot(request["root"].encode())
    if do == "mkdir":
        os.mkdir(request["root"])
        return None
    if do == "close-all":
        for number in list(SLOTS):
            SLOTS.pop(number).close()
        return None
    raise ValueError(f"unknown request {do}")


def main():
    os.umask(0o022)
    for line in sys.stdin:
        try:
            reply = {"ok": answer(json.loads(line))}
        except Exception as e:  # the test reads it and fails with it
            reply = {"error": f"{type(e).__name__}: {e}"}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


main()
