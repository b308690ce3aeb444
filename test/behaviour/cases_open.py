"""open(2): flags, errnos, descriptors that outlive names."""

import fcntl
import os

from harness import (
    AT_EMPTY_PATH,
    AT_FDCWD,
    AT_SYMLINK_FOLLOW,
    as_stranger,
    attempt,
    attempt_open,
    case,
    linkat,
    look,
    mode_of,
    read,
    show,
    write,
)

NEW = os.O_WRONLY | os.O_CREAT


@case
def open_exclusive():
    """O_EXCL creates once and refuses every kind of existing name, a dangling symlink too"""
    os.mkdir("dir")
    os.symlink("nowhere", "dangling")
    return [attempt_open(name, NEW | os.O_EXCL) for name in ("new", "new", "dir", "dangling")] + [sorted(os.listdir("."))]


@case
def open_creates_through_dangling_symlink():
    """O_CREAT without O_EXCL makes the file that a dangling symlink names"""
    os.symlink("target", "link")
    write("link", "x")
    return [look("target"), read("link")]


@case
def open_truncates():
    """O_TRUNC empties a file, with O_RDONLY too, and refuses folders"""
    os.mkdir("dir")
    sizes = []
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY):
        write("f", "content")
        attempt_open("f", flags | os.O_TRUNC)
        sizes.append(os.path.getsize("f"))
    return [sizes, attempt_open("dir", os.O_WRONLY | os.O_TRUNC), attempt_open("missing", os.O_WRONLY | os.O_TRUNC)]


@case
def open_truncate_keeps_inode_and_other_descriptors():
    """O_TRUNC is seen by a descriptor that was open before"""
    write("f", "0123456789")
    fd = os.open("f", os.O_RDWR)
    before = os.fstat(fd).st_ino
    write("f", "ab")
    return [os.fstat(fd).st_ino == before, os.fstat(fd).st_size, os.pread(fd, 100, 0).decode(), os.stat("f").st_ino == before]


@case
def open_append():
    """O_APPEND writes at the end whatever the position is, pwrite too"""
    write("f", "one")
    fd = os.open("f", os.O_RDWR | os.O_APPEND)
    os.lseek(fd, 0, os.SEEK_SET)
    os.write(fd, b"two")
    os.pwrite(fd, b"three", 0)
    other = os.open("f", os.O_WRONLY)
    os.pwrite(other, b"more", 11)
    os.write(fd, b"!")
    return [read("f"), os.lseek(fd, 0, os.SEEK_CUR)]


@case
def open_append_by_fcntl():
    """F_SETFL switches O_APPEND on and off"""
    write("f", "abc")
    fd = os.open("f", os.O_RDWR)
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
    on = bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND)
    os.write(fd, b"def")
    fcntl.fcntl(fd, fcntl.F_SETFL, 0)
    os.lseek(fd, 0, os.SEEK_SET)
    os.write(fd, b"X")
    return [on, read("f")]


@case
def open_directory_flag():
    """O_DIRECTORY opens folders only; folders can't be opened for writing"""
    os.mkdir("dir")
    write("file", "")
    os.symlink("dir", "to-dir")
    os.symlink("file", "to-file")
    flag = os.O_RDONLY | os.O_DIRECTORY
    return [
        [attempt_open(n, flag) for n in ("dir", "file", "to-dir", "to-file", "missing")],
        attempt_open("to-dir", flag | os.O_NOFOLLOW),
        attempt_open("dir", os.O_WRONLY),
        attempt_open("dir", os.O_RDWR),
        attempt_open("dir", NEW),
        attempt_open("file", flag | os.O_CREAT),
    ]


@case
def open_nofollow():
    """O_NOFOLLOW refuses a symlink at the end, not one on the way"""
    os.mkdir("dir")
    write("dir/file", "x")
    os.symlink("dir", "d")
    os.symlink("dir/file", "f")
    return [attempt_open(n, os.O_RDONLY | os.O_NOFOLLOW) for n in ("f", "d/file", "d", "dir/file")]


