"""Times: set to the nanosecond, and changed by the right operations only."""

import os

from harness import AT_SYMLINK_NOFOLLOW, UTIME_NOW, UTIME_OMIT, as_stranger, attempt, case, tick, utimensat, write

OLD = 1_000_000_000_123_456_789


def set_old(path, follow=True):
    os.utime(path, ns=(OLD, OLD), follow_symlinks=follow)


def moved(path, action):
    """Which of mtime and ctime of path an action moves."""
    set_old(path, follow=False)
    before = os.lstat(path)
    tick()
    action()
    after = os.lstat(path)
    return [name for name in ("mtime", "ctime") if getattr(before, f"st_{name}_ns") != getattr(after, f"st_{name}_ns")]


@case
def times_nanoseconds():
    """atime and mtime are kept to the nanosecond, before 1970 and after 2038 too"""
    write("f", "")
    results = []
    for seconds in (0, 1, 1_700_000_000, 2_147_483_647, 2_147_483_648, 4_294_967_296, -1, -1_000_000_000):
        outcome = attempt(utimensat, "f", (seconds, 123_456_789), (seconds, 999_999_999))
        info = os.stat("f")
        results.append([seconds, outcome, info.st_atime_ns, info.st_mtime_ns])
    return results


@case
def times_omit_and_now():
    """UTIME_OMIT leaves one time alone, UTIME_NOW takes the present"""
    write("f", "")
    set_old("f")
    utimensat("f", (5, 6), (0, UTIME_OMIT))
    first = [os.stat("f").st_atime_ns, os.stat("f").st_mtime_ns]
    utimensat("f", (0, UTIME_OMIT), (7, 8))
    second = [os.stat("f").st_atime_ns, os.stat("f").st_mtime_ns]
    utimensat("f", (0, UTIME_OMIT), (0, UTIME_OMIT))
    third = [os.stat("f").st_atime_ns, os.stat("f").st_mtime_ns]
    utimensat("f", (9, 9), (0, UTIME_NOW))
    fourth = [os.stat("f").st_atime_ns, os.stat("f").st_mtime_ns > OLD]
    utimensat("f", (0, UTIME_NOW), (0, UTIME_NOW))
    info = os.stat("f")
    return [first, second, third, fourth, info.st_atime_ns > OLD, info.st_atime_ns == info.st_mtime_ns]


@case
def times_of_symlinks_and_folders():
    """A symlink's own times, a folder's, a FIFO's, and through a descriptor"""
    write("f", "")
    os.symlink("f", "l")
    os.mkdir("d")
    os.mkfifo("p")
    results = []
    for number, name in enumerate("ldp"):
        utimensat(name, (number, 1), (number, 2), AT_SYMLINK_NOFOLLOW)
        results.append([os.lstat(name).st_atime_ns, os.lstat(name).st_mtime_ns])
    fd = os.open("f", os.O_RDONLY)
    os.utime(fd, ns=(11, 22))
    directory = os.open("d", os.O_RDONLY)
    os.utime(directory, ns=(33, 44))
    return [results, os.stat("f").st_mtime_ns, os.stat("d").st_mtime_ns, os.lstat("l").st_mtime_ns]


@case
def times_errnos():
    """utimensat of missing names and of bad nanoseconds"""
    write("f", "")
    return [
        attempt(utimensat, "missing", (1, 1), (1, 1)),
        attempt(utimensat, "f/x", (1, 1), (1, 1)),
        attempt(utimensat, "f", (1, 1_000_000_000), (1, 1)),
        attempt(utimensat, "f", (1, -5), (1, 1)),
    ]


@case(needs="root")
def times_by_others():
    """Others may set the present time if they may write, no other time"""
    write("writable", "")
    write("readable", "")
    os.chmod("writable", 0o666)
    os.chmod("readable", 0o644)
    now = (0, UTIME_NOW)

    def play():
        return [
            attempt(utimensat, "writable", now, now),
            attempt(utimensat, "writable", (1, 1), (1, 1)),
            attempt(utimensat, "writable", (0, UTIME_OMIT), now),
            attempt(utimensat, "readable", now, now),
            attempt(utimensat, "readable", (1, 1), (1, 1)),
            attempt(utimensat, "readable", (0, UTIME_OMIT), (0, UTIME_OMIT)),
        ]

    return as_stranger(play)


