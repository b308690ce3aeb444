"""Reading, writing, sizes, positions."""

import mmap
import os
import resource
import signal

from harness import attempt, attempt_open, case, in_child, read, show, write


@case
def io_positions():
    """lseek to every place, and read and write from there"""
    write("f", "0123456789")
    fd = os.open("f", os.O_RDWR)
    moves = [(3, os.SEEK_SET), (2, os.SEEK_CUR), (-1, os.SEEK_END), (0, os.SEEK_END), (100, os.SEEK_SET), (-1, os.SEEK_SET), (-200, os.SEEK_CUR)]
    results = [[attempt(os.lseek, fd, *move), os.read(fd, 3).decode()] for move in moves]
    # How far one may seek is the filesystem's own; a write out there fails everywhere.
    return results + [attempt(os.lseek, fd, 0, 99), attempt(os.pwrite, fd, b"x", (1 << 63) - 2)]


@case
def io_read_at_the_end():
    """Reads at, over and beyond the end"""
    write("f", "abcdef")
    fd = os.open("f", os.O_RDONLY)
    return [os.pread(fd, 10, at).decode() for at in (0, 4, 5, 6, 7, 1_000_000)] + [attempt(os.pread, fd, 1, -1)]


@case
def io_vectors():
    """readv, writev, preadv and pwritev"""
    fd = os.open("f", os.O_RDWR | os.O_CREAT)
    wrote = [os.writev(fd, [b"one", b"", b"two", b"three"]), os.pwritev(fd, [b"X", b"Y"], 3)]
    buffers = [bytearray(2), bytearray(4), bytearray(100)]
    got = os.preadv(fd, buffers, 1)
    os.lseek(fd, 0, os.SEEK_SET)
    second = [bytearray(5), bytearray(5)]
    os.readv(fd, second)
    return wrote + [got, [b.rstrip(b"\0").decode() for b in buffers], [b.decode() for b in second]]


@case
def io_pwritev_append():
    """RWF_APPEND appends whatever the offset is"""
    write("f", "abc")
    fd = os.open("f", os.O_RDWR)
    result = attempt(os.pwritev, fd, [b"def"], 0, os.RWF_APPEND)
    return [result, read("f"), os.lseek(fd, 0, os.SEEK_CUR)]


@case
def io_pwritev_synchronous():
    """RWF_SYNC and RWF_DSYNC writes"""
    fd = os.open("f", os.O_RDWR | os.O_CREAT)
    return [attempt(os.pwritev, fd, [b"abc"], 0, flag) for flag in (os.RWF_SYNC, os.RWF_DSYNC)] + [read("f")]


@case
def io_write_beyond_the_end():
    """Bytes between the old end and a far write read as zeros"""
    write("f", "start")
    fd = os.open("f", os.O_RDWR)
    os.pwrite(fd, b"far", 100_000)
    gap = os.pread(fd, 99_995, 5)
    return [os.fstat(fd).st_size, gap == bytes(99_995), os.pread(fd, 10, 99_998).decode(), os.pread(fd, 3, 3).decode()]


@case
def io_big_offsets():
    """Offsets over 2 GiB, 4 GiB and 1 TiB"""
    fd = os.open("f", os.O_RDWR | os.O_CREAT)
    results = []
    for shift in (31, 32, 33, 40):
        at = (1 << shift) - 1
        results.append([attempt(os.pwrite, fd, b"ab", at), os.fstat(fd).st_size, os.pread(fd, 3, at).decode()])
    os.ftruncate(fd, 0)
    return results + [os.fstat(fd).st_blocks]


@case
def io_truncate_up_and_down():
    """What truncate cut off comes back as zeros"""
    write("f", "x" * 10_000)
    results = []
    for size in (9_000, 4_096, 4_097, 100, 20_000, 0, 3):
        os.truncate("f", size)
        content = read("f")
        results.append([len(content), content.count("x"), content.count("\0")])
    return results


