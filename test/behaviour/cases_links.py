"""Hard links and symlinks."""

import os

from harness import AT_FDCWD, AT_SYMLINK_FOLLOW, STRANGER, STRANGER_GROUP, as_stranger, attempt, attempt_open, case, linkat, look, read, show, write


@case
def link_shares_everything():
    """Hard links share bytes, mode, times, xattrs and inode number"""
    write("a", "one")
    os.mkdir("d")
    os.link("a", "d/b")
    write("d/b", "two, longer", flags=os.O_WRONLY)
    os.chmod("a", 0o600)
    os.setxattr("d/b", "user.x", b"y")
    os.utime("a", ns=(1, 2))
    a, b = os.stat("a"), os.stat("d/b")
    return [read("a"), a.st_ino == b.st_ino, b.st_mtime_ns, look("d/b"), os.getxattr("a", "user.x").decode(), b.st_nlink]


@case
def link_errnos():
    """link to existing, missing and wrong things"""
    write("f", "")
    os.mkdir("d")
    os.symlink("f", "l")
    os.symlink("missing", "dangling")
    pairs = [("f", "f"), ("f", "d"), ("f", "l"), ("missing", "x"), ("f", "missing/x"), ("f", "f/x"), ("d", "x"), ("f", "x/")]
    pairs += [("f/", "x"), ("f", ""), ("", "x"), (".", "x"), ("f", "."), ("f", "n" * 256)]
    return [[attempt(os.link, old, new) for old, new in pairs], attempt(os.link, "dangling", "hard"), sorted(os.listdir("."))]


@case
def link_to_symlink():
    """link names the symlink itself; with AT_SYMLINK_FOLLOW its target"""
    write("f", "x")
    os.symlink("f", "l")
    linkat(AT_FDCWD, "l", AT_FDCWD, "hard", 0)
    linkat(AT_FDCWD, "l", AT_FDCWD, "followed", AT_SYMLINK_FOLLOW)
    return [look("hard"), look("followed"), look("f"), os.readlink("hard")]


@case
def link_special_files():
    """FIFOs and symlinks can have several names"""
    os.mkfifo("p")
    os.link("p", "q")
    os.symlink("x", "l")
    os.link("l", "m", follow_symlinks=False)
    return [look("p"), look("q"), look("l"), look("m")]


@case
def link_many():
    """A thousand names of one file, counted up and down"""
    write("f", "x")
    os.mkdir("d")
    for number in range(1000):
        os.link("f", f"d/{number}")
    up = os.stat("f").st_nlink
    for number in range(0, 1000, 2):
        os.unlink(f"d/{number}")
    return [up, os.stat("f").st_nlink, os.stat("d/1").st_nlink, read("d/999")]


@case
def link_rename_unlink_counts():
    """Link counts through link, rename over, exchange and unlink, seen through every name and a descriptor"""
    write("a", "a")
    os.link("a", "b")
    os.link("a", "c")
    write("x", "x")
    fd = os.open("a", os.O_RDONLY)
    counts = [os.fstat(fd).st_nlink]
    os.rename("x", "b")
    counts += [os.fstat(fd).st_nlink, os.stat("c").st_nlink]
    os.unlink("c")
    counts += [os.fstat(fd).st_nlink, os.stat("a").st_nlink]
    os.link("a", "d")
    counts += [os.stat("d").st_nlink, os.fstat(fd).st_nlink]
    return counts


@case
def link_written_through_both_names():
    """Two descriptors by two names see each other's writes"""
    write("a", "0123456789")
    os.link("a", "b")
    first = os.open("a", os.O_RDWR)
    second = os.open("b", os.O_RDWR)
    os.pwrite(first, b"AA", 0)
    os.pwrite(second, b"BB", 2)
    os.ftruncate(first, 6)
    return [os.pread(second, 100, 0).decode(), os.fstat(second).st_size, read("b")]


