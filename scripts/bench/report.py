"""Puts the numbers into words: on the terminal, and into docs/performance.md between its marks."""

import os
import platform
import re
import subprocess
import time

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def cpu_model():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:
        found = re.search(r"model name\s*:\s*(.+)", info.read())
    return found.group(1).strip() if found else platform.machine()


def describe(root):
    with open(os.path.join(root, "package.json"), encoding="utf-8") as file:
        version = re.search(r'"version": "([^"]+)"', file.read()).group(1)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True, check=False).stdout.strip()
    kernel = ".".join(platform.release().split("-")[0].split(".")[:2])
    return (
        f"turnfs {version} ({commit}), {time.strftime('%Y-%m-%d', time.gmtime())}. Linux {kernel}, {os.cpu_count()} cores ({cpu_model()}); "
        "backing: a fresh ext4 image on a loop device over tmpfs; I/O mode cached."
    )


def render(root, rows, capture, begin):
    lines = [describe(root), "", "| operation | folder, ms | mount, ms | mount / folder | spread of the ratio | rounds |", "|---|---|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row.name} | {row.plain_ms:.0f} | {row.mount_ms:.0f} | {row.ratio:.1f} | {row.spread} | {row.rounds} |")
    lines += [
        "",
        f"| overwriting {capture.files:,} files in one turn | |",
        "|---|---|",
        f"| whole turn, without turnfs → with it | {capture.plain_ms:.0f} → {capture.mount_ms:.0f} ms ({capture.ratio:.2f} ×; {capture.per_file_us:.0f} µs a file) |",
        f"| mount / folder for the first 100 files, for the last 100 | {capture.first:.2f}, {capture.last:.2f} ({capture.growth:.2f} ×) |",
        "",
        "| `turnfs turn begin`, ms (the whole command) | median | spread |",
        "|---|---|---|",
        f"| in a tree of 100 files | {begin.small_ms:.0f} | {begin.small_spread} |",
        f"| in a tree of 100,000 files | {begin.large_ms:.0f} | {begin.large_spread} |",
    ]
    return "\n".join(lines)


def write_into(path, text):
    with open(path, encoding="utf-8") as file:
        page = file.read()
    head, rest = page.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{head}{BEGIN}\n{text}\n{END}{tail}")
