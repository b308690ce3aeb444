"""Listing folders, positions in a listing, names and depths at their limits."""

import ctypes
import os
import stat

from harness import attempt, attempt_open, case, checked, libc, look, read, show, start_child, wait_all, write


class Dirent(ctypes.Structure):
    _fields_ = [
        ("ino", ctypes.c_uint64),
        ("off", ctypes.c_int64),
        ("reclen", ctypes.c_uint16),
        ("type", ctypes.c_uint8),
        ("name", ctypes.c_char * 256),
    ]


libc.opendir.restype = ctypes.c_void_p
libc.opendir.argtypes = [ctypes.c_char_p]
libc.readdir.restype = ctypes.POINTER(Dirent)
libc.telldir.restype = ctypes.c_long
for _function in (libc.readdir, libc.telldir, libc.rewinddir, libc.closedir):
    _function.argtypes = [ctypes.c_void_p]
libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]


def entries(stream):
    """What is left of a listing: [(name, type, inode number, position after it)]."""
    found = []
    while entry := libc.readdir(stream):
        item = entry.contents
        found.append((item.name.decode(), item.type, item.ino, libc.telldir(stream)))
    return found


def fill(folder, count):
    os.mkdir(folder)
    for number in range(count):
        os.close(os.open(f"{folder}/entry-{number:05}", os.O_CREAT | os.O_WRONLY, 0o600))


@case
def folder_listing_is_complete():
    """3,000 names are each listed once, with "." and ".." """
    fill("d", 3000)
    names = [e[0] for e in entries(libc.opendir(b"d"))]
    expected = {f"entry-{n:05}" for n in range(3000)} | {".", ".."}
    return [len(names), len(set(names)), set(names) == expected]


@case
def folder_entry_types_and_inodes():
    """d_type and d_ino agree with lstat"""
    write("f", "")
    os.mkdir("d")
    os.symlink("x", "l")
    os.mkfifo("p")
    os.mknod("s", stat.S_IFSOCK | 0o600)
    os.link("f", "h")
    found = sorted(e[:3] for e in entries(libc.opendir(b".")))
    return [[name, kind, ino == os.lstat(name).st_ino] for name, kind, ino in found if name != ".."]


@case
def folder_positions():
    """seekdir goes back to any position that telldir gave"""
    fill("d", 500)
    stream = libc.opendir(b"d")
    start = libc.telldir(stream)
    listing = entries(stream)
    good = []
    for at in (0, 1, 2, 100, 101, 250, 499, 400, 3):
        libc.seekdir(stream, listing[at][3])
        good.append([e[0] for e in entries(stream)] == [e[0] for e in listing[at + 1 :]])
    libc.seekdir(stream, start)
    good.append([e[0] for e in entries(stream)] == [e[0] for e in listing])
    libc.rewinddir(stream)
    return good + [len(entries(stream)) == len(listing)]


@case
def folder_positions_survive_removal():
    """After others were removed, a position still goes on with what follows it"""
    fill("d", 300)
    stream = libc.opendir(b"d")
    listing = entries(stream)
    for name, *_ in listing[10:100]:
        if not name.startswith("."):
            os.unlink(f"d/{name}")
    libc.seekdir(stream, listing[150][3])
    rest = [e[0] for e in entries(stream)]
    return [rest == [e[0] for e in listing[151:]]]


@case
def folder_rewind_sees_changes():
    """rewinddir shows what was made and removed since"""
    fill("d", 3)
    stream = libc.opendir(b"d")
    first = sorted(e[0] for e in entries(stream))
    write("d/new", "")
    os.unlink("d/entry-00001")
    libc.rewinddir(stream)
    return [first, sorted(e[0] for e in entries(stream))]


@case
def folder_listing_while_it_grows():
    """What was there before the listing began is listed exactly once while others are added"""
    fill("d", 800)
    stream = libc.opendir(b"d")
    seen = []
    number = 0
    while entry := libc.readdir(stream):
        seen.append(entry.contents.name.decode())
        if number < 200:
            os.close(os.open(f"d/new-{number}", os.O_CREAT | os.O_WRONLY, 0o600))
        number += 1
    old = [n for n in seen if n.startswith("entry")]
    return [len(old), len(set(old)), len(seen) == len(set(seen))]


@case
def folder_small_buffers():
    """getdents64 with a buffer for one or two entries gives them all"""
    fill("d", 200)
    fd = os.open("d", os.O_RDONLY | os.O_DIRECTORY)
    buffer = ctypes.create_string_buffer(64)
    total = 0
    while size := checked(libc.syscall(217, fd, buffer, 64)):
        at = 0
        while at < size:
            at += int.from_bytes(buffer[at + 16 : at + 18], "little")
            total += 1
    tiny = ctypes.create_string_buffer(8)
    os.lseek(fd, 0, os.SEEK_SET)
    return [total, attempt(lambda: checked(libc.syscall(217, fd, tiny, 8)))]