@case
def io_truncate_is_seen_by_open_descriptors():
    """A descriptor's position may be beyond the end after a truncate; a write there leaves zeros"""
    write("f", "0123456789")
    fd = os.open("f", os.O_RDWR)
    os.read(fd, 8)
    os.truncate("f", 2)
    empty = os.read(fd, 10).decode()
    os.write(fd, b"!")
    return [empty, read("f"), os.fstat(fd).st_size]


@case
def io_truncate_errnos():
    """truncate and ftruncate that fail"""
    write("f", "abc")
    os.mkdir("d")
    os.symlink("f", "l")
    fd = os.open("f", os.O_RDONLY)
    results = [attempt(os.truncate, n, 0) for n in ("missing", "d", "f/x", "")]
    results += [attempt(os.truncate, "f", -1), attempt(os.ftruncate, fd, 0), attempt(os.truncate, "l", 1)]
    content = read("f")
    # The largest size is the filesystem's own.
    return results + [content, attempt(os.truncate, "f", 1 << 62), os.path.getsize("f")]


@case
def io_file_size_limit():
    """RLIMIT_FSIZE stops writes and truncates with EFBIG and SIGXFSZ"""

    def play():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))
        fd = os.open("f", os.O_RDWR | os.O_CREAT)
        return [
            os.pwrite(fd, b"x" * 4_000, 0),
            os.pwrite(fd, b"x" * 4_000, 4_000),
            attempt(os.pwrite, fd, b"x", 5_000),
            attempt(os.ftruncate, fd, 5_000),
            attempt(os.ftruncate, fd, 5_001),
            attempt(os.posix_fallocate, fd, 0, 6_000),
            os.fstat(fd).st_size,
        ]

    def killed():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
        os.pwrite(os.open("g", os.O_RDWR | os.O_CREAT), b"x", 10)

    return [in_child(play), in_child(killed)]


@case
def io_large_blocks():
    """Writes and reads of several MiB in one call, at odd offsets"""
    pattern = bytes(range(251)) * 20_000
    fd = os.open("f", os.O_RDWR | os.O_CREAT)
    offset = 0
    for length in (1, 4_095, 4_097, 131_073, 1_048_576, 1_048_577, 3_000_001):
        view = memoryview(pattern)[offset % 251 : offset % 251 + length]
        done = 0
        while done < length:
            done += os.pwrite(fd, view[done:], offset + done)
        offset += length
    with open("f", "rb") as file:
        content = file.read()
    expected = (pattern * 2)[: len(content)]
    return [len(content) == offset, content == expected]


@case
def io_overwrite_in_the_middle():
    """Small writes all over a file land where they should"""
    size = 300_000
    model = bytearray(size)
    write("f", bytes(size))
    fd = os.open("f", os.O_RDWR)
    seed = 12345
    for _ in range(2000):
        seed = (seed * 1103515245 + 12345) % (1 << 31)
        at, length = seed % (size - 600), 1 + seed // 7 % 599
        data = bytes([seed % 256]) * length
        os.pwrite(fd, data, at)
        model[at : at + length] = data
    return [os.pread(fd, size, 0) == bytes(model), os.fstat(fd).st_size]


@case
def io_two_descriptors():
    """What one descriptor writes the other reads at once"""
    write("f", "")
    writer, reader = os.open("f", os.O_WRONLY), os.open("f", os.O_RDONLY)
    seen = []
    for number in range(100):
        os.write(writer, b"%03d" % number)
        seen.append(os.read(reader, 10).decode() == f"{number:03}")
    return [all(seen), os.read(reader, 1).decode()]


@case
def io_shared_position():
    """A dup'ed and an inherited descriptor share one position"""
    write("f", "0123456789")
    fd = os.open("f", os.O_RDONLY)
    other = os.dup(fd)
    first = os.read(fd, 2).decode()
    child = in_child(lambda: os.read(other, 3).decode())
    return [first, child, os.read(other, 2).decode(), os.lseek(fd, 0, os.SEEK_CUR)]


