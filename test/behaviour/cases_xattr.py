"""Extended attributes and access control lists."""

import os
import stat
import struct

from harness import STRANGER, STRANGER_GROUP, as_stranger, attempt, attempt_open, case, checked, libc, look, mode_of, raw, read, run_tool, write

ACCESS = "system.posix_acl_access"
DEFAULT = "system.posix_acl_default"
# Tags of ACL entries.
USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER = 1, 2, 4, 8, 16, 32
UNDEFINED = 0xFFFFFFFF


def acl(*entries):
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, bits, who) for tag, bits, who in entries)


def show_acl(path, name):
    value = attempt(os.getxattr, path, name)
    if isinstance(value, str):
        return value
    return [list(struct.unpack_from("<HHI", value, 4 + 8 * i)) for i in range((len(value) - 4) // 8)]


STRANGER_READS = acl((USER_OBJ, 6, UNDEFINED), (USER, 4, STRANGER), (GROUP_OBJ, 0, UNDEFINED), (MASK, 4, UNDEFINED), (OTHER, 0, UNDEFINED))


@case
def xattr_set_get_list_remove():
    """user. attributes with empty, binary and long values, replaced and removed"""
    write("f", "")
    os.mkdir("d")
    values = {"user.empty": b"", "user.binary": bytes(range(256)), "user.text": b"text", "user.ünï": b"1"}
    for path in "fd":
        for name, value in values.items():
            os.setxattr(path, name, value)
    kept = [all(os.getxattr(p, n) == v for n, v in values.items()) for p in "fd"]
    os.setxattr("f", "user.text", b"longer than before")
    os.removexattr("f", "user.binary")
    listed = sorted(n for n in os.listxattr("f") if n.startswith("user."))
    return [kept, listed, os.getxattr("f", "user.text").decode(), attempt(os.getxattr, "f", "user.binary")]


@case
def xattr_flags():
    """XATTR_CREATE wants it absent, XATTR_REPLACE present"""
    write("f", "")
    return [
        attempt(os.setxattr, "f", "user.a", b"1", os.XATTR_REPLACE),
        attempt(os.setxattr, "f", "user.a", b"2", os.XATTR_CREATE),
        attempt(os.setxattr, "f", "user.a", b"3", os.XATTR_CREATE),
        attempt(os.setxattr, "f", "user.a", b"4", os.XATTR_REPLACE),
        os.getxattr("f", "user.a").decode(),
        attempt(os.setxattr, "f", "user.a", b"5", 99),
    ]


@case
def xattr_sizes():
    """Asking for sizes, buffers too small, names and values too long"""
    import ctypes

    write("f", "")
    os.setxattr("f", "user.ten", b"0123456789")
    buffer = ctypes.create_string_buffer(100)

    def get(size):
        return attempt(lambda: checked(libc.getxattr(b"f", b"user.ten", buffer, size)))

    def listing(size):
        return attempt(lambda: checked(libc.listxattr(b"f", buffer, size)))

    names = len(b"\0".join(raw(n) for n in os.listxattr("f"))) + 1
    return [
        [get(size) for size in (0, 9, 10, 100)],
        [listing(0) == names, listing(1), listing(names) == names],
        attempt(os.setxattr, "f", "user." + "n" * 250, b"x"),
        attempt(os.setxattr, "f", "user." + "n" * 251, b"x"),
        attempt(os.setxattr, "f", "user.big", b"x" * 3_000),
        attempt(os.setxattr, "f", "user.huge", b"x" * 65_537),
        attempt(os.setxattr, "f", "", b"x"),
        attempt(os.setxattr, "f", "user.", b"x"),
    ]


@case
def xattr_missing():
    """Attributes and files that aren't there"""
    write("f", "")
    return [
        attempt(os.getxattr, "f", "user.none"),
        attempt(os.removexattr, "f", "user.none"),
        attempt(os.getxattr, "missing", "user.none"),
        attempt(os.setxattr, "missing", "user.a", b""),
        attempt(os.listxattr, "missing"),
        attempt(os.removexattr, "f/x", "user.a"),
        [n for n in os.listxattr("f") if n.startswith("user.")],
    ]


@case
def xattr_namespaces():
    """Namespaces that exist, that need privilege, and that don't exist"""
    write("f", "")
    names = ["user.x", "trusted.x", "security.x", "system.x", "nonsense.x", "x", "User.x", "security.capability", "user", ".x"]
    return [[name, attempt(os.setxattr, "f", name, b"v"), attempt(os.getxattr, "f", name) == b"v"] for name in names]


@case(needs="root")
def xattr_trusted_is_hidden_from_others():
    """trusted. attributes are for root only"""
    write("f", "")
    os.chmod("f", 0o666)
    os.setxattr("f", "trusted.secret", b"1")
    os.setxattr("f", "user.open", b"2")

    def play():
        visible = sorted(n for n in os.listxattr("f") if not n.startswith("security."))
        return [visible, attempt(os.getxattr, "f", "trusted.secret"), attempt(os.setxattr, "f", "trusted.x", b"")]

    return [sorted(n for n in os.listxattr("f") if not n.startswith("security.")), as_stranger(play)]


@case
def xattr_on_special_files():
    """user. attributes belong on files and folders only"""
    os.mkfifo("p")
    os.mknod("s", stat.S_IFSOCK | 0o600)
    os.symlink("x", "l")
    return [[attempt(os.setxattr, n, "user.a", b"1", follow_symlinks=False), attempt(os.getxattr, n, "user.a", follow_symlinks=False)] for n in "psl"]


@case(needs="root")
def xattr_permissions():
    """Reading an attribute needs read permission, setting one write permission; in sticky folders ownership"""
    for name, mode in (("both", 0o666), ("readable", 0o644), ("closed", 0o600)):
        write(name, "")
        os.setxattr(name, "user.a", b"1")
        os.chmod(name, mode)
    os.mkdir("sticky")
    os.chmod("sticky", 0o1777)
    return as_stranger(
        lambda: [
            [attempt(os.getxattr, n, "user.a") == b"1", attempt(os.setxattr, n, "user.b", b""), attempt(os.removexattr, n, "user.a")]
            for n in ("both", "readable", "closed")
        ]
        + [attempt(os.setxattr, "sticky", "user.a", b"")]
    )


@case
def xattr_survives_and_is_copied():
    """Attributes stay through rename, link and truncate; cp -a takes them along"""
    write("f", "x")
    os.setxattr("f", "user.kept", b"yes")
    os.rename("f", "g")
    os.link("g", "h")
    os.truncate("h", 0)
    tool = run_tool("cp", "-a", "h", "copy")
    write("other", "")
    os.rename("other", "g")
    return [os.getxattr("h", "user.kept").decode(), tool, os.getxattr("copy", "user.kept").decode(), attempt(os.getxattr, "g", "user.kept")]


@case
def xattr_many():
    """Twenty attributes on one file"""
    write("f", "")
    for number in range(20):
        os.setxattr("f", f"user.n{number}", b"%d" % number)
    return [sorted(n for n in os.listxattr("f") if n.startswith("user.")), os.getxattr("f", "user.n13").decode()]


@case
def acl_set_get_remove():
    """Access and default ACLs, and the mode bits they mean"""
    write("f", "")
    os.mkdir("d")
    os.setxattr("f", ACCESS, STRANGER_READS)
    os.setxattr("d", DEFAULT, STRANGER_READS)
    results = [mode_of("f"), show_acl("f", ACCESS), mode_of("d"), show_acl("d", DEFAULT), show_acl("d", ACCESS)]
    os.removexattr("f", ACCESS)
    os.removexattr("d", DEFAULT)
    return results + [mode_of("f"), show_acl("f", ACCESS), show_acl("d", DEFAULT), attempt(os.removexattr, "d", DEFAULT)]


@case
def acl_errnos():
    """Malformed ACLs, default ACLs on files, ACLs on symlinks"""
    write("f", "")
    os.symlink("f", "l")
    return [
        attempt(os.setxattr, "f", ACCESS, b"short"),
        attempt(os.setxattr, "f", ACCESS, acl((USER_OBJ, 6, UNDEFINED))),
        attempt(os.setxattr, "f", ACCESS, struct.pack("<I", 7)),
        attempt(os.setxattr, "f", DEFAULT, STRANGER_READS),
        attempt(os.setxattr, "l", ACCESS, STRANGER_READS, follow_symlinks=False),
        attempt(os.getxattr, "f", DEFAULT),
        mode_of("f"),
    ]


@case
def acl_minimal_is_only_a_mode():
    """An ACL that says no more than the mode is kept as the mode"""
    write("f", "")
    os.setxattr("f", ACCESS, acl((USER_OBJ, 7, UNDEFINED), (GROUP_OBJ, 5, UNDEFINED), (OTHER, 1, UNDEFINED)))
    return [mode_of("f"), show_acl("f", ACCESS), [n for n in os.listxattr("f") if "acl" in n]]


@case
def acl_chmod_moves_the_mask():
    """chmod of a file with an ACL changes its mask"""
    write("f", "")
    os.setxattr("f", ACCESS, STRANGER_READS)
    os.chmod("f", 0o770)
    wide = [mode_of("f"), show_acl("f", ACCESS)]
    os.chmod("f", 0o600)
    return wide + [mode_of("f"), show_acl("f", ACCESS)]


@case
def acl_default_is_inherited():
    """New files and folders take the default ACL instead of the umask"""
    os.mkdir("d")
    os.setxattr(
        "d", DEFAULT, acl((USER_OBJ, 7, UNDEFINED), (USER, 6, STRANGER), (GROUP_OBJ, 5, UNDEFINED), (MASK, 7, UNDEFINED), (OTHER, 0, UNDEFINED))
    )
    os.umask(0o077)
    write("d/f", "", 0o666)
    write("d/x", "", 0o640)
    os.mkdir("d/s")
    os.mkdir("d/s/t", 0o700)
    os.mkfifo("d/p", 0o666)
    os.symlink("x", "d/l")
    fd = os.open("d", os.O_TMPFILE | os.O_RDWR, 0o666)
    names = ("d/f", "d/x", "d/s", "d/s/t", "d/p")
    return [[mode_of(n), show_acl(n, ACCESS), show_acl(n, DEFAULT)] for n in names] + [oct(os.fstat(fd).st_mode), look("d/l")]


@case(needs="root")
def acl_is_enforced():
    """A named user and a named group get what the ACL gives them, cut by the mask"""
    for name, entries in {
        "user": [(USER, 4, STRANGER)],
        "group": [(GROUP, 6, STRANGER_GROUP)],
        "denied": [(USER, 0, STRANGER)],
    }.items():
        write(name, "secret")
        mask = 6
        os.setxattr(name, ACCESS, acl((USER_OBJ, 6, UNDEFINED), *[e for e in entries if e[0] == USER], (GROUP_OBJ, 0, UNDEFINED), *[e for e in entries if e[0] == GROUP], (MASK, mask, UNDEFINED), (OTHER, 4 if name == "denied" else 0, UNDEFINED)))
    write("masked", "secret")
    os.setxattr("masked", ACCESS, STRANGER_READS)
    os.chmod("masked", 0o600)

    def play():
        names = ("user", "group", "denied", "masked")
        return [[attempt(read, n), attempt_open(n, os.O_WRONLY), os.access(n, os.R_OK)] for n in names]

    return as_stranger(play)


@case(needs="root")
def acl_on_folders_is_enforced():
    """An ACL on a folder decides about listing, passing and creating"""
    os.mkdir("d")
    write("d/f", "x", 0o644)
    results = []
    for bits in (0, 1, 4, 5, 7):
        os.setxattr("d", ACCESS, acl((USER_OBJ, 7, UNDEFINED), (USER, bits, STRANGER), (GROUP_OBJ, 0, UNDEFINED), (MASK, 7, UNDEFINED), (OTHER, 0, UNDEFINED)))
        results.append(as_stranger(lambda: [attempt(os.listdir, "d"), attempt(read, "d/f"), attempt(write, f"d/{bits}", "")]))
    return results


@case
def acl_by_tools():
    """setfacl and getfacl, and cp -a"""
    write("f", "x")
    os.mkdir("d")
    results = [
        run_tool("setfacl", "-m", f"u:{STRANGER}:rw", "f"),
        run_tool("setfacl", "-d", "-m", f"g:{STRANGER_GROUP}:rwx", "d"),
        run_tool("cp", "-a", "f", "copy"),
        run_tool("getfacl", "-n", "--omit-header", "f", "copy", "d"),
        run_tool("setfacl", "-b", "f"),
    ]
    return results + [run_tool("getfacl", "-n", "--omit-header", "f"), mode_of("copy")]