@case(needs="root")
def link_by_others():
    """Others may link only what they may write (protected_hardlinks)"""
    os.mkdir("d")
    os.chmod("d", 0o777)
    write("private", "")
    write("public", "")
    os.chmod("public", 0o666)
    write("setuid", "")
    os.chmod("setuid", 0o4777)
    write("theirs", "")
    os.chown("theirs", STRANGER, STRANGER_GROUP)
    return as_stranger(lambda: [attempt(os.link, n, f"d/{n}") for n in ("private", "public", "setuid", "theirs")])


@case
def symlink_targets():
    """Targets of every length and of any bytes are kept"""
    targets = ["x", "a/b", "/", "/abs/olute", "." * 100, "long" * 250, "y" * 4095, b"\xff\xfe\x80 bytes", "new\nline", "tr/"]
    results = []
    for number, target in enumerate(targets):
        outcome = attempt(os.symlink, target, f"l{number}")
        kept = outcome == "ok" and os.readlink(os.fsencode(f"l{number}")) == os.fsencode(target)
        results.append([outcome, kept, look(f"l{number}")])
    return results


@case
def symlink_errnos():
    """symlink and readlink that fail"""
    write("f", "")
    os.mkdir("d")
    return [
        attempt(os.symlink, "", "empty"),
        attempt(os.symlink, "x" * 4096, "long"),
        attempt(os.symlink, "x", "f"),
        attempt(os.symlink, "x", "d"),
        attempt(os.symlink, "x", "missing/l"),
        attempt(os.symlink, "x", "f/l"),
        attempt(os.symlink, "x", "n" * 256),
        attempt(os.symlink, "x", "new/"),
        attempt(os.readlink, "f"),
        attempt(os.readlink, "d"),
        attempt(os.readlink, "missing"),
        sorted(os.listdir(".")),
    ]


@case
def symlink_chains_and_loops():
    """Forty symlinks in a row are followed, one more is not; loops are found"""
    write("end", "reached")
    for number in range(45):
        os.symlink("end" if number == 0 else f"l{number - 1}", f"l{number}")
    os.symlink("loop", "loop")
    os.symlink("b", "a")
    os.symlink("a", "b")
    return [
        attempt(read, "l39"),
        attempt(read, "l40"),
        attempt(os.stat, "loop"),
        attempt(read, "a"),
        attempt(write, "loop", ""),
        attempt(os.listdir, "a"),
        look("a"),
    ]


@case
def symlink_to_folder():
    """Paths go through symlinks to folders; unlink takes the link only"""
    os.makedirs("real/sub")
    write("real/sub/f", "x")
    os.symlink("real", "link")
    os.symlink("../real", "real/sub/up")
    write("link/sub/g", "made by link")
    results = [read("link/sub/f"), read("real/sub/g"), sorted(os.listdir("link/sub/")), attempt(os.rmdir, "link")]
    os.unlink("link")
    return results + [look("real/sub/f"), attempt(os.stat, "real/sub/up")]


@case
def symlink_own_attributes():
    """A symlink's own mode, owner and times; no user xattrs on it"""
    os.symlink("x", "l")
    os.utime("l", ns=(1, 2), follow_symlinks=False)
    return [
        show(os.lstat("l")),
        os.lstat("l").st_mtime_ns,
        attempt(os.setxattr, "l", "user.a", b"1", follow_symlinks=False),
        attempt(os.listxattr, "l", follow_symlinks=False),
        attempt(os.chown, "l", -1, -1, follow_symlinks=False),
    ]


@case
def symlink_replaced():
    """A symlink replaced by another one, as ln -sfn and deploy scripts do"""
    write("v1", "one")
    write("v2", "two")
    os.symlink("v1", "current")
    first = read("current")
    os.symlink("v2", "next")
    os.rename("next", "current")
    return [first, read("current"), os.readlink("current"), sorted(os.listdir("."))]


@case
def symlink_out_of_the_folder():
    """Symlinks may point outside, and are followed there by whoever opens them"""
    os.symlink("/proc/self/comm", "outside")
    os.symlink("/dev/null", "null")
    return [len(read("outside")) > 0, attempt_open("null", os.O_WRONLY), os.path.exists("outside")]
