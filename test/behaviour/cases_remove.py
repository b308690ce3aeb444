"""unlink and rmdir, and what lives on without a name."""

import mmap
import os

from harness import (
    AT_FDCWD,
    AT_SYMLINK_FOLLOW,
    as_stranger,
    attempt,
    attempt_open,
    case,
    fallocate,
    in_child,
    linkat,
    look,
    read,
    run_tool,
    show,
    write,
)


@case
def remove_errnos():
    """unlink and rmdir of every wrong kind and of special names"""
    write("file", "")
    os.makedirs("full/inside")
    os.mkdir("empty")
    os.symlink("empty", "link")
    names = ("missing", "file/x", "file/", "full", "empty", "empty/", "link/", ".", "..", "", "full/.", "full/..")
    return [
        [[n, attempt(os.unlink, n)] for n in names],
        [[n, attempt(os.rmdir, n)] for n in ("missing", "file", "full", "link", "link/", ".", "..", "", "full/.", "full/..", "file/x")],
        attempt(os.rmdir, "empty/"),
        sorted(os.listdir(".")),
    ]


@case
def remove_every_kind():
    """Each kind goes, and its name is free again"""
    write("f", "")
    os.symlink("x", "l")
    os.mkfifo("p")
    os.link("f", "h")
    os.mkdir("d")
    for name in ("f", "l", "p", "h"):
        os.unlink(name)
    os.rmdir("d")
    os.mkdir("f")
    write("d", "now a file")
    return [sorted(os.listdir(".")), look("f"), read("d"), look("l")]


@case
def remove_open_file_lives_on():
    """An unlinked file is read, written, truncated, stat'ed, chmod'ed, timed and synced through its descriptor"""
    write("f", "0123456789")
    fd = os.open("f", os.O_RDWR)
    os.unlink("f")
    results = [show(os.fstat(fd)), os.pread(fd, 4, 3).decode(), os.pwrite(fd, b"AB", 2)]
    os.ftruncate(fd, 6)
    os.fchmod(fd, 0o600)
    os.utime(fd, ns=(5, 6))
    results += [os.fstat(fd).st_mtime_ns, attempt(os.fsync, fd), os.pread(fd, 100, 0).decode(), show(os.fstat(fd))]
    os.lseek(fd, 0, os.SEEK_END)
    os.write(fd, b"tail")
    fallocate(fd, 0, 0, 100)
    return results + [os.fstat(fd).st_size, os.pread(fd, 10, 0).decode(), look("f")]


@case
def remove_open_file_mapped():
    """An unlinked file can be mapped, before and after its descriptor is closed"""
    write("f", "a" * 8192)
    fd = os.open("f", os.O_RDWR)
    os.unlink("f")
    memory = mmap.mmap(fd, 8192)
    memory[0:3] = b"xyz"
    memory.flush()
    first = os.pread(fd, 5, 0).decode()
    os.close(fd)
    memory[3:5] = b"!!"
    return [first, memory[0:6].decode()]


@case
def remove_open_file_xattrs():
    """Extended attributes of an unlinked file through its descriptor"""
    write("f", "")
    os.setxattr("f", "user.before", b"1")
    fd = os.open("f", os.O_RDWR)
    os.unlink("f")
    os.setxattr(fd, "user.after", b"2")
    names = sorted(os.listxattr(fd))
    os.removexattr(fd, "user.before")
    return [names, os.getxattr(fd, "user.after").decode(), sorted(os.listxattr(fd))]


@case
def remove_open_file_not_linked_again():
    """A file whose last name has gone gets no new one"""
    write("f", "x")
    fd = os.open("f", os.O_RDWR)
    os.unlink("f")
    result = attempt(linkat, AT_FDCWD, f"/proc/self/fd/{fd}", AT_FDCWD, "g", AT_SYMLINK_FOLLOW)
    return [result, os.listdir("."), os.fstat(fd).st_nlink]


@case
def remove_name_used_again_while_open():
    """A new file of the same name is another file"""
    write("f", "first")
    fd = os.open("f", os.O_RDWR)
    os.unlink("f")
    write("f", "second one")
    os.pwrite(fd, b"FIRST", 0)
    return [read("f"), os.pread(fd, 100, 0).decode(), os.fstat(fd).st_nlink, os.fstat(fd).st_ino != os.stat("f").st_ino]


@case
def remove_inherited_descriptor():
    """A child goes on with an inherited descriptor of an unlinked file after the parent closed it"""
    write("f", "parent")
    fd = os.open("f", os.O_RDWR)
    os.unlink("f")

    def play():
        os.write(fd, b"child")
        return [os.pread(fd, 100, 0).decode(), os.fstat(fd).st_nlink]

    return [in_child(play), os.pread(fd, 100, 0).decode()]


