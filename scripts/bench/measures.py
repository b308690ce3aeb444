"""What is measured. Each measure takes a place and the number of rounds and gives rows for the report.

Plain folder and mount take turns in every round, so that what else the machine does hits both. On the mount every round is a
turn of its own: what is changed or removed existed before the turn, so that it is captured.
"""

import mmap
import os
import shutil
import statistics
import subprocess
import time

from place import Project, drop_caches, run
from tree import make_empty_files, make_flat_files, make_source_tree, walk

GIB = 1 << 30


class Row:
    def __init__(self, name, plain, mount):
        self.name = name
        self.plain_ms = statistics.median(plain)
        self.mount_ms = statistics.median(mount)
        self.ratio = self.mount_ms / self.plain_ms
        ratios = sorted(m / p for m, p in zip(mount, plain))
        self.spread = f"{ratios[0]:.1f}–{ratios[-1]:.1f}"
        self.rounds = len(plain)


def timed(action):
    """Milliseconds."""
    begin = time.perf_counter_ns()
    action()
    return (time.perf_counter_ns() - begin) / 1e6


def compare(project, rounds, action, prepare=None, clean=None):
    """Times of action(folder) on the plain folder and on the mount, in turn. prepare and clean are not timed; prepare is
    outside of the turn."""
    plain, mount = [], []
    for _ in range(rounds):
        for folder, times in ((project.plain, plain), (project.project, mount)):
            if prepare:
                prepare(folder)
            if folder == project.project:
                project.begin()
            os.sync()
            times.append(timed(lambda: action(folder)))
            if clean:
                clean(folder)
            if folder == project.project:
                project.end()
    return plain, mount


def quietly(*command):
    return lambda folder: subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL)


def measure_reading(place, rounds):
    """Walks, git status and ripgrep over 4,686 files."""
    project = Project(place, "reading")
    for folder in (project.plain, project.project):
        make_source_tree(folder)
        for words in (("init", "-q"), ("add", "."), ("-c", "user.name=b", "-c", "user.email=b@b", "commit", "-qm", "all")):
            run("git", *words, cwd=folder)
    project.mount()

    def forget(folder):
        if folder == project.project:
            project.remount()
        drop_caches()

    cold = Row("walk of 4,686 files, fresh mount", *compare(project, rounds, walk, prepare=forget))
    first = Row("git status, fresh mount", *compare(project, rounds, quietly("git", "status", "--porcelain"), prepare=forget))
    warm = Row("walk, warm", *compare(project, rounds, walk, prepare=walk))
    status = Row("git status, warm", *compare(project, rounds, quietly("git", "status", "--porcelain"), prepare=quietly("git", "status")))
    search = quietly("rg", "-c", "--no-ignore", "qqqqqq")
    grep = Row("ripgrep, warm", *compare(project, rounds, search, prepare=search))
    project.close()
    return [cold, warm, first, status, grep]


def measure_many_files(place, rounds):
    """Creating and unlinking 5,000 files, tar x, rm -rf."""
    project = Project(place, "many")
    archive = os.path.join(place.base, "tree.tar")
    source = project.path("source")
    make_source_tree(source)
    run("tar", "cf", archive, "-C", source, ".")
    shutil.rmtree(source)
    project.mount()

    def sub(name, action):
        return lambda folder: action(os.path.join(folder, name))

    def unlink_all(folder):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))

    def extract(folder):
        os.mkdir(folder)
        run("tar", "xf", archive, "-C", folder)

    def remove(folder):
        run("rm", "-rf", folder)

    flat = sub("flat", lambda folder: make_flat_files(folder, 5_000))
    rows = [
        Row("create 5,000 × 4 KiB", *compare(project, rounds, flat, clean=sub("flat", remove))),
        Row("unlink 5,000", *compare(project, rounds, sub("flat", unlink_all), prepare=flat, clean=sub("flat", remove))),
        Row("tar x (4,686 files, 121 MB)", *compare(project, rounds, sub("tree", extract), clean=sub("tree", remove))),
        Row("rm -rf of it", *compare(project, rounds, sub("tree", remove), prepare=sub("tree", extract))),
    ]
    project.close()
    os.unlink(archive)
    return rows


