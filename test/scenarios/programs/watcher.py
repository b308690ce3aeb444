"""Watches the folders given as arguments with inotify and prints one JSON line an event: {"folder", "name", "what"}.

`ready` is the first line: from there on nothing is missed.
"""

import ctypes
import json
import os
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
EVENTS = {
    0x002: "modify",
    0x004: "attrib",
    0x008: "close_write",
    0x040: "moved_from",
    0x080: "moved_to",
    0x100: "create",
    0x200: "delete",
    0x400: "delete_self",
    0x800: "move_self",
}


def main():
    fd = LIBC.inotify_init1(0)
    folders = {}
    for path in sys.argv[1:]:
        watch = LIBC.inotify_add_watch(fd, path.encode(), sum(EVENTS))
        if watch < 0:
            raise OSError(ctypes.get_errno(), path)
        folders[watch] = path
    print("ready", flush=True)
    while True:
        buffer = os.read(fd, 1 << 16)
        at = 0
        while at < len(buffer):
            watch, mask, _, length = struct.unpack_from("iIII", buffer, at)
            name = buffer[at + 16 : at + 16 + length].rstrip(b"\0").decode("latin1")
            at += 16 + length
            for bit, what in EVENTS.items():
                if mask & bit:
                    print(json.dumps({"folder": folders.get(watch, ""), "name": name, "what": what}), flush=True)


main()