@case
def remove_working_folder():
    """In a removed working folder nothing can be made, and it says so"""
    os.mkdir("d")
    top = os.getcwd()
    os.chdir("d")
    os.rmdir(f"{top}/d")
    return [
        attempt(os.getcwd),
        show(os.stat(".")),
        attempt(os.listdir, "."),
        attempt(write, "f", "x"),
        attempt(os.mkdir, "sub"),
        attempt(os.symlink, "x", "l"),
        attempt(os.mkfifo, "p"),
        attempt(os.link, f"{top}", "h"),
        attempt(os.stat, "f"),
        os.path.samefile("..", top),
        attempt(os.chdir, "."),
        attempt(os.rmdir, f"{top}/d"),
        attempt(os.chmod, ".", 0o700),
        attempt_open(".", os.O_RDWR | os.O_TMPFILE),
    ]


@case
def remove_working_folder_made_again():
    """A folder made again under the old name is another folder; the shell in the old one doesn't see it"""
    os.mkdir("d")
    top = os.getcwd()
    os.chdir("d")
    os.rmdir(f"{top}/d")
    os.mkdir(f"{top}/d")
    write(f"{top}/d/f", "x")
    return [os.listdir("."), attempt(read, "f"), attempt(write, "g", ""), os.listdir(f"{top}/d"), attempt(os.getcwd)]


@case
def remove_folder_held_open():
    """A removed folder that is held open is empty, has no links, and lists nothing"""
    os.mkdir("d")
    write("d/f", "")
    fd = os.open("d", os.O_RDONLY)
    os.unlink("d/f")
    os.rmdir("d")
    return [
        show(os.fstat(fd)),
        os.listdir(fd),
        attempt_open("f", os.O_CREAT | os.O_WRONLY, dir_fd=fd),
        attempt(os.mkdir, "x", dir_fd=fd),
        attempt(os.fsync, fd),
        attempt(os.fchmod, fd, 0o700),
    ]


@case
def remove_target_of_rename_folder():
    """An empty folder replaced by rename behaves as removed"""
    os.mkdir("old")
    os.mkdir("new")
    write("new/f", "x")
    fd = os.open("old", os.O_RDONLY)
    os.rename("new", "old")
    return [os.listdir(fd), os.fstat(fd).st_nlink, os.listdir("old"), attempt_open("y", os.O_CREAT | os.O_WRONLY, dir_fd=fd)]


@case(seconds=120)
def remove_many_files_by_readdir():
    """10,000 files removed while the folder is read; none is missed"""
    os.mkdir("d")
    for number in range(10_000):
        os.close(os.open(f"d/{number}", os.O_CREAT | os.O_WRONLY, 0o600))
    rounds = 0
    removed = 0
    while True:
        found = 0
        with os.scandir("d") as entries:
            for entry in entries:
                os.unlink(entry.path)
                found += 1
        removed += found
        if found == 0:
            break
        rounds += 1
    return [removed, rounds <= 3, os.listdir("d"), attempt(os.rmdir, "d")]


@case
def remove_tree_by_tool():
    """rm -rf of a deep and of a broad tree"""
    os.makedirs("t/" + "/".join(f"level{n}" for n in range(40)))
    for number in range(300):
        os.makedirs(f"t/{number % 20}", exist_ok=True)
        write(f"t/{number % 20}/{number}", "x" * number)
    os.symlink("/", "t/root")
    os.mkfifo("t/p")
    return [run_tool("rm", "-rf", "t"), os.listdir(".")]


@case
def remove_link_counts_of_folders():
    """A folder's link count follows its sub-folders"""
    counts = []
    os.mkdir("d")
    for number in range(3):
        counts.append(os.stat("d").st_nlink)
        os.mkdir(f"d/{number}")
    for number in range(3):
        counts.append(os.stat("d").st_nlink)
        os.rmdir(f"d/{number}")
    return counts + [os.stat("d").st_nlink]


@case(needs="root")
def remove_permissions():
    """Removing asks the folder, not the file"""
    os.mkdir("open")
    os.chmod("open", 0o777)
    os.mkdir("closed")
    os.mkdir("no-search")
    os.chmod("no-search", 0o766)
    for place in ("open", "closed", "no-search"):
        write(f"{place}/f", "")
        os.chmod(f"{place}/f", 0)
        os.mkdir(f"{place}/d")
    places = ("open", "closed", "no-search")
    return as_stranger(lambda: [[attempt(os.unlink, f"{p}/f"), attempt(os.rmdir, f"{p}/d")] for p in places])


@case
def remove_and_create_in_turn():
    """The same name made and removed a thousand times"""
    inodes_seen = 0
    for number in range(1000):
        write("f", str(number))
        inodes_seen += int(read("f") == str(number))
        os.unlink("f")
    return [inodes_seen, os.listdir(".")]


@case
def remove_hard_link_while_open():
    """fstat's link count goes down with each name"""
    write("a", "x")
    for name in "bcd":
        os.link("a", name)
    fd = os.open("a", os.O_RDONLY)
    counts = []
    for name in "abcd":
        counts.append(os.fstat(fd).st_nlink)
        os.unlink(name)
    return counts + [os.fstat(fd).st_nlink]
