"""Modes, umask, set-id bits, sticky folders, owners."""

import os
import stat

from harness import (
    AT_SYMLINK_NOFOLLOW,
    STRANGER,
    STRANGER_GROUP,
    as_stranger,
    attempt,
    attempt_open,
    case,
    fchmodat2,
    in_child,
    look,
    mode_of,
    read,
    write,
)


@case
def modes_umask():
    """The umask takes bits from what mkdir, mkfifo, mknod and open make; not from symlinks"""
    results = []
    for umask in (0o000, 0o027, 0o077):
        os.umask(umask)
        os.mkdir(f"d{umask}", 0o777)
        os.mkfifo(f"p{umask}", 0o666)
        os.mknod(f"n{umask}", stat.S_IFREG | 0o666)
        write(f"f{umask}", "", 0o666)
        results.append([mode_of(f"{kind}{umask}") for kind in "dpnf"])
    os.symlink("x", "l")
    return results + [mode_of("l")]


@case
def modes_chmod_every_bit():
    """chmod sets each of the twelve bits"""
    write("f", "")
    os.mkdir("d")
    results = []
    for mode in [1 << bit for bit in range(12)] + [0, 0o7777, 0o755]:
        os.chmod("f", mode)
        os.chmod("d", mode)
        results.append([mode_of("f"), mode_of("d")])
    return results


@case
def modes_chmod_errnos():
    """chmod of missing names, of symlinks, and through them"""
    write("f", "")
    os.symlink("f", "l")
    os.symlink("nowhere", "dangling")
    os.chmod("l", 0o600)
    return [
        attempt(os.chmod, "missing", 0o600),
        attempt(os.chmod, "dangling", 0o600),
        attempt(os.chmod, "f/x", 0o600),
        attempt(fchmodat2, "l", 0o640, AT_SYMLINK_NOFOLLOW),
        mode_of("l"),
        mode_of("f"),
    ]


@case(needs="root")
def modes_chmod_by_others():
    """Only the owner and root change modes"""
    write("f", "")
    os.mkdir("d")
    return [as_stranger(lambda: [attempt(os.chmod, n, 0o777) for n in ("f", "d", "missing")]), mode_of("f"), mode_of("d")]


@case
def modes_setgid_folder():
    """In a set-gid folder new folders get the bit"""
    os.mkdir("d")
    os.chmod("d", 0o2775)
    write("d/f", "")
    os.mkdir("d/sub")
    os.mkfifo("d/p")
    os.mkdir("d/sub/sub")
    return [mode_of(n) for n in ("d", "d/f", "d/sub", "d/p", "d/sub/sub")]


@case(needs="root")
def modes_setgid_folder_gives_its_group():
    """In a set-gid folder new files and folders get its group, whoever makes them"""
    os.mkdir("d")
    os.chown("d", 0, 777)
    os.chmod("d", 0o2777)

    def make():
        write("d/by-stranger", "", 0o666)
        os.mkdir("d/dir-by-stranger")
        os.symlink("x", "d/link-by-stranger")
        # Not a member of the group: the set-gid bit of a group-executable file is dropped.
        os.close(os.open("d/setgid", os.O_CREAT | os.O_WRONLY, 0o2755))
        return True

    as_stranger(make)
    write("d/by-root", "")
    os.mkdir("d/dir-by-root")
    return {name: look(f"d/{name}") for name in sorted(os.listdir("d"))}


@case(needs="root")
def modes_owner_of_new_things():
    """What a user makes belongs to the user and its group"""
    os.mkdir("d")
    os.chmod("d", 0o777)

    def make():
        os.chdir("d")
        write("f", "x")
        os.mkdir("sub")
        os.symlink("f", "l")
        os.link("f", "h")
        os.mkfifo("p")
        os.mknod("n", stat.S_IFREG | 0o640)
        fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
        info = os.fstat(fd)
        return [info.st_uid, info.st_gid]

    return [as_stranger(make), {name: look(f"d/{name}") for name in sorted(os.listdir("d"))}]


@case(needs="root")
def modes_sticky_folder():
    """In a sticky folder others' files can't be removed or renamed"""
    os.mkdir("d")
    os.chmod("d", 0o1777)
    write("d/roots", "")
    os.mkdir("d/roots-dir")

    def play():
        os.chdir("d")
        write("mine", "")
        return [
            attempt(os.unlink, "roots"),
            attempt(os.rmdir, "roots-dir"),
            attempt(os.rename, "roots", "x"),
            attempt(os.rename, "mine", "roots"),
            attempt(os.rename, "mine", "other"),
            attempt(os.unlink, "other"),
        ]

    return [as_stranger(play), sorted(os.listdir("d"))]


@case(needs="root")
def modes_setuid_cleared_by_write():
    """A write by somebody without privilege takes the set-id bits away; root's write does not"""
    results = []
    for how in ("stranger", "root"):
        for mode in (0o4777, 0o2777, 0o6777, 0o2767):
            name = f"{how}{mode:o}"
            write(name, "content")
            os.chmod(name, mode)
            fd = os.open(name, os.O_RDWR)
            if how == "stranger":
                as_stranger(lambda: attempt(os.pwrite, fd, b"x", 0))
            else:
                os.pwrite(fd, b"x", 0)
            results.append([how, oct(mode), mode_of(name)])
    return results


@case(needs="root")
def modes_setuid_cleared_by_truncate():
    """truncate, O_TRUNC and fallocate by somebody without privilege take the set-id bits away"""

    def fallocate():
        fd = os.open("f", os.O_RDWR)
        os.posix_fallocate(fd, 0, 10_000)

    def empty():
        os.close(os.open("f", os.O_WRONLY | os.O_TRUNC))

    results = []
    for change in (lambda: os.truncate("f", 2), empty, fallocate):
        write("f", "content")
        os.chmod("f", 0o6777)
        results.append([as_stranger(lambda: attempt(change)), mode_of("f")])
    return results


