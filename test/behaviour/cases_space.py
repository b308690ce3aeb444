"""Holes, fallocate, and the calls that copy inside the kernel."""

import os

from harness import (
    FALLOC_COLLAPSE_RANGE,
    FALLOC_INSERT_RANGE,
    FALLOC_KEEP_SIZE,
    FALLOC_PUNCH_HOLE,
    FALLOC_UNSHARE_RANGE,
    FALLOC_ZERO_RANGE,
    attempt,
    case,
    copy_file_range,
    data_map,
    fallocate,
    read,
    run_tool,
    write,
)

BLOCK = 4_096


def blocks(letters):
    """A file whose blocks are the given letters."""
    return b"".join(letter.encode() * BLOCK for letter in letters)


def letters(fd):
    """One letter per block, "." for zeros, "?" for a mixed block."""
    result = ""
    size = os.fstat(fd).st_size
    for at in range(0, size, BLOCK):
        block = os.pread(fd, BLOCK, at)
        result += "." if not any(block) else chr(block[0]) if block == block[:1] * len(block) else "?"
    return result


@case
def space_fallocate_modes():
    """Allocating, punching and zeroing in a file of eight blocks: bytes and size"""
    results = {}
    for name, mode in {
        "allocate": 0,
        "keep size": FALLOC_KEEP_SIZE,
        "punch": FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE,
        "zero": FALLOC_ZERO_RANGE,
        "zero keep": FALLOC_ZERO_RANGE | FALLOC_KEEP_SIZE,
    }.items():
        for at, length in ((2, 3), (6, 4), (8, 2), (12, 2), (0, 8)):
            write("f", blocks("abcdefgh"))
            fd = os.open("f", os.O_RDWR)
            outcome = attempt(fallocate, fd, mode, at * BLOCK, length * BLOCK)
            results[f"{name} {at}+{length}"] = [outcome, letters(fd), os.fstat(fd).st_size]
            os.close(fd)
    return results


@case
def space_fallocate_odd_ranges():
    """Ranges that don't end at blocks"""
    results = {}
    for name, mode in {
        "allocate": 0,
        "punch": FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE,
        "zero": FALLOC_ZERO_RANGE,
    }.items():
        write("f", blocks("abcd"))
        fd = os.open("f", os.O_RDWR)
        outcome = attempt(fallocate, fd, mode, 100, 9_000)
        content = os.pread(fd, 100_000, 0)
        results[name] = [outcome, os.fstat(fd).st_size, content.count(b"\0"), content[99:101].decode(), content[9_099:9_101].decode()]
        os.close(fd)
    return results


@case
def space_fallocate_collapse_and_insert():
    """Ranges taken out of a file and put into it"""
    results = []
    for mode in (FALLOC_COLLAPSE_RANGE, FALLOC_INSERT_RANGE):
        write("f", blocks("abcdefgh"))
        fd = os.open("f", os.O_RDWR)
        results.append([attempt(fallocate, fd, mode, 2 * BLOCK, 3 * BLOCK), letters(fd)])
        os.close(fd)
    return results


@case
def space_fallocate_errnos():
    """Bad ranges, bad modes, bad descriptors"""
    write("f", "abc")
    os.mkdir("d")
    os.mkfifo("p")
    fd = os.open("f", os.O_RDWR)
    return [
        attempt(fallocate, fd, 0, 0, 0),
        attempt(fallocate, fd, 0, -1, 10),
        attempt(fallocate, fd, 0, 0, -1),
        attempt(fallocate, fd, FALLOC_PUNCH_HOLE, 0, 10),
        attempt(fallocate, fd, FALLOC_COLLAPSE_RANGE | FALLOC_KEEP_SIZE, 0, BLOCK),
        attempt(fallocate, fd, FALLOC_INSERT_RANGE | FALLOC_ZERO_RANGE, 0, BLOCK),
        attempt(fallocate, fd, 1 << 12, 0, 10),
        attempt(fallocate, os.open("f", os.O_RDONLY), 0, 0, 10),
        attempt(fallocate, os.open("d", os.O_RDONLY), 0, 0, 10),
        attempt(fallocate, os.open("p", os.O_RDWR), 0, 0, 10),
        attempt(fallocate, fd, 0, 1 << 62, 1 << 62),
        os.fstat(fd).st_size,
    ]


