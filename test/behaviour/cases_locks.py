"""flock, record locks of processes and of descriptions."""

import errno
import fcntl
import os
import struct

from harness import attempt, case, in_child, start_child, wait_all, write

LOCK = "hhqqi"


def set_lock(fd, kind, start, length, command=fcntl.F_SETLK):
    fcntl.fcntl(fd, command, struct.pack(LOCK, kind, os.SEEK_SET, start, length, 0))


def holder(fd, kind, start, length, command=fcntl.F_GETLK):
    """Who would be in the way: (kind, start, length, pid)."""
    kind, _, start, length, pid = struct.unpack(LOCK, fcntl.fcntl(fd, command, struct.pack(LOCK, kind, os.SEEK_SET, start, length, 0)))
    names = {fcntl.F_RDLCK: "read", fcntl.F_WRLCK: "write", fcntl.F_UNLCK: "free"}
    return [names[kind], start, length, pid] if kind != fcntl.F_UNLCK else ["free"]


def try_flock(kind):
    def play():
        fd = os.open("f", os.O_RDWR)
        return attempt(fcntl.flock, fd, kind | fcntl.LOCK_NB)

    return in_child(play)


@case
def lock_flock_between_processes():
    """flock: shared with shared, exclusive alone, freed by close and by unlock"""
    write("f", "")
    fd = os.open("f", os.O_RDWR)
    results = []
    for kind in (fcntl.LOCK_SH, fcntl.LOCK_EX, fcntl.LOCK_UN):
        fcntl.flock(fd, kind)
        results.append([try_flock(fcntl.LOCK_SH), try_flock(fcntl.LOCK_EX)])
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.close(fd)
    return results + [try_flock(fcntl.LOCK_EX)]


@case
def lock_flock_is_of_the_description():
    """Two opens in one process conflict; a dup does not"""
    write("f", "")
    first, second = os.open("f", os.O_RDWR), os.open("f", os.O_RDONLY)
    copy = os.dup(first)
    fcntl.flock(first, fcntl.LOCK_EX)
    nb = fcntl.LOCK_EX | fcntl.LOCK_NB
    return [attempt(fcntl.flock, second, nb), attempt(fcntl.flock, copy, nb), in_child(lambda: attempt(fcntl.flock, first, nb))]


@case
def lock_records_between_processes():
    """Record locks: ranges that meet conflict, others don't; F_GETLK names the holder"""
    write("f", "0123456789")
    fd = os.open("f", os.O_RDWR)
    me = os.getpid()
    set_lock(fd, fcntl.F_WRLCK, 2, 4)
    set_lock(fd, fcntl.F_RDLCK, 8, 0)

    def play():
        own = os.open("f", os.O_RDWR)
        found = holder(own, fcntl.F_WRLCK, 0, 5)
        found[3] = found[3] == me
        return [
            attempt(set_lock, own, fcntl.F_WRLCK, 0, 2),
            attempt(set_lock, own, fcntl.F_RDLCK, 0, 3),
            attempt(set_lock, own, fcntl.F_WRLCK, 6, 2),
            attempt(set_lock, own, fcntl.F_RDLCK, 9, 100),
            attempt(set_lock, own, fcntl.F_WRLCK, 1000, 1),
            found,
            holder(own, fcntl.F_RDLCK, 9, 1),
        ]

    return in_child(play)


@case
def lock_records_go_with_any_close():
    """Closing any descriptor of the file frees the process's record locks"""
    write("f", "")
    fd = os.open("f", os.O_RDWR)
    set_lock(fd, fcntl.F_WRLCK, 0, 0)

    def play():
        return attempt(set_lock, os.open("f", os.O_RDWR), fcntl.F_WRLCK, 0, 0)

    before = in_child(play)
    os.close(os.open("f", os.O_RDONLY))
    return [before, in_child(play)]


@case
def lock_records_split_and_merge():
    """Unlocking the middle splits a lock, locking it again merges"""
    write("f", "")
    fd = os.open("f", os.O_RDWR)

    def seen():
        own = os.open("f", os.O_RDWR)
        return [holder(own, fcntl.F_WRLCK, at, 1)[:3] for at in (0, 5, 9)]

    set_lock(fd, fcntl.F_WRLCK, 0, 10)
    results = [in_child(seen)]
    set_lock(fd, fcntl.F_UNLCK, 4, 3)
    results.append(in_child(seen))
    set_lock(fd, fcntl.F_WRLCK, 4, 3)
    return results + [in_child(seen)]


