"""Aborts FUSE connections when a test takes too long, so that a deadlock fails a test and never hangs the run.

usage: watchdog.py BASE, one per test file. Commands on standard input, one a line:
    arm ID SECONDS DIR     after SECONDS every FUSE mount below DIR is aborted
    disarm ID
When standard input ends, the test file's process has ended: what it left below BASE is then cleared away.

It is a process of its own, because the one that runs the test may itself sleep in a system call on the mount, and it never
touches a path inside a mount: numbers of connections come from /proc/self/mountinfo.
"""

import os
import re
import select
import signal
import subprocess
import sys
import time

CONNECTIONS = "/sys/fs/fuse/connections"


def unescape(word):
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m.group(1), 8)), word)


def mounts_below(directory):
    """(mountpoint, type, minor) of each mount below directory, newest first."""
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        for line in table:
            left, right = line.rstrip("\n").split(" - ")
            fields = left.split(" ")
            mountpoint = unescape(fields[4])
            if mountpoint == directory or mountpoint.startswith(directory + "/"):
                found.append((mountpoint, right.split(" ")[0], int(fields[2].split(":")[1])))
    return found[::-1]


def say(message):
    try:
        print(message, flush=True)
    except BrokenPipeError:
        # The test file's process has gone; there is still work to do.
        pass


def abort_fuse(directory):
    for mountpoint, kind, minor in mounts_below(directory):
        if not kind.startswith("fuse"):
            continue
        if not os.path.exists(CONNECTIONS) or not os.listdir(CONNECTIONS):
            subprocess.run(["mount", "-t", "fusectl", "fusectl", CONNECTIONS], check=False, stderr=subprocess.DEVNULL)
        try:
            with open(f"{CONNECTIONS}/{minor}/abort", "w", encoding="ascii") as control:
                control.write("1")
            say(f"aborted {mountpoint}")
        except OSError as error:
            say(f"could not abort {mountpoint}: {error}")


def processes_of(base):
    """Everything that was started with TURNFS_TEST_BASE=base in its environment."""
    wanted = f"TURNFS_TEST_BASE={base}".encode()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as environ:
                if wanted in environ.read().split(b"\0"):
                    yield int(name)
        except OSError:
            continue


def clear(base):
    abort_fuse(base)
    for _ in range(3):
        for pid in list(processes_of(base)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.1)
    for mountpoint, _, _ in mounts_below(base):
        subprocess.run(["umount", "-l", "--", mountpoint], check=False, stderr=subprocess.DEVNULL)
    try:
        os.rmdir(base)
    except OSError:
        pass


def main(base):
    armed = {}
    pending = b""
    while True:
        now = time.monotonic()
        for name in [n for n, (deadline, _) in armed.items() if deadline <= now]:
            abort_fuse(armed.pop(name)[1])
        wait = min((deadline for deadline, _ in armed.values()), default=now + 3600) - now
        if not select.select([0], [], [], max(wait, 0))[0]:
            continue
        data = os.read(0, 65536)
        if not data:
            break
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            words = line.decode().split(" ", 3)
            if words[0] == "arm":
                armed[words[1]] = (now + float(words[2]), words[3])
            elif words[0] == "disarm":
                armed.pop(words[1], None)
    clear(base)


signal.signal(signal.SIGINT, signal.SIG_IGN)
main(sys.argv[1])
