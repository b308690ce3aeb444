"""Who may do what: modes of files and folders against users and groups."""

import os

from harness import STRANGER, STRANGER_GROUP, as_stranger, attempt, attempt_open, case, in_child, read, write


def tries(name):
    return [
        attempt_open(name, os.O_RDONLY),
        attempt_open(name, os.O_WRONLY),
        attempt_open(name, os.O_RDWR),
        [os.access(name, mode) for mode in (os.F_OK, os.R_OK, os.W_OK, os.X_OK)],
    ]


@case(needs="root")
def access_of_files_by_class():
    """Owner, group and others get their own three bits, and not those of another class"""
    results = {}
    for mode in (0o400, 0o200, 0o040, 0o020, 0o004, 0o002, 0o077, 0o707, 0o770, 0o111):
        write("f", "x")
        os.chown("f", STRANGER, 777)
        os.chmod("f", mode)
        results[oct(mode)] = {
            "owner": as_stranger(lambda: tries("f")),
            "group": in_child(lambda: tries("f"), uid=4444, gid=777),
            "other": in_child(lambda: tries("f"), uid=4444, gid=4444),
            "root": tries("f"),
        }
        os.unlink("f")
    return results


@case(needs="root")
def access_of_folders():
    """Listing needs r, passing needs x, making and removing need w and x"""
    results = {}
    for mode in (0o700, 0o701, 0o704, 0o705, 0o703, 0o702, 0o707):
        name = f"d{mode:o}"
        os.mkdir(name)
        write(f"{name}/f", "x")
        os.mkdir(f"{name}/sub")
        os.chmod(name, mode)
        results[oct(mode)] = as_stranger(
            lambda: [
                attempt(os.listdir, name),
                attempt(os.stat, f"{name}/f") == "EACCES",
                attempt(os.stat, f"{name}/missing"),
                attempt(read, f"{name}/f"),
                attempt(write, f"{name}/new", ""),
                attempt(os.mkdir, f"{name}/newdir"),
                attempt(os.rename, f"{name}/f", f"{name}/g"),
                attempt(os.rmdir, f"{name}/sub"),
                attempt(os.symlink, "x", f"{name}/l"),
                attempt(os.link, f"{name}/new", f"{name}/h"),
                attempt(os.chdir, name),
            ]
        )
    return results


@case(needs="root")
def access_on_the_way():
    """A closed folder anywhere on the path closes all below"""
    os.makedirs("a/b/c")
    write("a/b/c/f", "x")
    results = []
    for closed in ("a", "a/b", "a/b/c"):
        os.chmod(closed, 0o700)
        results.append(as_stranger(lambda: [attempt(read, "a/b/c/f"), attempt(os.listdir, "a/b/c"), attempt(os.stat, "a/b/c/f") == "EACCES"]))
        os.chmod(closed, 0o755)
    return results + [as_stranger(lambda: attempt(read, "a/b/c/f"))]


@case(needs="root")
def access_after_change_of_mode():
    """A change of mode counts at once, for the next open and the next lookup"""
    os.mkdir("d")
    write("d/f", "x")
    results = []
    for folder, file in ((0o755, 0o644), (0o700, 0o644), (0o755, 0o600), (0o755, 0o604)):
        os.chmod("d", folder)
        os.chmod("d/f", file)
        results.append(as_stranger(lambda: attempt(read, "d/f")))
    os.chown("d/f", STRANGER, -1)
    os.chmod("d/f", 0o400)
    results.append(as_stranger(lambda: attempt(read, "d/f")))
    os.chown("d/f", 0, -1)
    return results + [as_stranger(lambda: attempt(read, "d/f"))]


@case(needs="root")
def access_open_descriptor_passes_on():
    """A descriptor opened by root is good in a process that could not have opened it"""
    write("f", "secret")
    os.chmod("f", 0o600)
    fd = os.open("f", os.O_RDWR)
    return as_stranger(lambda: [os.pread(fd, 10, 0).decode(), os.pwrite(fd, b"X", 0), attempt(os.ftruncate, fd, 3), attempt(read, "f"), attempt_open(f"/proc/self/fd/{fd}", os.O_RDONLY)])


@case(needs="root")
def access_real_and_effective_user():
    """access(2) asks for the real user, opening for the effective one"""
    write("f", "x")
    os.chmod("f", 0o600)
    write("g", "x")
    os.chown("g", STRANGER, STRANGER_GROUP)
    os.chmod("g", 0o600)

    def play():
        os.setresgid(STRANGER_GROUP, STRANGER_GROUP, 0)
        os.setresuid(0, STRANGER, 0)
        real_root = [os.access("f", os.R_OK), attempt(read, "f"), os.access("f", os.R_OK, effective_ids=True), attempt(read, "g")]
        os.setresuid(0, 0, 0)
        os.setresuid(STRANGER, 0, 0)
        return real_root + [os.access("f", os.R_OK), attempt(read, "f")]

    return in_child(play)


@case(needs="root")
def access_file_system_user():
    """An effective user id changed for one call decides about ownership"""
    os.chmod(".", 0o777)
    owners = []
    for uid in (0, STRANGER, 1234):
        os.seteuid(uid)
        try:
            os.close(os.open(f"by{uid}", os.O_CREAT | os.O_WRONLY, 0o600))
        finally:
            os.seteuid(0)
        owners.append(os.stat(f"by{uid}").st_uid)
    return owners


@case(needs="user")
def access_own_closed_folder():
    """An ordinary user is kept out of his own closed folders, until he opens them"""
    os.mkdir("d")
    write("d/f", "x")
    results = []
    for mode in (0o000, 0o100, 0o400, 0o500, 0o300):
        os.chmod("d", mode)
        results.append([attempt(os.listdir, "d"), attempt(read, "d/f"), attempt(write, "d/new", ""), attempt(os.mkdir, "d/s")])
    os.chmod("d", 0o700)
    return results + [sorted(os.listdir("d"))]


@case(needs="user")
def access_outside_of_reach():
    """What an ordinary user may not touch anywhere: ownership, devices, privileged attributes"""
    write("f", "x")
    os.chmod("f", 0o4755)
    return [
        attempt(os.chown, "f", 0, 0),
        attempt(os.setxattr, "f", "trusted.x", b""),
        attempt(os.setxattr, "f", "security.capability", b"\1\0\0\2" + bytes(16)),
        oct(os.stat("f").st_mode),
        [os.access("f", m) for m in (os.R_OK, os.W_OK, os.X_OK)],
    ]
