"""Runs the behaviour cases in a folder and prints one JSON line per case.

usage: run_cases.py --list              names, who they need, and their sentence
       run_cases.py FOLDER [NAME]...    {"case": NAME, "result": …, "ms": …}; a raised exception or a time-out is a result too

The folder is made afresh for every case, and removed after it.
"""

import glob
import importlib
import inspect
import json
import os
import select
import shutil
import signal
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import harness  # noqa: E402


def load_cases():
    here = os.path.dirname(os.path.abspath(__file__))
    for path in sorted(glob.glob(os.path.join(here, "cases_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    return harness.CASES


def run_in_child(function, folder, writer):
    os.setpgid(0, 0)
    os.umask(0o022)
    os.mkdir(folder, 0o755)
    os.chdir(folder)
    try:
        result = function()
    except BaseException as error:  # whatever it is, it is what this folder did with the case
        here = [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
        result = {"raised": repr(error).replace(folder, "."), "at": here}
    with os.fdopen(writer, "w") as pipe:
        json.dump(result, pipe)


def run_case(name, function, top):
    folder = os.path.join(top, name)
    reader, writer = os.pipe()
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        try:
            run_in_child(function, folder, writer)
        finally:
            os._exit(0)
    os.close(writer)
    answer = b""
    deadline = started + function.seconds
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            answer = json.dumps(f"no answer after {function.seconds} s").encode()
            break
        data = os.read(reader, 1 << 20)
        if not data:
            break
        answer += data
    os.close(reader)
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    _, status = os.waitpid(pid, 0)
    if not answer:
        answer = json.dumps(f"died with wait status {status}").encode()
    # What a case leaves must be removable: that is part of the behaviour.
    leftover = remove_tree(folder)
    result = json.loads(answer)
    if leftover:
        result = {"result": result, "removing the folder": leftover}
    return {"case": name, "result": result, "ms": round((time.monotonic() - started) * 1000)}


def remove_tree(folder):
    troubles = []

    def on_error(function, path, info):
        if isinstance(info[1], PermissionError):
            # An ordinary user's own closed folder: open it and try again.
            try:
                os.chmod(os.path.dirname(path), 0o700)
                os.chmod(path, 0o700)
                function(path) if function is not os.scandir else shutil.rmtree(path)
                return
            except OSError as error:
                troubles.append(repr(error).replace(folder, "."))
                return
        troubles.append(repr(info[1]).replace(folder, "."))

    if os.path.lexists(folder):
        shutil.rmtree(folder, onerror=on_error)
    return troubles


def main(argv):
    cases = load_cases()
    if argv == ["--list"]:
        listing = [{"name": n, "needs": f.needs, "says": inspect.getdoc(f) or ""} for n, f in cases.items()]
        print(json.dumps(listing))
        return
    top = os.path.abspath(argv[0])
    who = "root" if os.getuid() == 0 else "user"
    for name, function in cases.items():
        if argv[1:] and name not in argv[1:]:
            continue
        if function.needs in ("anybody", who):
            print(json.dumps(run_case(name, function, top)), flush=True)


main(sys.argv[1:])