@case
def space_fallocate_append_only_descriptor():
    """fallocate through an O_APPEND descriptor"""
    write("f", blocks("ab"))
    fd = os.open("f", os.O_RDWR | os.O_APPEND)
    return [attempt(fallocate, fd, 0, 0, 4 * BLOCK), attempt(fallocate, fd, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, 0, BLOCK), letters(fd)]


@case
def space_holes_are_reported():
    """SEEK_DATA and SEEK_HOLE of a file with holes, after each change"""
    fd = os.open("f", os.O_RDWR | os.O_CREAT)
    maps = []
    unit = 65_536
    os.ftruncate(fd, 16 * unit)
    maps.append(data_map(fd))
    os.pwrite(fd, b"x" * unit, 4 * unit)
    os.pwrite(fd, b"y" * unit, 10 * unit)
    os.fsync(fd)
    maps.append(data_map(fd))
    fallocate(fd, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, 4 * unit, unit)
    maps.append(data_map(fd))
    os.ftruncate(fd, 10 * unit + 5_000)
    maps.append(data_map(fd))
    os.ftruncate(fd, 20 * unit)
    return maps + [data_map(fd), os.fstat(fd).st_size]


@case
def space_seek_errnos():
    """SEEK_DATA and SEEK_HOLE at and beyond the end"""
    write("f", b"x" * 10_000)
    write("empty", "")
    fd = os.open("f", os.O_RDONLY)
    empty = os.open("empty", os.O_RDONLY)
    calls = [(0, os.SEEK_DATA), (9_999, os.SEEK_DATA), (10_000, os.SEEK_DATA), (0, os.SEEK_HOLE), (9_999, os.SEEK_HOLE), (10_000, os.SEEK_HOLE)]
    calls += [(-1, os.SEEK_DATA), (-1, os.SEEK_HOLE)]
    return [[attempt(os.lseek, fd, *c) for c in calls], [attempt(os.lseek, empty, 0, w) for w in (os.SEEK_DATA, os.SEEK_HOLE)], os.lseek(fd, 0, os.SEEK_CUR)]


@case
def space_sparse_file_stays_small():
    """A file of 1 TiB of hole takes no space and is copied sparsely by cp"""
    fd = os.open("f", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 1 << 32)
    os.pwrite(fd, b"end", (1 << 32) - 3)
    tool = run_tool("cp", "--sparse=always", "--reflink=never", "f", "g")
    return [os.fstat(fd).st_blocks < 100, tool, os.stat("g").st_blocks < 100, os.stat("g").st_size]


@case
def space_preallocated_blocks():
    """Preallocated space counts as allocated and reads as zeros"""
    fd = os.open("f", os.O_RDWR | os.O_CREAT)
    fallocate(fd, FALLOC_KEEP_SIZE, 0, 1 << 20)
    first = [os.fstat(fd).st_blocks >= 2048, os.fstat(fd).st_size]
    fallocate(fd, 0, 0, 1 << 20)
    os.pwrite(fd, b"x", 500_000)
    content = os.pread(fd, 1 << 20, 0)
    return first + [os.fstat(fd).st_size, content.count(b"\0"), content[500_000:500_001].decode()]


@case
def space_unshare():
    """FALLOC_FL_UNSHARE_RANGE answers as the folder does"""
    write("f", blocks("ab"))
    fd = os.open("f", os.O_RDWR)
    return [attempt(fallocate, fd, FALLOC_UNSHARE_RANGE, 0, BLOCK), letters(fd)]


