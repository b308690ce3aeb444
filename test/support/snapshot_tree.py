"""Prints what a tree is, as one JSON object, without any code of the product: the oracle of the tests.

usage: snapshot_tree.py ROOT [--exclude NAME]...

Every path below ROOT, ROOT itself as ".", maps to its kind, mode, owner, times, xattrs, bytes, holes and inode. Names,
symlink targets and xattr values are bytes; they are printed as latin1 strings, one char per byte, so that nothing is lost.
--exclude leaves out one name at the top of ROOT (the store, when it lies inside the project and is seen behind the mount).
Nothing is followed, nothing is written, access times are left alone where the kernel lets us.
"""

import errno
import hashlib
import json
import os
import stat
import sys

BLOCK = 1 << 20
ZEROS = bytes(BLOCK)
KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "dir",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "char",
    stat.S_IFBLK: "block",
}


def text(raw):
    return raw.decode("latin1")


def data_extents(fd, size):
    """[offset, end) of each run of data, as SEEK_DATA and SEEK_HOLE tell them."""
    extents = []
    if size and os.lseek(fd, 0, os.SEEK_HOLE) >= size:
        return [[0, size]]
    offset = 0
    while offset < size:
        try:
            start = os.lseek(fd, offset, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                break
            raise
        offset = min(os.lseek(fd, start, os.SEEK_HOLE), size)
        extents.append([start, offset])
    return extents


def content_hash(fd, extents, size):
    """Hash of the bytes that does not depend on where the holes are: blocks of zeros are left out, with their offsets."""
    digest = hashlib.blake2b(digest_size=20)
    done = 0
    for start, end in extents:
        offset = max(start - start % BLOCK, done)
        while offset < end:
            block = os.pread(fd, min(BLOCK, size - offset), offset)
            if not block:
                break
            if block != ZEROS[: len(block)]:
                content = block.rstrip(b"\0")
                digest.update(b"%d %d " % (offset, len(content)))
                digest.update(content)
            offset += BLOCK
        done = offset
    return digest.hexdigest()


def read_file(path, entry):
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(path, flags | os.O_NOATIME)
    except PermissionError:
        # O_NOATIME needs ownership; without it only access times suffer, and those are no part of the comparison.
        try:
            fd = os.open(path, flags)
        except OSError as error:
            entry["unreadable"] = errno.errorcode[error.errno]
            return
    try:
        extents = data_extents(fd, entry["size"])
        entry["extents"] = extents
        entry["hash"] = content_hash(fd, extents, entry["size"])
    finally:
        os.close(fd)


def read_xattrs(path, entry):
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EACCES, errno.EPERM):
            raise
        return
    if not names:
        return
    values = {}
    for name in sorted(names):
        try:
            values[text(os.fsencode(name))] = text(os.getxattr(path, name, follow_symlinks=False))
        except OSError as error:
            values[text(os.fsencode(name))] = "unreadable " + errno.errorcode[error.errno]
    entry["xattrs"] = values


def describe(path, info):
    kind = KINDS[stat.S_IFMT(info.st_mode)]
    entry = {
        "kind": kind,
        "mode": stat.S_IMODE(info.st_mode),
        "uid": info.st_uid,
        "gid": info.st_gid,
        "mtimeNs": str(info.st_mtime_ns),
        "ctimeNs": str(info.st_ctime_ns),
        "ino": str(info.st_ino),
        "dev": info.st_dev,
        "nlink": info.st_nlink,
    }
    if kind == "file":
        entry["size"] = info.st_size
        entry["blocks"] = info.st_blocks
        read_file(path, entry)
    elif kind == "symlink":
        entry["target"] = text(os.readlink(path))
    elif kind in ("char", "block"):
        entry["rdev"] = info.st_rdev
    read_xattrs(path, entry)
    return entry


def walk(root, excluded):
    entries = {".": describe(root, os.lstat(root))}
    top_dev = entries["."]["dev"]
    pending = [(root, b"")]
    while pending:
        directory, prefix = pending.pop()
        try:
            listing = list(os.scandir(directory))
        except PermissionError as error:
            entries[text(prefix.rstrip(b"/")) or "."]["unreadable"] = errno.errorcode[error.errno]
            continue
        for item in listing:
            if not prefix and item.name in excluded:
                continue
            path = directory + b"/" + item.name
            relative = prefix + item.name
            info = os.lstat(path)
            entry = describe(path, info)
            entries[text(relative)] = entry
            # A sub-mount is not part of the tree.
            if entry["kind"] == "dir" and info.st_dev == top_dev:
                pending.append((path, relative + b"/"))
    return entries


def main(argv):
    root = os.fsencode(argv[1])
    excluded = {os.fsencode(argv[i + 1]) for i, word in enumerate(argv) if word == "--exclude"}
    sys.stdout.write(json.dumps(walk(root, excluded), separators=(",", ":")))


if __name__ == "__main__":
    main(sys.argv)