def measure_large_file(place, rounds):
    """1 GiB written with fdatasync, and read from the cache."""
    project = Project(place, "large")
    project.mount()
    block = mmap.mmap(-1, 1 << 20)
    block.write(os.urandom(1 << 20))

    def write_file(folder):
        fd = os.open(os.path.join(folder, "big"), os.O_CREAT | os.O_WRONLY, 0o644)
        for _ in range(GIB // len(block)):
            os.write(fd, block)
        os.fdatasync(fd)
        os.close(fd)

    def read_file(folder):
        with open(os.path.join(folder, "big"), "rb", buffering=0) as file:
            while file.readinto(block):
                pass

    def remove(folder):
        os.unlink(os.path.join(folder, "big"))

    writing = Row("write 1 GiB + fdatasync", *compare(project, rounds, write_file, clean=remove))
    for folder in (project.plain, project.project):
        write_file(folder)
    reading = Row("read 1 GiB, cached", *compare(project, rounds, read_file, prepare=read_file))
    project.close()
    return [writing, reading]


class CaptureCost:
    """Overwriting 4,686 files in one turn: does the cost of a capture grow, and what does the whole turn cost?"""

    def __init__(self, place, rounds):
        first, last, plain, mount = [], [], [], []
        for _ in range(rounds):
            project = Project(place, "capture")
            for folder in (project.plain, project.project):
                make_source_tree(folder)
            paths = sorted(os.path.relpath(os.path.join(d, f), project.plain) for d, _, fs in os.walk(project.plain) for f in fs)
            # Sizes must not decide which hundred is dearer.
            paths.sort(key=lambda path: hash_of(path))
            project.mount()
            walk(project.project)
            project.begin()
            times = [timed(lambda path=path: overwrite(os.path.join(project.project, path))) for path in paths]
            mount.append(sum(times))
            project.end()
            base = [timed(lambda path=path: overwrite(os.path.join(project.plain, path))) for path in paths]
            plain.append(sum(base))
            # The same hundred files without turnfs, so that their sizes cancel out.
            first.append(statistics.median(times[:100]) / statistics.median(base[:100]))
            last.append(statistics.median(times[-100:]) / statistics.median(base[-100:]))
            self.per_file_us = 1e3 * sum(times) / len(times)
            project.close()
        self.files = len(paths)
        self.first = statistics.median(first)
        self.last = statistics.median(last)
        self.growth = statistics.median(b / a for a, b in zip(first, last))
        self.plain_ms = statistics.median(plain)
        self.mount_ms = statistics.median(mount)
        self.ratio = self.mount_ms / self.plain_ms


def hash_of(path):
    value = 0
    for byte in path.encode():
        value = (value * 131 + byte) % 1_000_003
    return value


def overwrite(path):
    """As an editor tool does: the whole file anew."""
    size = os.stat(path).st_size
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC)
    os.write(fd, b"y" * size)
    os.close(fd)


class TurnBegin:
    """`turn begin` in a tree of 100 and of 100,000 files, all of them known to the mount."""

    def __init__(self, place, rounds):
        small, large = Project(place, "small"), Project(place, "large-tree")
        make_empty_files(small.project, 100)
        make_empty_files(large.project, 100_000)
        times = {small: [], large: []}
        for project in times:
            project.mount()
            walk(project.project)
        for _ in range(rounds):
            for project, found in times.items():
                found.append(timed(project.begin))
                project.end()
        self.small_ms = statistics.median(times[small])
        self.large_ms = statistics.median(times[large])
        self.small_spread = f"{min(times[small]):.0f}–{max(times[small]):.0f}"
        self.large_spread = f"{min(times[large]):.0f}–{max(times[large]):.0f}"
        for project in times:
            project.close()