@case
def space_copy_file_range():
    """copy_file_range between files and inside one"""
    write("source", blocks("abcdef"))
    source = os.open("source", os.O_RDWR)
    target = os.open("target", os.O_RDWR | os.O_CREAT)
    results = [
        copy_file_range(source, 0, target, 0, 3 * BLOCK),
        copy_file_range(source, 5 * BLOCK, target, BLOCK, 10 * BLOCK),
        copy_file_range(source, 100 * BLOCK, target, 0, BLOCK),
        copy_file_range(source, 10, target, 20, 0),
        letters(target),
        attempt(copy_file_range, source, 0, source, 4 * BLOCK, 2 * BLOCK),
        letters(source),
        attempt(copy_file_range, source, 0, source, BLOCK, 2 * BLOCK),
    ]
    copy_file_range(source, 0, target, 10 * BLOCK, BLOCK)
    return results + [letters(target), os.fstat(target).st_size]


@case
def space_copy_file_range_positions():
    """Without offsets the descriptors' positions move"""
    write("a", "0123456789")
    a = os.open("a", os.O_RDONLY)
    b = os.open("b", os.O_RDWR | os.O_CREAT)
    os.lseek(a, 2, os.SEEK_SET)
    copied = os.copy_file_range(a, b, 5)
    return [copied, read("b"), os.lseek(a, 0, os.SEEK_CUR), os.lseek(b, 0, os.SEEK_CUR)]


@case
def space_copy_file_range_errnos():
    """copy_file_range with wrong descriptors"""
    write("a", "abc")
    os.mkdir("d")
    reader, writer = os.open("a", os.O_RDONLY), os.open("b", os.O_WRONLY | os.O_CREAT)
    append = os.open("b", os.O_WRONLY | os.O_APPEND)
    folder = os.open("d", os.O_RDONLY)
    return [
        attempt(os.copy_file_range, writer, reader, 3),
        attempt(os.copy_file_range, reader, reader, 3),
        attempt(os.copy_file_range, reader, append, 3),
        attempt(os.copy_file_range, folder, writer, 3),
        attempt(os.copy_file_range, reader, folder, 3),
    ]


@case
def space_sendfile():
    """sendfile from file to file and to a pipe"""
    write("a", blocks("ab"))
    source = os.open("a", os.O_RDONLY)
    target = os.open("b", os.O_WRONLY | os.O_CREAT)
    sent = os.sendfile(target, source, 100, 2 * BLOCK)
    reader, writer = os.pipe()
    os.sendfile(writer, source, BLOCK - 1, 2)
    return [sent, read("b").count("a"), read("b").count("b"), os.read(reader, 10).decode()]


@case
def space_splice():
    """splice from a file into a pipe and on into another file"""
    write("a", "spliced content")
    source = os.open("a", os.O_RDONLY)
    target = os.open("b", os.O_RDWR | os.O_CREAT)
    reader, writer = os.pipe()
    moved = [os.splice(source, writer, 100, offset_src=3), os.splice(reader, target, 100, offset_dst=2)]
    append = os.open("b", os.O_RDWR | os.O_APPEND)
    os.write(writer, b"x")
    return moved + [read("b"), attempt(os.splice, reader, append, 1)]


@case
def space_copying_tools():
    """cp, dd, install and cat make equal copies"""
    write("a", blocks("abc") + b"tail")
    results = [
        run_tool("cp", "a", "b"),
        run_tool("dd", "if=a", "of=c", "bs=1000", "status=none"),
        run_tool("install", "-m", "640", "a", "d"),
        run_tool("sh", "-c", "cat a > e"),
        run_tool("dd", "if=/dev/zero", "of=c", "bs=10", "count=1", "seek=3", "conv=notrunc", "status=none"),
    ]
    return results + [run_tool("cmp", "a", name)["status"] for name in "bde"] + [read("c").count("\0"), os.stat("c").st_size]