@case
def times_moved_by_file_operations():
    """Which operations move a file's mtime and ctime"""
    write("f", "0123456789")
    fd = os.open("f", os.O_RDWR)
    return {
        "write": moved("f", lambda: os.pwrite(fd, b"x", 0)),
        "write of nothing": moved("f", lambda: os.pwrite(fd, b"", 0)),
        "read": moved("f", lambda: os.pread(fd, 5, 0)),
        "truncate": moved("f", lambda: os.truncate("f", 5)),
        "truncate to the same size": moved("f", lambda: os.truncate("f", 5)),
        "ftruncate up": moved("f", lambda: os.ftruncate(fd, 50)),
        "open with O_TRUNC": moved("f", lambda: os.close(os.open("f", os.O_WRONLY | os.O_TRUNC))),
        "open with O_TRUNC of an empty file": moved("f", lambda: os.close(os.open("f", os.O_WRONLY | os.O_TRUNC))),
        "chmod": moved("f", lambda: os.chmod("f", 0o600)),
        "chmod to the same mode": moved("f", lambda: os.chmod("f", 0o600)),
        "chown to nothing": moved("f", lambda: os.chown("f", -1, -1)),
        "link": moved("f", lambda: os.link("f", "g")),
        "unlink of a link": moved("f", lambda: os.unlink("g")),
        "rename": moved("f", lambda: (os.rename("f", "h"), os.rename("h", "f"))),
        "setxattr": moved("f", lambda: os.setxattr("f", "user.a", b"1")),
        "removexattr": moved("f", lambda: os.removexattr("f", "user.a")),
        "fallocate": moved("f", lambda: os.posix_fallocate(fd, 0, 9000)),
        "fsync": moved("f", lambda: os.fsync(fd)),
        "stat": moved("f", lambda: os.stat("f")),
    }


@case
def times_moved_by_folder_operations():
    """Which operations move a folder's mtime and ctime"""
    os.mkdir("d")
    os.mkdir("other")
    write("outside", "")

    return {
        "create": moved("d", lambda: write("d/f", "")),
        "write to a file in it": moved("d", lambda: write("d/f", "x", flags=os.O_WRONLY)),
        "chmod of a file in it": moved("d", lambda: os.chmod("d/f", 0o600)),
        "rename in it": moved("d", lambda: os.rename("d/f", "d/g")),
        "rename out of it": moved("d", lambda: os.rename("d/g", "g")),
        "rename into it": moved("d", lambda: os.rename("g", "d/g")),
        "link into it": moved("d", lambda: os.link("outside", "d/h")),
        "unlink": moved("d", lambda: os.unlink("d/h")),
        "mkdir": moved("d", lambda: os.mkdir("d/s")),
        "mkdir below": moved("d", lambda: os.mkdir("d/s/t")),
        "rmdir below": moved("d", lambda: os.rmdir("d/s/t")),
        "rmdir": moved("d", lambda: os.rmdir("d/s")),
        "symlink": moved("d", lambda: os.symlink("x", "d/l")),
        "mkfifo": moved("d", lambda: os.mkfifo("d/p")),
        "listing": moved("d", lambda: os.listdir("d")),
        "failed create": moved("d", lambda: attempt(os.mkdir, "d/g")),
        "failed rename": moved("d", lambda: attempt(os.rename, "d/missing", "d/x")),
        "being renamed": moved("d", lambda: (os.rename("d", "other/d"), os.rename("other/d", "d"))),
    }


@case
def times_order_of_siblings():
    """A file written later has the later mtime; a folder's mtime is not before its newest entry's birth"""
    write("a", "")
    tick()
    write("b", "")
    tick()
    write("a", "again")
    return [os.stat("a").st_mtime_ns > os.stat("b").st_mtime_ns, os.stat(".").st_mtime_ns <= os.stat("b").st_mtime_ns]


@case
def times_of_replaced_file():
    """After rename over a file the times are those of the one that moved"""
    write("old", "old")
    write("new", "new")
    os.utime("new", ns=(OLD, OLD))
    os.stat("old")
    os.rename("new", "old")
    return [os.stat("old").st_mtime_ns == OLD, os.stat("old").st_size]


@case
def times_survive_copying_tools():
    """cp -p, touch -r and touch -d set the times they should"""
    from harness import run_tool

    write("f", "x")
    set_old("f")
    results = [run_tool("cp", "-p", "f", "copy"), run_tool("touch", "-d", "2001-02-03T04:05:06.789123456Z", "t")]
    results.append(run_tool("touch", "-m", "-r", "f", "t"))
    return results + [os.stat("copy").st_mtime_ns == OLD, os.stat("t").st_mtime_ns, os.stat("t").st_atime_ns]
