"""rename(2) and renameat2(2): every kind onto every kind, flags, errnos."""

import os
import stat

from harness import (
    RENAME_EXCHANGE,
    RENAME_NOREPLACE,
    RENAME_WHITEOUT,
    STRANGER,
    STRANGER_GROUP,
    as_stranger,
    attempt,
    case,
    look,
    read,
    renameat2,
    write,
)

KINDS = ("missing", "file", "empty", "full", "symlink", "fifo", "socket")


def make(kind, name):
    if kind == "file":
        write(name, name)
    elif kind == "empty":
        os.mkdir(name)
    elif kind == "full":
        os.mkdir(name)
        write(f"{name}/inside", name)
    elif kind == "symlink":
        os.symlink("inside", name)
    elif kind == "fifo":
        os.mkfifo(name)
    elif kind == "socket":
        os.mknod(name, stat.S_IFSOCK | 0o600)


def kind_of(path):
    info = look(path)
    return info if isinstance(info, str) else [info["kind"], info["nlink"]]


def matrix(flags, across):
    results = {}
    for source in KINDS:
        for target in KINDS:
            place = f"{source}-{target}"
            os.mkdir(place)
            os.mkdir(f"{place}/other")
            old, new = f"{place}/old", f"{place}/other/new" if across else f"{place}/new"
            make(source, old)
            make(target, new)
            before = os.lstat(old).st_ino if source != "missing" else None
            outcome = attempt(renameat2, old, new, flags)
            same = outcome == "ok" and os.lstat(new).st_ino == before
            results[place] = [outcome, kind_of(old), kind_of(new), same, kind_of(place), kind_of(f"{place}/other")]
    return results


@case
def rename_matrix():
    """Every kind renamed onto every kind in one folder"""
    return matrix(0, False)


@case
def rename_matrix_across():
    """Every kind renamed onto every kind in another folder"""
    return matrix(0, True)


@case
def rename_noreplace_matrix():
    """RENAME_NOREPLACE refuses every existing name"""
    return matrix(RENAME_NOREPLACE, True)


@case
def rename_exchange_matrix():
    """RENAME_EXCHANGE swaps every kind with every kind, with link counts of the folders right"""
    return matrix(RENAME_EXCHANGE, True)


@case
def rename_exchange_in_place():
    """RENAME_EXCHANGE in one folder"""
    return matrix(RENAME_EXCHANGE, False)


@case(needs="root")
def rename_whiteout():
    """RENAME_WHITEOUT"""
    write("a", "a")
    return [attempt(renameat2, "a", "b", RENAME_WHITEOUT), sorted(os.listdir("."))]


@case
def rename_flag_errnos():
    """Flags that don't go together, or don't exist"""
    write("a", "a")
    write("b", "b")
    return [
        attempt(renameat2, "a", "b", RENAME_NOREPLACE | RENAME_EXCHANGE),
        attempt(renameat2, "a", "b", RENAME_EXCHANGE | RENAME_WHITEOUT),
        attempt(renameat2, "a", "b", 1 << 10),
        read("a") + read("b"),
    ]


@case
def rename_into_itself():
    """A folder can't move into itself or below itself, nor swap with what is below it"""
    os.makedirs("a/b/c")
    results = [attempt(os.rename, "a", f"a/{to}") for to in ("x", "b", "b/c", "b/x", "b/c/x")]
    results += [attempt(os.rename, old, new) for old, new in (("a/b/c", "a"), ("a/b", "a"), ("a", "a"), ("a/b", "a/b"))]
    results += [attempt(renameat2, old, new, RENAME_EXCHANGE) for old, new in (("a", "a/b"), ("a/b/c", "a"), ("a", "a"))]
    return results + [look("a/b/c")["kind"]]


@case
def rename_dots_and_slashes():
    """Names ending in ".", ".." or "/" """
    os.mkdir("d")
    os.mkdir("e")
    write("f", "")
    pairs = [("d/.", "x"), ("d/..", "x"), (".", "x"), ("..", "x"), ("f", "d/."), ("f", "."), ("f", "new/"), ("f/", "new")]
    pairs += [("d", "e/."), ("d", "e/.."), ("", "x"), ("f", ""), ("d/", "d2/"), ("d2", "e/")]
    return [[old, new, attempt(os.rename, old, new)] for old, new in pairs] + [sorted(os.listdir("."))]


@case
def rename_same_inode():
    """Renaming one hard link onto another does nothing and succeeds"""
    write("a", "x")
    os.link("a", "b")
    os.mkdir("d")
    os.link("a", "d/c")
    return [attempt(os.rename, "a", "b"), attempt(os.rename, "b", "d/c"), look("a"), sorted(os.listdir(".")), os.listdir("d")]


@case
def rename_replaced_file_lives_on():
    """A replaced file stays readable and writable through its descriptor, with no name"""
    write("old", "old content")
    write("new", "new")
    fd = os.open("old", os.O_RDWR)
    os.rename("new", "old")
    os.pwrite(fd, b"OLD", 0)
    return [os.pread(fd, 100, 0).decode(), os.fstat(fd).st_nlink, read("old"), os.listdir(".")]


@case
def rename_replaced_link():
    """Replacing one of two hard links lowers the count of the other"""
    write("a", "a")
    os.link("a", "b")
    write("c", "c")
    os.rename("c", "a")
    return [look("a"), look("b"), read("a"), read("b")]