@case
def open_tmpfile_and_link():
    """O_TMPFILE makes a nameless file that linkat gives a name"""
    fd = os.open(".", os.O_RDWR | os.O_TMPFILE, 0o640)
    os.write(fd, b"nameless")
    before = [show(os.fstat(fd)), os.listdir(".")]
    linkat(AT_FDCWD, f"/proc/self/fd/{fd}", AT_FDCWD, "named", AT_SYMLINK_FOLLOW)
    os.write(fd, b", then named")
    after = [show(os.fstat(fd)), os.listdir("."), read("named"), os.stat("named").st_ino == os.fstat(fd).st_ino]
    again = attempt(linkat, AT_FDCWD, f"/proc/self/fd/{fd}", AT_FDCWD, "named", AT_SYMLINK_FOLLOW)
    return [before, after, again]


@case
def open_tmpfile_exclusive():
    """A file made with O_TMPFILE|O_EXCL never gets a name"""
    fd = os.open(".", os.O_RDWR | os.O_TMPFILE | os.O_EXCL, 0o600)
    os.write(fd, b"x")
    return [attempt(linkat, AT_FDCWD, f"/proc/self/fd/{fd}", AT_FDCWD, "n", AT_SYMLINK_FOLLOW), os.listdir(".")]


@case
def open_tmpfile_errnos():
    """O_TMPFILE needs a folder and a writable descriptor"""
    write("file", "")
    return [
        attempt_open("file", os.O_RDWR | os.O_TMPFILE),
        attempt_open("missing", os.O_RDWR | os.O_TMPFILE),
        attempt_open(".", os.O_RDONLY | os.O_TMPFILE),
    ]


@case
def open_tmpfile_dropped():
    """A nameless file that is closed leaves nothing; many can live at once"""
    fds = [os.open(".", os.O_RDWR | os.O_TMPFILE, 0o600) for _ in range(50)]
    for number, fd in enumerate(fds):
        os.write(fd, str(number).encode() * 100)
    contents = [os.pread(fd, 10_000, 0) == str(number).encode() * 100 for number, fd in enumerate(fds)]
    for fd in fds:
        os.close(fd)
    return [all(contents), os.listdir(".")]


@case
def open_path_only():
    """O_PATH gives a handle: stat and openat work, reading and changing don't"""
    os.mkdir("dir")
    write("dir/f", "content")
    os.symlink("dir/f", "link")
    directory = os.open("dir", os.O_PATH)
    file = os.open("dir/f", os.O_PATH)
    link = os.open("link", os.O_PATH | os.O_NOFOLLOW)
    results = [
        show(os.fstat(file)),
        show(os.fstat(link)),
        attempt(os.read, file, 1),
        attempt(os.write, file, b"x"),
        attempt(os.fchmod, file, 0o600),
        attempt(os.ftruncate, file, 0),
        attempt_open("f", os.O_RDONLY, dir_fd=directory),
        attempt(os.readlink, b"", dir_fd=link).decode(),
        attempt(os.fsync, file),
    ]
    os.fchdir(directory)
    return results + [os.listdir("."), attempt_open(f"/proc/self/fd/{file}", os.O_RDWR)]


@case(needs="root")
def open_path_linked_by_empty_path():
    """linkat with AT_EMPTY_PATH names the file behind a descriptor"""
    write("f", "x")
    fd = os.open("f", os.O_PATH)
    linkat(fd, "", AT_FDCWD, "second", AT_EMPTY_PATH)
    return [look("f"), look("second")]


@case
def open_missing_and_not_a_folder():
    """ENOENT and ENOTDIR on the way and at the end, trailing slashes too"""
    write("f", "")
    os.mkdir("d")
    os.symlink("f", "l")
    names = ["missing", "missing/x", "f/x", "f/", "l/", "l/x", "d/", "d/missing", "", "d/../f", "f/../f", "f/."]
    return {
        "read": {n: attempt_open(n, os.O_RDONLY) for n in names},
        "create": {n: attempt_open(n, NEW) for n in ("f/", "new/", "d/", "d/new/", "missing/new", "f/new", ".", "..", "")},
        "left": sorted(os.listdir(".")),
    }


@case
def open_access_mode_is_enforced():
    """A descriptor reads or writes only what it was opened for"""
    write("f", "abc")
    reader = os.open("f", os.O_RDONLY)
    writer = os.open("f", os.O_WRONLY)
    return [
        attempt(os.write, reader, b"x"),
        attempt(os.pwrite, reader, b"x", 0),
        attempt(os.ftruncate, reader, 0),
        attempt(os.read, writer, 1),
        attempt(os.pread, writer, 1, 0),
        attempt(os.write, writer, b"X"),
        read("f"),
    ]