@case
def lock_open_file_description_locks():
    """OFD locks conflict between two opens of one process"""
    write("f", "")
    first, second = os.open("f", os.O_RDWR), os.open("f", os.O_RDWR)
    ofd_set, ofd_get = 37, 36
    set_lock(first, fcntl.F_WRLCK, 0, 10, ofd_set)
    return [
        attempt(set_lock, second, fcntl.F_WRLCK, 5, 1, ofd_set),
        attempt(set_lock, second, fcntl.F_WRLCK, 10, 1, ofd_set),
        holder(second, fcntl.F_WRLCK, 0, 1, ofd_get),
        attempt(set_lock, second, fcntl.F_WRLCK, 0, 1),
    ]


@case
def lock_errnos():
    """Locks on descriptors that don't fit, and bad ranges"""
    write("f", "")
    reader, writer = os.open("f", os.O_RDONLY), os.open("f", os.O_WRONLY)
    return [
        attempt(set_lock, reader, fcntl.F_WRLCK, 0, 1),
        attempt(set_lock, writer, fcntl.F_RDLCK, 0, 1),
        attempt(set_lock, reader, fcntl.F_RDLCK, -5, 1),
        attempt(fcntl.flock, reader, fcntl.LOCK_EX),
        attempt(fcntl.flock, os.open(".", os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB),
    ]


@case
def lock_deadlock_is_found():
    """Two processes waiting for each other: one gets EDEADLK"""
    write("f", "")
    fd = os.open("f", os.O_RDWR)
    set_lock(fd, fcntl.F_WRLCK, 0, 1)
    ready_reader, ready_writer = os.pipe()

    def child():
        own = os.open("f", os.O_RDWR)
        set_lock(own, fcntl.F_WRLCK, 1, 1)
        os.write(ready_writer, b"x")
        set_lock(own, fcntl.F_WRLCK, 0, 1, fcntl.F_SETLKW)

    pid = start_child(child)
    os.read(ready_reader, 1)
    outcome = "ok"
    for _ in range(200):
        # Until the child waits, this would just succeed in waiting: ask without waiting first.
        outcome = attempt(set_lock, fd, fcntl.F_WRLCK, 1, 1)
        if outcome in ("EAGAIN", "EACCES"):
            import time

            time.sleep(0.05)
            try:
                set_lock(fd, fcntl.F_WRLCK, 1, 1, fcntl.F_SETLKW)
                outcome = "ok"
            except OSError as error:
                outcome = errno.errorcode[error.errno]
            break
    set_lock(fd, fcntl.F_UNLCK, 0, 0)
    return [outcome, wait_all([pid])]


@case
def lock_waiting_gets_its_turn():
    """A blocked flock and a blocked record lock go on when the holder lets go"""
    write("f", "")
    write("order", "")
    fd = os.open("f", os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    set_lock(fd, fcntl.F_WRLCK, 0, 1)

    def note(what):
        write("order", what, flags=os.O_WRONLY | os.O_APPEND)

    def by_flock():
        fcntl.flock(os.open("f", os.O_RDWR), fcntl.LOCK_EX)
        note("F")

    def by_record():
        set_lock(os.open("f", os.O_RDWR), fcntl.F_WRLCK, 0, 1, fcntl.F_SETLKW)
        note("R")

    first = start_child(by_flock)
    note("1")
    fcntl.flock(fd, fcntl.LOCK_UN)
    statuses = wait_all([first])
    second = start_child(by_record)
    note("2")
    set_lock(fd, fcntl.F_UNLCK, 0, 0)
    statuses += wait_all([second])
    return [statuses, sorted(open("order").read())]


@case
def lock_protected_counter():
    """Four processes count to 400 together under a record lock"""
    write("counter", "0")

    def child():
        fd = os.open("counter", os.O_RDWR)
        for _ in range(100):
            set_lock(fd, fcntl.F_WRLCK, 0, 0, fcntl.F_SETLKW)
            number = int(os.pread(fd, 20, 0))
            os.pwrite(fd, str(number + 1).encode(), 0)
            set_lock(fd, fcntl.F_UNLCK, 0, 0)

    return [wait_all([start_child(child) for _ in range(4)]), open("counter").read()]


@case
def lock_survives_rename_and_unlink():
    """Locks stay with the file, not the name"""
    write("f", "")
    fd = os.open("f", os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.rename("f", "g")
    write("f", "")
    free = try_flock(fcntl.LOCK_EX)
    os.rename("g", "f")
    held = try_flock(fcntl.LOCK_EX)
    os.unlink("f")
    return [free, held, attempt(fcntl.flock, fd, fcntl.LOCK_UN)]
