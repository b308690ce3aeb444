"""Memory maps of files."""

import mmap
import os
import signal

from harness import (
    FALLOC_KEEP_SIZE,
    FALLOC_PUNCH_HOLE,
    attempt,
    case,
    fallocate,
    in_child,
    read,
    start_child,
    wait_all,
    write,
)

PAGE = 4_096


def open_map(name, length, access=None, flags=os.O_RDWR):
    fd = os.open(name, flags)
    if access is None:
        return fd, mmap.mmap(fd, length)
    return fd, mmap.mmap(fd, length, access=access)


@case
def mmap_shared_stores_are_written():
    """Stores reach readers at once, and the file after msync and after unmapping"""
    write("f", b"a" * 3 * PAGE)
    fd, memory = open_map("f", 3 * PAGE)
    memory[0:5] = b"HELLO"
    before_sync = os.pread(fd, 5, 0).decode()
    memory.flush()
    memory[PAGE : PAGE + 3] = b"two"
    memory.close()
    os.close(fd)
    return [before_sync, read("f")[:6], read("f")[PAGE : PAGE + 4], os.stat("f").st_size]


@case
def mmap_private_stores_stay():
    """Stores to a private map don't reach the file"""
    write("f", b"a" * PAGE)
    fd, memory = open_map("f", PAGE, mmap.ACCESS_COPY)
    memory[0:5] = b"HELLO"
    return [read("f")[:5], memory[0:5].decode()]


@case
def mmap_sees_writes():
    """What write puts into a file shows in its maps"""
    write("f", b"a" * 2 * PAGE)
    fd, memory = open_map("f", 2 * PAGE)
    touched = memory[0:1].decode()
    os.pwrite(fd, b"xyz", 1)
    write("f", "QQ", flags=os.O_WRONLY)
    return [touched, memory[0:5].decode()]


@case
def mmap_after_close():
    """A map outlives its descriptor"""
    write("f", b"a" * PAGE)
    fd, memory = open_map("f", PAGE)
    os.close(fd)
    memory[10:14] = b"late"
    memory.close()
    return [read("f")[9:15]]


@case
def mmap_between_processes():
    """Two processes see each other's stores"""
    write("f", bytes(PAGE))
    fd, memory = open_map("f", PAGE)

    def child():
        _, own = open_map("f", PAGE)
        own[0:3] = b"abc"

    statuses = wait_all([start_child(child)])
    return [statuses, memory[0:3].decode()]


@case
def mmap_beyond_the_end_is_sigbus():
    """Touching pages beyond the end kills; the rest of the last page is zeros"""
    write("f", b"x" * 100)

    fd = os.open("f", os.O_RDWR)
    os.ftruncate(fd, 3 * PAGE)
    memory = mmap.mmap(fd, 3 * PAGE)
    os.ftruncate(fd, 100)

    def poke(at):
        signal.signal(signal.SIGBUS, signal.SIG_DFL)
        return memory[at]

    return [in_child(lambda: poke(50)), in_child(lambda: poke(200)), in_child(lambda: poke(PAGE + 1))]


@case
def mmap_tail_of_last_page_is_not_written():
    """Stores behind the end in the last page don't come back when the file grows"""
    write("f", b"x" * 100)
    fd = os.open("f", os.O_RDWR)
    memory = mmap.mmap(fd, 0)
    os.ftruncate(fd, 50)
    os.ftruncate(fd, PAGE)
    return [memory[0:100].count(b"x"), read("f").count("x"), os.stat("f").st_size]


@case
def mmap_truncated_and_grown():
    """After shrinking and growing, a map shows zeros where the file was cut"""
    write("f", b"y" * 4 * PAGE)
    fd, memory = open_map("f", 4 * PAGE)
    touched = memory[3 * PAGE]
    os.ftruncate(fd, PAGE + 10)
    os.ftruncate(fd, 4 * PAGE)
    return [touched, memory[PAGE + 9], memory[PAGE + 10], memory[3 * PAGE], memory[:].count(b"y")]


@case
def mmap_of_punched_file():
    """A hole punched under a map reads as zeros in it, and stores into it stick"""
    write("f", b"y" * 4 * PAGE)
    fd, memory = open_map("f", 4 * PAGE)
    memory[PAGE] = ord("z")
    fallocate(fd, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, PAGE, PAGE)
    zeros = memory[PAGE : 2 * PAGE].count(b"\0")
    memory[PAGE + 5] = ord("n")
    memory.flush()
    return [zeros, os.pread(fd, 7, PAGE).decode(), read("f").count("y")]


@case
def mmap_into_holes():
    """Stores into the holes of a sparse file"""
    fd = os.open("f", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 100 * PAGE)
    memory = mmap.mmap(fd, 100 * PAGE)
    for page in (0, 50, 99):
        memory[page * PAGE] = 65 + page % 26
    memory.close()
    content = read("f")
    return [len(content), content.count("\0"), [content[p * PAGE] for p in (0, 50, 99)]]


@case
def mmap_permissions():
    """A shared writable map needs a descriptor for reading and writing"""
    write("f", b"x" * PAGE)
    reader, writer = os.open("f", os.O_RDONLY), os.open("f", os.O_WRONLY)
    os.mkdir("d")
    folder = os.open("d", os.O_RDONLY)

    def try_map(fd, protection, flags):
        return attempt(lambda: mmap.mmap(fd, PAGE, flags, protection).close())

    both = mmap.PROT_READ | mmap.PROT_WRITE
    return [
        try_map(reader, both, mmap.MAP_SHARED),
        try_map(reader, both, mmap.MAP_PRIVATE),
        try_map(reader, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_SHARED),
        try_map(writer, mmap.PROT_WRITE, mmap.MAP_SHARED),
        try_map(writer, mmap.PROT_READ, mmap.MAP_SHARED),
        try_map(folder, mmap.PROT_READ, mmap.MAP_SHARED),
    ]


@case
def mmap_of_unlinked_and_replaced_files():
    """Maps stay with their file when its name goes or is taken over"""
    write("f", b"first   ")
    fd, memory = open_map("f", 8)
    write("new", b"second  ")
    os.rename("new", "f")
    memory[0:5] = b"FIRST"
    os.close(fd)
    return [memory[:].decode(), read("f")]


@case
def mmap_big_and_scattered():
    """16 MiB mapped, every 37th page stored to, all of it in the file afterwards"""
    size = 16 << 20
    fd = os.open("f", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, size)
    memory = mmap.mmap(fd, size)
    for page in range(0, size // PAGE, 37):
        memory[page * PAGE : page * PAGE + 8] = b"%08d" % page
    memory.close()
    good = all(os.pread(fd, 8, page * PAGE) == b"%08d" % page for page in range(0, size // PAGE, 37))
    return [good, os.fstat(fd).st_size]


@case
def mmap_anonymous_copy_by_tools():
    """Programs that map what they read: sort -o in place, cmp, grep"""
    from harness import run_tool

    write("f", "b\na\nc\n" * 1000)
    return [run_tool("sort", "-u", "-o", "f", "f"), read("f"), run_tool("grep", "-c", "a", "f"), run_tool("cmp", "f", "f")]