@case
def io_direct():
    """O_DIRECT reads and writes aligned blocks, together with cached ones"""
    write("f", b"c" * 16_384)
    opened = attempt(os.open, "f", os.O_RDWR | os.O_DIRECT)
    if isinstance(opened, str):
        return opened
    memory = mmap.mmap(-1, 8_192)
    got = os.preadv(opened, [memory], 4_096)
    same = memory[:] == b"c" * 8_192
    memory[:] = b"d" * 8_192
    wrote = os.pwritev(opened, [memory], 4_096)
    cached = os.open("f", os.O_RDWR)
    seen = os.pread(cached, 16_384, 0) == b"c" * 4_096 + b"d" * 8_192 + b"c" * 4_096
    os.pwrite(cached, b"e" * 4_096, 4_096)
    os.preadv(opened, [memory], 4_096)
    appended = os.pwritev(opened, [memory], 16_384)
    return [got, same, wrote, seen, memory[0:1].decode(), memory[4_096:4_097].decode(), appended, os.fstat(opened).st_size]


@case
def io_sync_calls():
    """fsync, fdatasync, sync_file_range, syncfs and fadvise of files, folders and read-only descriptors"""
    from harness import checked, libc

    write("f", "x" * 5_000)
    os.mkdir("d")
    results = []
    for fd in (os.open("f", os.O_RDWR), os.open("f", os.O_RDONLY), os.open("d", os.O_RDONLY)):
        results.append(
            [
                attempt(os.fsync, fd),
                attempt(os.fdatasync, fd),
                attempt(lambda: checked(libc.syncfs(fd))),
                attempt(os.posix_fadvise, fd, 0, 0, os.POSIX_FADV_DONTNEED),
            ]
        )
    return results + [attempt(os.fsync, 999)]


@case
def io_write_nothing():
    """Writes and reads of no bytes"""
    write("f", "abc")
    fd = os.open("f", os.O_RDWR)
    return [os.write(fd, b""), os.pwrite(fd, b"", 100), os.read(fd, 0).decode(), os.fstat(fd).st_size]


@case
def io_bad_memory():
    """A buffer that isn't there gives EFAULT and changes nothing"""
    from harness import checked, libc

    write("f", "abc")
    fd = os.open("f", os.O_RDWR)
    return [attempt(lambda: checked(libc.write(fd, 1, 10))), attempt(lambda: checked(libc.read(fd, 1, 3))), read("f")]


@case
def io_standard_streams():
    """Shell redirections: >, >>, 2>&1, <, <>, here documents"""
    from harness import run_tool

    script = """
    echo one > f; echo two >> f; cat < f > g; echo three 1<> f
    { echo out; echo err >&2; } > both 2>&1
    cat <<END > here
    text $(cat f)
END
    set -C; echo no > f && echo overwritten
    wc -c f g both here
    """
    return run_tool("bash", "-c", script)


@case
def io_append_after_truncate():
    """A logger with O_APPEND goes on at the new end after copytruncate"""
    fd = os.open("log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, b"first line\n")
    os.truncate("log", 0)
    os.write(fd, b"second\n")
    return [read("log"), os.stat("log").st_size]


@case
def io_read_only_descriptor_sees_growth():
    """tail -f: a reader at the end gets what is added, by other names too"""
    write("f", "a")
    os.link("f", "g")
    fd = os.open("f", os.O_RDONLY)
    got = [os.read(fd, 10).decode(), os.read(fd, 10).decode()]
    in_child(lambda: write("g", "bc", flags=os.O_WRONLY | os.O_APPEND))
    return got + [os.read(fd, 10).decode(), show(os.fstat(fd))["size"], attempt_open("f", os.O_RDONLY)]
