"""Makes the trees that are measured: the same bytes every time."""

import os
import random


def make_source_tree(top, files=4_686, total_bytes=121_000_000):
    """A project of text files in folders three deep, of sizes as source trees have them: many small, few large."""
    source = random.Random(20)
    words = [bytes(source.choices(b"abcdefghijklmnopqrstuvwxyz", k=source.randint(2, 10))) for _ in range(4_000)]
    sizes = [min(source.lognormvariate(8.2, 1.6), 2_000_000) for _ in range(files)]
    scale = total_bytes / sum(sizes)
    for number, size in enumerate(sizes):
        folder = os.path.join(top, f"part{number % 12}", f"module{number // 12 % 20}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"file{number}.txt"), "wb") as file:
            file.write(text(source, words, int(size * scale)))


def text(source, words, size):
    lines = []
    done = 0
    while done < size:
        line = b" ".join(source.choices(words, k=9)) + b"\n"
        lines.append(line)
        done += len(line)
        # A repeated block of lines is as good, and much faster to make.
        if len(lines) == 400:
            lines *= -(-size // done)
            break
    return b"".join(lines)[:size]


def make_flat_files(top, count, size=4_096):
    os.makedirs(top, exist_ok=True)
    content = bytes(size)
    for number in range(count):
        fd = os.open(os.path.join(top, f"f{number}"), os.O_CREAT | os.O_WRONLY, 0o644)
        os.write(fd, content)
        os.close(fd)


def make_empty_files(top, count):
    """Folders of 1,000 empty files."""
    for number in range(count):
        folder = os.path.join(top, f"d{number // 1000}")
        if number % 1000 == 0:
            os.makedirs(folder)
        os.close(os.open(os.path.join(folder, f"f{number}"), os.O_CREAT | os.O_WRONLY, 0o644))


def walk(top):
    """lstat of everything; the number of names."""
    count = 0
    pending = [top]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                info = os.lstat(entry.path)
                count += 1
                if (info.st_mode & 0o170000) == 0o040000:
                    pending.append(entry.path)
    return count