@case
def folder_names_of_any_bytes():
    """Every byte but "/" and NUL can stand in a name"""
    names = [bytes([b]) for b in range(1, 256) if b not in b"/."]
    names += [b"\xff\xfe", b"\xc3\x28", "ünï".encode(), "ünï".encode("latin1"), b"new\nline", b"-rf", b"...", b"a" * 255, b"\x80" * 255]
    os.mkdir("d")
    for name in names:
        write(b"d/" + name, name)
    listed = set(os.listdir(b"d"))
    contents = all(open(b"d/" + name, "rb").read() == name for name in names)
    for name in names[:100]:
        os.rename(b"d/" + name, b"d/" + name + b"\xfd")
    return [listed == set(names), contents, len(os.listdir(b"d")) == len(names)]


@case
def folder_name_limits():
    """Names of 255 bytes work everywhere, names of 256 nowhere"""
    good, bad = "g" * 255, "b" * 256
    write("f", "x")
    results = []
    for name in (good, bad):
        results.append(
            [
                attempt(os.mkdir, name),
                attempt(os.rmdir, name),
                attempt(write, name, ""),
                attempt(os.unlink, name),
                attempt(os.symlink, "x", name),
                attempt(os.unlink, name),
                attempt(os.link, "f", name),
                attempt(os.rename, name, "h"),
                attempt(os.mkfifo, name),
                look(name),
                attempt_open(name, os.O_RDONLY | os.O_NONBLOCK),
                attempt(os.setxattr, name, "user.x", b""),
                attempt(os.listdir, name),
            ]
        )
    return results


@case
def folder_path_limits():
    """Paths of 4,095 bytes work, longer ones are ENAMETOOLONG, deeper ones by relative steps"""
    step = "s" * 200
    top = os.getcwd()
    depth = 0
    while depth < 30:
        os.mkdir(step)
        os.chdir(step)
        depth += 1
    write("bottom", "deep")
    here = [read("bottom"), attempt(lambda: len(os.getcwd()) > 4096), os.path.exists(f"{top}/{step}/{step}")]
    os.chdir(top)
    return here + [attempt(os.stat, "/".join([step] * 25)), attempt(os.stat, "./" * 2047 + "x"), attempt(os.stat, "./" * 2048 + "x")]


@case
def folder_deep():
    """Two hundred folders in one another, made, listed, and left for removal"""
    path = "/".join(str(n) for n in range(200))
    os.makedirs(path)
    write(f"{path}/f", "x")
    depth = sum(1 for _ in os.walk("."))
    return [depth, read(f"{path}/f"), attempt(os.rmdir, "0"), os.path.realpath(path + "/..") == os.path.realpath("/".join(str(n) for n in range(199)))]


@case
def folder_seek_errnos():
    """lseek on a folder's descriptor"""
    fill("d", 10)
    fd = os.open("d", os.O_RDONLY)
    return [attempt(os.lseek, fd, 0, os.SEEK_SET), attempt(os.lseek, fd, 0, os.SEEK_CUR), attempt(os.lseek, fd, -1, os.SEEK_SET), len(os.listdir(fd))]


@case
def folder_mkdir_errnos():
    """mkdir of existing names and impossible places"""
    write("f", "")
    os.symlink("nowhere", "dangling")
    os.mkdir("d")
    names = ("f", "d", "d/", "dangling", "dangling/", "missing/x", "f/x", ".", "..", "", "new/", "d/..")
    return [[n, attempt(os.mkdir, n)] for n in names] + [sorted(os.listdir("."))]


@case
def folder_identity():
    """Inode numbers: stable over lookups, renames and links, different for different files, the same in stat and readdir"""
    os.makedirs("d/e")
    write("d/f", "")
    before = {n: os.stat(n).st_ino for n in ("d", "d/e", "d/f", ".")}
    os.rename("d/f", "d/e/f")
    os.link("d/e/f", "g")
    after = {"d": os.stat("d").st_ino, "d/e": os.stat("d/e").st_ino, "d/f": os.stat("g").st_ino, ".": os.stat("d/..").st_ino}
    devices = {os.stat(n).st_dev for n in (".", "d", "d/e", "g")}
    return [before == after, len(set(before.values())) == 4, len(devices)]


@case
def folder_seen_by_another_process():
    """What one process makes another sees at once, also names it had looked for in vain"""
    results = []

    def make():
        write("made", "x")
        os.mkdir("dir")
        os.rename("old", "moved")

    write("old", "")
    results.append([os.path.exists(n) for n in ("made", "dir", "old", "moved")])
    wait_all([start_child(make)])
    return results + [[os.path.exists(n) for n in ("made", "dir", "old", "moved")], sorted(os.listdir("."))]


@case
def folder_attributes_of_dot_and_dotdot():
    """ "." and ".." are the folder and its parent"""
    os.makedirs("d/e")
    return [show(os.stat("d/.")), os.path.samefile("d/e/..", "d"), os.path.samefile("d/e/../..", "."), attempt(os.stat, "d/missing/..")]
