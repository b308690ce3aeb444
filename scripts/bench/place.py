"""Where the benchmark works: an ext4 image on a tmpfs, with plain folders and projects side by side on it."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Place:
    """Needs root. Everything goes with `close`."""

    def __init__(self, size="14G"):
        self.projects = []
        self.base = tempfile.mkdtemp(prefix="turnfs-bench-")
        run("mount", "-t", "tmpfs", "-o", "size=20g", "turnfs-bench", self.base)
        image = os.path.join(self.base, "image")
        self.top = os.path.join(self.base, "fs")
        os.mkdir(self.top)
        run("truncate", "-s", size, image)
        run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", image)
        run("mount", "-o", "loop,noatime", image, self.top)

    def close(self):
        for project in list(self.projects):
            project.close()
        run("umount", self.top)
        run("umount", self.base)
        os.rmdir(self.base)


class Project:
    """A plain folder and a project with equal content; turnfs verbs for the project."""

    def __init__(self, place, name):
        self.place = place
        self.dir = os.path.join(place.top, name)
        self.plain = os.path.join(self.dir, "plain")
        self.project = os.path.join(self.dir, "project")
        for folder in (self.plain, self.project, self.path("home"), self.path("state"), self.path("run")):
            os.makedirs(folder, mode=0o700)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": self.path("home"),
            "XDG_STATE_HOME": self.path("state"),
            "XDG_RUNTIME_DIR": self.path("run"),
            "LC_ALL": "C.UTF-8",
        }
        if "TURNFS_ENGINE" in os.environ:
            self.environment["TURNFS_ENGINE"] = os.environ["TURNFS_ENGINE"]
        place.projects.append(self)

    def path(self, name):
        return os.path.join(self.dir, name)

    def turnfs(self, *words):
        command = ["node", os.path.join(ROOT, "dist", "cli", "main.js"), *words]
        done = subprocess.run(command, cwd=self.project, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"turnfs {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def mount(self):
        self.turnfs("mount")

    def umount(self):
        self.turnfs("umount")

    def begin(self):
        return json.loads(self.turnfs("turn", "begin", "--json"))["turn"]

    def end(self):
        self.turnfs("turn", "end")

    def remount(self):
        self.umount()
        self.mount()

    def close(self):
        """Unmounts and waits until the daemon has let go of the store, then removes everything."""
        self.place.projects.remove(self)
        pids = json.loads(self.turnfs("status", "--json"))["pids"]
        self.umount()
        if pids.get("daemon"):
            os.kill(pids["daemon"], signal.SIGTERM)
        while any(pid and os.path.exists(f"/proc/{pid}") for pid in pids.values()):
            time.sleep(0.01)
        shutil.rmtree(self.dir)


def run(*command, cwd="/", env=None):
    done = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


def drop_copied_mounts():
    """In a new mount namespace: copies of FUSE mounts would keep those alive when they are unmounted outside."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        mounts = [line.split(" ")[4] for line in table if " - fuse" in line]
    for mountpoint in reversed(mounts):
        subprocess.run(["umount", "-l", "--", mountpoint.replace("\\040", " ")], check=False)


def drop_caches():
    """Forgets names and inodes; pages of the image stay, they are its disk."""
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as control:
        control.write("2")