@case
def open_read_only_mode_with_writable_descriptor():
    """A file created 0444 (or 0000) can be written through the descriptor that made it, as git does"""
    results = []
    for name, mode in (("a", 0o444), ("b", 0o000), ("c", 0o200)):
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        results.append([attempt(os.write, fd, b"data"), attempt(os.pread, fd, 10, 0).decode(), attempt(os.fsync, fd), look(name)])
        os.close(fd)
    return results


@case
def open_descriptor_survives_chmod():
    """A descriptor goes on writing after the mode has been taken away"""
    fd = os.open("f", os.O_RDWR | os.O_CREAT, 0o644)
    os.fchmod(fd, 0)
    first = attempt(os.write, fd, b"abc")
    os.ftruncate(fd, 2)
    return [first, os.pread(fd, 10, 0).decode(), look("f")]


@case(needs="user")
def open_own_closed_file():
    """An ordinary user can't open his own 0000 or 0444 file for what its mode forbids"""
    write("closed", "x")
    write("readable", "x")
    os.chmod("closed", 0)
    os.chmod("readable", 0o444)
    return [
        attempt_open("closed", os.O_RDONLY),
        attempt_open("closed", os.O_WRONLY),
        attempt_open("readable", os.O_RDONLY),
        attempt_open("readable", os.O_WRONLY),
        attempt_open("readable", os.O_RDONLY | os.O_TRUNC),
        attempt(os.truncate, "readable", 0),
    ]


@case
def open_again_by_proc():
    """A file, an unlinked one too, opens again by /proc/self/fd"""
    fd = os.open("f", os.O_RDWR | os.O_CREAT, 0o600)
    os.write(fd, b"hello")
    second = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
    os.unlink("f")
    third = os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_TRUNC)
    os.write(third, b"J")
    return [os.pread(fd, 10, 0).decode(), os.fstat(second).st_size, os.fstat(second).st_nlink]


@case
def open_many_descriptors():
    """500 descriptors of 500 files, all unlinked, keep their bytes"""
    fds = []
    for number in range(500):
        fd = os.open(f"f{number}", os.O_RDWR | os.O_CREAT, 0o600)
        os.write(fd, b"%d" % number)
        fds.append(fd)
    for number in range(500):
        os.unlink(f"f{number}")
    good = [os.pread(fd, 10, 0) == b"%d" % number and os.fstat(fd).st_nlink == 0 for number, fd in enumerate(fds)]
    return [all(good), os.listdir(".")]


@case
def open_synchronous():
    """O_SYNC and O_DSYNC write, fsync and fdatasync return"""
    results = []
    for flag in (os.O_SYNC, os.O_DSYNC, os.O_SYNC | os.O_APPEND):
        fd = os.open("f", os.O_RDWR | os.O_CREAT | flag, 0o644)
        results.append([os.write(fd, b"12345"), attempt(os.fsync, fd), attempt(os.fdatasync, fd), os.fstat(fd).st_size])
        os.close(fd)
    directory = os.open(".", os.O_RDONLY)
    return [results, attempt(os.fsync, directory), attempt(os.fdatasync, directory)]


@case(needs="root")
def open_noatime():
    """O_NOATIME is for the owner only"""
    write("f", "x", 0o644)
    flag = os.O_RDONLY | os.O_NOATIME
    return [attempt_open("f", flag), as_stranger(lambda: attempt_open("f", flag))]


@case
def open_created_mode_bits():
    """The mode given to open loses the umask; set-id and sticky bits stay"""
    results = []
    for umask in (0o000, 0o022, 0o077, 0o777):
        os.umask(umask)
        for mode in (0o666, 0o777, 0o4755, 0o2755, 0o1644):
            name = f"f{umask:o}-{mode:o}"
            os.close(os.open(name, NEW, mode))
            results.append(mode_of(name))
    return results


@case
def open_read_of_folder():
    """Reading bytes of a folder, or a folder as a file, fails as it should"""
    os.mkdir("d")
    fd = os.open("d", os.O_RDONLY)
    return [attempt(os.read, fd, 10), attempt(os.pread, fd, 10, 0), attempt(os.write, fd, b"x"), attempt(os.ftruncate, fd, 0)]
