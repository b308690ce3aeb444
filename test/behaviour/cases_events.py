"""inotify: watchers inside the folder see what happens in it."""

import ctypes
import os
import select
import struct

from harness import attempt, case, checked, libc, raw, start_child, wait_all, write

NAMES = {
    0x1: "access",
    0x2: "modify",
    0x4: "attrib",
    0x8: "close-write",
    0x10: "close",
    0x20: "open",
    0x40: "moved-from",
    0x80: "moved-to",
    0x100: "create",
    0x200: "delete",
    0x400: "delete-self",
    0x800: "move-self",
    0x2000: "unmount",
    0x8000: "ignored",
}
CHANGES = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
DIRECTORY = 0x40000000


class Watch:
    def __init__(self, *paths, mask=CHANGES):
        self.fd = checked(libc.inotify_init1(os.O_NONBLOCK))
        self.paths = {checked(libc.inotify_add_watch(self.fd, raw(p), ctypes.c_uint32(mask))): p for p in paths}

    def events(self):
        """[watched path, name, what], the same event in a row once."""
        found = []
        while select.select([self.fd], [], [], 0.1)[0]:
            data = os.read(self.fd, 1 << 20)
            at = 0
            while at < len(data):
                watch, mask, _, length = struct.unpack_from("iIII", data, at)
                name = data[at + 16 : at + 16 + length].rstrip(b"\0").decode()
                what = [text for bit, text in NAMES.items() if mask & bit] + (["dir"] if mask & DIRECTORY else [])
                event = [self.paths[watch], name, "+".join(what)]
                if not found or found[-1] != event:
                    found.append(event)
                at += 16 + length
        return found


@case
def events_of_a_folder():
    """Creating, writing, renaming, changing and removing in a watched folder"""
    os.mkdir("d")
    watch = Watch("d")
    write("d/f", "x")
    os.rename("d/f", "d/g")
    os.chmod("d/g", 0o600)
    os.utime("d/g", ns=(1, 1))
    os.link("d/g", "d/h")
    os.truncate("d/g", 0)
    os.mkdir("d/s")
    os.symlink("x", "d/l")
    os.unlink("d/h")
    os.unlink("d/g")
    os.rmdir("d/s")
    os.rename("d/l", "l")
    return watch.events()


@case
def events_of_a_file():
    """Writing, changing, renaming and removing a watched file"""
    write("f", "x")
    watch = Watch("f")
    write("f", "y")
    os.chmod("f", 0o600)
    os.setxattr("f", "user.a", b"1")
    os.rename("f", "g")
    os.unlink("g")
    return watch.events()


@case
def events_from_another_process():
    """A watcher sees what other processes do"""
    os.mkdir("d")
    watch = Watch("d")

    def child():
        write("d/f", "x")
        os.rename("d/f", "d/g")
        os.unlink("d/g")

    return [wait_all([start_child(child)]), watch.events()]


@case
def events_between_folders():
    """A rename between two watched folders shows on both sides"""
    os.mkdir("a")
    os.mkdir("b")
    write("a/f", "")
    write("b/old", "")
    watch = Watch("a", "b")
    os.rename("a/f", "b/old")
    os.rename("b/old", "a/back")
    return watch.events()


@case
def events_of_removed_folder():
    """A watched folder that is removed says so"""
    os.mkdir("d")
    watch = Watch("d")
    os.rmdir("d")
    return watch.events()


@case
def events_of_editor_saves():
    """The ways editors save: in place, by rename, by backup and rename"""
    os.mkdir("d")
    write("d/f", "old")
    watch = Watch("d")
    write("d/f", "in place")
    write("d/.f.tmp", "by rename")
    os.rename("d/.f.tmp", "d/f")
    os.rename("d/f", "d/f~")
    write("d/f", "by backup")
    os.unlink("d/f~")
    return watch.events()


@case
def events_of_reading():
    """Opening, reading and closing are seen"""
    write("f", "content")
    watch = Watch("f", mask=0x1 | 0x10 | 0x20)
    with open("f", encoding="ascii") as file:
        file.read()
    return watch.events()


@case
def events_watch_errnos():
    """Watches on what isn't there"""
    fd = checked(libc.inotify_init1(0))
    return attempt(lambda: checked(libc.inotify_add_watch(fd, b"missing", 0x100)))