@case
def rename_open_file_and_folder():
    """Descriptors follow what is renamed"""
    os.makedirs("d/sub")
    fd = os.open("d/sub/f", os.O_RDWR | os.O_CREAT)
    directory = os.open("d/sub", os.O_RDONLY)
    os.rename("d/sub/f", "g")
    os.write(fd, b"x")
    os.rename("d", "e")
    os.close(os.open("made", os.O_CREAT | os.O_WRONLY, dir_fd=directory))
    return [read("g"), os.listdir("e/sub"), os.readlink(f"/proc/self/fd/{directory}").endswith("/e/sub"), attempt(os.listdir, "d")]


@case
def rename_working_folder():
    """A process standing in a renamed folder goes on, and knows the new name"""
    os.makedirs("a/b")
    os.mkdir("c")
    top = os.getcwd()
    os.chdir("a/b")
    os.rename(f"{top}/a", f"{top}/c/a2")
    write("here", "x")
    return [os.getcwd()[len(top) :], os.path.samefile("..", f"{top}/c/a2"), sorted(os.listdir(".")), read(f"{top}/c/a2/b/here")]


@case
def rename_folder_fixes_dotdot():
    """".." of a folder that moved is its new parent, and the link counts follow"""
    os.makedirs("a/sub/deep")
    os.mkdir("b")
    os.rename("a/sub", "b/sub")
    same = os.stat("b/sub/..").st_ino == os.stat("b").st_ino
    return [same, look("a"), look("b"), look("b/sub"), os.listdir("b/sub")]


@case
def rename_tree_keeps_everything_below():
    """A renamed folder keeps its files, their inodes and contents"""
    for number in range(30):
        os.makedirs(f"a/{number % 3}/{number % 5}", exist_ok=True)
        write(f"a/{number % 3}/{number % 5}/{number}", str(number))
    before = {p: os.stat(f"a/{p}").st_ino for p in all_files("a")}
    os.rename("a", "b")
    after = {p: os.stat(f"b/{p}").st_ino for p in all_files("b")}
    return [before == after, [read(f"b/{p}") == os.path.basename(p) for p in sorted(after)].count(False), os.path.exists("a")]


def all_files(top):
    return [os.path.relpath(os.path.join(d, f), top) for d, _, files in os.walk(top) for f in files]


@case
def rename_cycles():
    """Three names rotated by way of a fourth, many times"""
    for name in "abc":
        write(name, name)
    for _ in range(100):
        os.rename("a", "t")
        os.rename("b", "a")
        os.rename("c", "b")
        os.rename("t", "c")
    return [read(n) for n in "abc"]


@case
def rename_exchange_twice_restores():
    """Exchanging twice is as before; open descriptors stay with their files"""
    write("a", "aa")
    os.mkdir("d")
    write("d/x", "x")
    fd = os.open("a", os.O_RDONLY)
    renameat2("a", "d", RENAME_EXCHANGE)
    middle = [read("a/x"), read("d"), os.path.isdir("a")]
    renameat2("a", "d", RENAME_EXCHANGE)
    return [middle, read("a"), read("d/x"), os.pread(fd, 10, 0).decode()]


@case
def rename_negative_lookups():
    """Names looked up before they existed are found after a rename, and the old name is gone"""
    seen = [attempt(os.stat, n) if not os.path.exists(n) else "there" for n in ("b", "c/d")]
    write("a", "x")
    os.mkdir("c")
    attempt(os.stat, "c/d")
    os.rename("a", "c/d")
    return [seen, read("c/d"), look("a"), os.listdir("c")]


@case(needs="root")
def rename_permissions():
    """Both folders must be writable, and a folder that changes its parent must be writable itself"""
    for name, mode in (("open", 0o777), ("closed", 0o755)):
        os.mkdir(name)
        os.chmod(name, mode)
    write("closed/f", "")
    write("open/g", "")
    os.mkdir("open/roots-dir")
    os.mkdir("open/mine")
    os.chown("open/mine", STRANGER, STRANGER_GROUP)
    os.mkdir("open/mine-closed")
    os.chown("open/mine-closed", STRANGER, STRANGER_GROUP)
    os.chmod("open/mine-closed", 0o555)
    return as_stranger(
        lambda: [
            attempt(os.rename, "closed/f", "open/f"),
            attempt(os.rename, "open/g", "closed/g"),
            attempt(os.rename, "open/g", "open/h"),
            attempt(os.rename, "open/roots-dir", "open/renamed"),
            attempt(os.rename, "open/renamed", "open/mine/moved"),
            attempt(os.rename, "open/mine-closed", "open/mine-closed2"),
            attempt(os.rename, "open/mine-closed2", "open/mine/moved"),
            sorted(os.listdir("open")),
        ]
    )


@case(needs="user")
def rename_own_closed_folder():
    """An ordinary user's own 0555 folder can be renamed in place but not into another folder"""
    os.makedirs("closed/inside")
    os.mkdir("other")
    os.chmod("closed", 0o555)
    return [
        attempt(os.rename, "closed", "renamed"),
        attempt(os.rename, "renamed", "other/moved"),
        attempt(os.rename, "renamed/inside", "x"),
        attempt(os.rmdir, "renamed/inside"),
    ]


@case
def rename_long_names():
    """Renaming to names of 255 and 256 bytes"""
    write("f", "x")
    return [attempt(os.rename, "f", "n" * 255), attempt(os.rename, "n" * 255, "m" * 256), look("n" * 255)]