@case
def modes_setuid_and_own_write():
    """The set-id bits after writing to one's own file"""
    results = []
    for mode in (0o4755, 0o2755, 0o6755, 0o2745):
        write("f", "x")
        os.chmod("f", mode)
        before = mode_of("f")
        write("f", "y", flags=os.O_WRONLY)
        after_write = mode_of("f")
        os.chmod("f", mode)
        os.truncate("f", 0)
        results.append([before, after_write, mode_of("f")])
    return results


@case(needs="root")
def modes_setuid_cleared_by_chown():
    """chown takes the set-id bits from executable files, not from folders"""
    results = []
    for mode in (0o6755, 0o6744, 0o4755, 0o2755):
        write("f", "")
        os.chmod("f", mode)
        os.chown("f", 1234, 1234)
        results.append([oct(mode), mode_of("f")])
        os.unlink("f")
    os.mkdir("d")
    os.chmod("d", 0o6755)
    os.chown("d", 1234, 1234)
    return results + [look("d")]


@case(needs="root")
def modes_chown():
    """chown of owner, group, both, neither; symlinks themselves with lchown"""
    write("f", "")
    os.symlink("f", "l")
    results = []
    for uid, gid in ((1, -1), (-1, 2), (3, 4), (-1, -1), (0, 0)):
        os.chown("f", uid, gid)
        results.append(look("f"))
    os.lchown("l", 77, 88)
    return results + [look("l"), look("f"), attempt(os.chown, "missing", 1, 1)]


@case(needs="root")
def modes_chown_by_owner():
    """An owner may give the file to one of the groups it is in, nothing else"""
    os.mkdir("d")
    os.chmod("d", 0o777)

    def play():
        write("d/f", "")
        return [
            attempt(os.chown, "d/f", 0, -1),
            attempt(os.chown, "d/f", STRANGER, -1),
            attempt(os.chown, "d/f", -1, STRANGER_GROUP),
            attempt(os.chown, "d/f", -1, 4321),
            attempt(os.chown, "d/f", -1, 9999),
            attempt(os.chown, "d", -1, STRANGER_GROUP),
            look("d/f"),
        ]

    return as_stranger(play, groups=[4321])


@case(needs="user")
def modes_chown_by_ordinary_user():
    """An ordinary user can't give files away"""
    write("f", "")
    here = os.getuid(), os.getgid()
    return [
        attempt(os.chown, "f", 0, -1),
        attempt(os.chown, "f", -1, 0),
        attempt(os.chown, "f", *here),
        attempt(os.chown, "f", -1, -1),
        attempt(os.lchown, "f", here[0] + 1, -1),
    ]


@case(needs="root")
def modes_setgid_dropped_by_chmod_of_nonmember():
    """chmod by an owner who is not in the file's group can't set the set-gid bit"""
    write("f", "")
    os.chown("f", STRANGER, 888)
    results = [as_stranger(lambda: [attempt(os.chmod, "f", 0o2755), mode_of("f")])]
    return results + [as_stranger(lambda: [attempt(os.chmod, "f", 0o2755), mode_of("f")], groups=[888])]


@case(needs="root")
def modes_supplementary_groups():
    """Supplementary groups open files and folders"""
    write("f", "secret")
    os.chown("f", 0, 888)
    os.chmod("f", 0o640)
    os.mkdir("d")
    os.chown("d", 0, 888)
    os.chmod("d", 0o770)

    def play():
        return [attempt(read, "f"), attempt(write, "d/new", ""), attempt_open("f", os.O_WRONLY)]

    many = list(range(1000, 1040)) + [888]
    return [as_stranger(play), as_stranger(play, groups=[888]), as_stranger(play, groups=many)]


@case
def modes_fchmod_after_unlink():
    """fchmod and fchown work on a file without a name"""
    fd = os.open("f", os.O_RDWR | os.O_CREAT, 0o644)
    os.unlink("f")
    os.fchmod(fd, 0o600)
    os.fchown(fd, -1, -1)
    return [oct(os.fstat(fd).st_mode), os.fstat(fd).st_nlink]


@case(needs="root")
def modes_foreign_owner_in_own_folder():
    """The owner of a folder may remove others' files from it, not change them"""
    os.mkdir("d")
    os.chown("d", STRANGER, STRANGER_GROUP)
    write("d/roots", "x")
    os.mkdir("d/empty")
    os.mkdir("d/full")
    write("d/full/f", "")
    return as_stranger(
        lambda: [
            attempt(os.chmod, "d/roots", 0o777),
            attempt_open("d/roots", os.O_WRONLY),
            attempt(os.rename, "d/roots", "d/renamed"),
            attempt(os.unlink, "d/renamed"),
            attempt(os.rmdir, "d/full"),
            attempt(os.rmdir, "d/empty"),
            sorted(os.listdir("d")),
        ]
    )


@case(needs="root")
def modes_other_umask_in_other_process():
    """Each process's own umask counts"""
    os.mkdir("d")
    os.chmod("d", 0o777)
    for umask in (0, 0o22, 0o77, 0o777):
        in_child(lambda: write(f"d/{umask:o}", "") or os.mkdir(f"d/d{umask:o}"), umask=umask, uid=STRANGER, gid=STRANGER_GROUP)
    return {name: mode_of(f"d/{name}") for name in sorted(os.listdir("d"))}
