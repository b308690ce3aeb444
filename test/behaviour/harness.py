"""What behaviour cases are made of: registration, errno capture, canonical stat, children, system calls Python has no name for.

A case is a function of no arguments, run in a process of its own whose working directory is a fresh folder. What it returns
(JSON) must be the same on a plain folder and on a mount; so it holds relations and errnos, never times, inode or device numbers.
"""

import ctypes
import errno
import json
import os
import signal
import stat
import sys
import time

CASES = {}

# Somebody who owns nothing here and is in no group of anybody's.
STRANGER = 54321
STRANGER_GROUP = 54321


def case(function=None, *, needs="anybody", seconds=30):
    """Registers a case. needs: "root" (it changes user ids), "user" (it only says something for ordinary users) or "anybody"."""

    def register(f):
        if f.__name__ in CASES:
            raise ValueError(f"two cases are named {f.__name__}")
        f.needs = needs
        f.seconds = seconds
        CASES[f.__name__] = f
        return f

    return register(function) if function else register


def attempt(function, *args, **kwargs):
    """The result of a call, or the name of its errno. None becomes "ok"."""
    try:
        result = function(*args, **kwargs)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    return "ok" if result is None else result


def attempt_open(path, flags, mode=0o666, **kwargs):
    """ "ok" or the errno name; the descriptor is closed."""
    result = attempt(os.open, path, flags, mode, **kwargs)
    if isinstance(result, int):
        os.close(result)
        return "ok"
    return result


def write(path, content, mode=0o666, flags=os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
    if isinstance(content, str):
        content = content.encode()
    fd = os.open(path, flags, mode)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def read(path):
    with open(path, "rb") as file:
        return file.read().decode("latin1")


KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "dir",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "char",
    stat.S_IFBLK: "block",
}


def show(info):
    """A stat result without what differs from run to run."""
    result = {
        "kind": KINDS[stat.S_IFMT(info.st_mode)],
        "mode": oct(stat.S_IMODE(info.st_mode)),
        "uid": info.st_uid,
        "gid": info.st_gid,
        "nlink": info.st_nlink,
    }
    if stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode):
        result["size"] = info.st_size
    if stat.S_ISCHR(info.st_mode) or stat.S_ISBLK(info.st_mode):
        result["rdev"] = info.st_rdev
    return result


def look(path):
    """lstat as `show` prints it, or an errno name."""
    try:
        return show(os.lstat(path))
    except OSError as error:
        return errno.errorcode[error.errno]


def mode_of(path):
    return oct(stat.S_IMODE(os.lstat(path).st_mode))


def in_child(function, uid=None, gid=None, groups=(), umask=None):
    """Runs function in a forked child, as another user if wanted; returns its JSON result, or how the child died."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        status = 1
        try:
            if umask is not None:
                os.umask(umask)
            if gid is not None:
                os.setgroups(list(groups))
                os.setresgid(gid, gid, gid)
            if uid is not None:
                os.setresuid(uid, uid, uid)
            os.write(writer, json.dumps(function()).encode())
            status = 0
        except OSError as error:
            os.write(writer, json.dumps({"raised": errno.errorcode[error.errno], "line": line_of(error)}).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return "killed by " + signal.Signals(os.WTERMSIG(status)).name
    return json.loads(answer) if answer else f"exit {os.WEXITSTATUS(status)}"


def as_stranger(function, groups=(), umask=None):
    return in_child(function, uid=STRANGER, gid=STRANGER_GROUP, groups=groups, umask=umask)


def start_child(function):
    """Forks a child that runs function and exits 0, or 1 when it raised; returns its pid."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            function()
            status = 0
        finally:
            os._exit(status)
    return pid


def wait_all(pids):
    """Exit statuses in the order of pids."""
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def line_of(error):
    """Line numbers from the outermost frame in: tells which call of a case raised."""
    lines = []
    trace = error.__traceback__
    while trace:
        lines.append(trace.tb_lineno)
        trace = trace.tb_next
    return lines


def tick():
    """Waits until the kernel's coarse clock has moved, so that two changes get different times."""
    time.sleep(0.012)


# System calls without a function in the os module.

libc = ctypes.CDLL(None, use_errno=True)

AT_FDCWD = -100
AT_SYMLINK_FOLLOW = 0x400
AT_SYMLINK_NOFOLLOW = 0x100
AT_EMPTY_PATH = 0x1000
RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2
RENAME_WHITEOUT = 4
FALLOC_KEEP_SIZE = 1
FALLOC_PUNCH_HOLE = 2
FALLOC_COLLAPSE_RANGE = 8
FALLOC_ZERO_RANGE = 16
FALLOC_INSERT_RANGE = 32
FALLOC_UNSHARE_RANGE = 64
UTIME_NOW = (1 << 30) - 1
UTIME_OMIT = (1 << 30) - 2


def checked(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def raw(path):
    return os.fsencode(path)


def renameat2(old, new, flags):
    checked(libc.renameat2(AT_FDCWD, raw(old), AT_FDCWD, raw(new), flags))


def fallocate(fd, mode, offset, length):
    checked(libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)))


def linkat(old_dir, old, new_dir, new, flags):
    checked(libc.linkat(old_dir, raw(old), new_dir, raw(new), flags))


class Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


def utimensat(path, atime, mtime, flags=0):
    """atime and mtime are (seconds, nanoseconds); nanoseconds may be UTIME_NOW or UTIME_OMIT."""
    times = (Timespec * 2)(Timespec(*atime), Timespec(*mtime))
    checked(libc.utimensat(AT_FDCWD, raw(path), times, flags))


def copy_file_range(source, source_offset, target, target_offset, length):
    return os.copy_file_range(source, target, length, source_offset, target_offset)


def fchmodat2(path, mode, flags):
    """System call 452, Linux 6.6; the C library's fchmodat emulates the flag instead."""
    checked(libc.syscall(452, AT_FDCWD, raw(path), mode, flags))


def data_map(fd):
    """[start, end) of runs of data."""
    size = os.fstat(fd).st_size
    runs = []
    offset = 0
    while offset < size:
        try:
            start = os.lseek(fd, offset, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                break
            raise
        offset = os.lseek(fd, start, os.SEEK_HOLE)
        runs.append([start, offset])
    return runs


def run_tool(*command, input=None):
    """Status, output and errors of a program. The folder's own path is replaced by "."."""
    reader, writer = os.pipe()
    error_reader, error_writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(writer, 1)
            os.dup2(error_writer, 2)
            os.environ["LC_ALL"] = "C"
            os.execvp(command[0], command)
        except OSError as error:
            os._exit(126 if error.errno != errno.ENOENT else 127)
        finally:
            os._exit(125)
    os.close(writer)
    os.close(error_writer)
    with os.fdopen(reader, "rb") as out, os.fdopen(error_reader, "rb") as err:
        output = out.read().decode("latin1")
        errors = err.read().decode("latin1")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    here = os.getcwd()
    return {"status": status, "out": output.replace(here, "."), "err": errors.replace(here, ".")}


def say(message):
    print(message, file=sys.stderr, flush=True)
