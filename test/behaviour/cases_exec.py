"""Running programs that lie in the folder."""

import os
import shutil
import struct
import subprocess
import time

from harness import as_stranger, attempt, attempt_open, case, run_tool, write


def program(name, source="/usr/bin/true"):
    shutil.copyfile(source, name)
    os.chmod(name, 0o755)


def run(*command):
    """Exit status, or the errno name of execve."""
    return attempt(lambda: subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode)


@case
def exec_binary_and_script():
    """A copied program and a script with an interpreter run"""
    program("true")
    program("false", "/usr/bin/false")
    write("script", "#!/bin/sh\nexit 7\n", 0o755)
    write("through", f"#!{os.getcwd()}/true\n", 0o755)
    return [run("./true"), run("./false"), run("./script"), run("./through")]


@case
def exec_right_after_writing():
    """A program that has just been written, by cat or cp, runs (a compiler's a.out does)"""
    results = []
    for number in range(20):
        write(f"p{number}", f"#!/bin/sh\nexit {number}\n", 0o755)
        results.append(run(f"./p{number}"))
    program("binary")
    return results + [run("./binary")]


@case
def exec_errnos():
    """What can't be executed"""
    write("plain", "#!/bin/sh\n", 0o644)
    write("bad", "\x7fELFnot really", 0o755)
    write("lost", "#!/missing/interpreter\n", 0o755)
    os.mkdir("d")
    os.symlink("missing", "dangling")
    return [run(f"./{n}") for n in ("plain", "bad", "lost", "d", "dangling", "missing", "plain/x")]


@case
def exec_text_busy():
    """A running program can't be opened for writing; a file open for writing can't be run"""
    program("sleep", "/usr/bin/sleep")
    child = subprocess.Popen(["./sleep", "30"])
    for _ in range(500):
        if os.path.realpath(f"/proc/{child.pid}/exe").endswith("/exec_text_busy/sleep"):
            break
        time.sleep(0.01)
    busy = [attempt_open("sleep", os.O_WRONLY), attempt(os.truncate, "sleep", 0), attempt(os.rename, "sleep", "sleep2"), attempt(os.unlink, "sleep2")]
    child.kill()
    child.wait()
    program("true")
    fd = os.open("true", os.O_WRONLY)
    held = run("./true")
    os.close(fd)
    return busy + [held, run("./true")]


@case
def exec_replaced_while_running():
    """A running program whose file is replaced goes on with the old one"""
    program("p", "/usr/bin/sleep")
    child = subprocess.Popen(["./p", "0.3"])
    program("new")
    os.rename("new", "p")
    return [child.wait(), run("./p")]


@case(needs="root")
def exec_needs_an_execute_bit():
    """root needs one execute bit, others theirs"""
    program("p")
    results = []
    for mode in (0o644, 0o744, 0o654, 0o655, 0o000, 0o001):
        os.chmod("p", mode)
        results.append([oct(mode), run("./p"), as_stranger(lambda: run("./p"))])
    return results


@case(needs="root")
def exec_set_user_id():
    """A set-uid program runs as its owner"""
    program("id", "/usr/bin/id")
    os.chown("id", 1234, 2345)
    os.chmod("id", 0o6755)
    plain = as_stranger(lambda: subprocess.run(["./id"], capture_output=True, check=False).stdout.decode().split())
    os.chmod("id", 0o755)
    dropped = as_stranger(lambda: subprocess.run(["./id"], capture_output=True, check=False).stdout.decode().split())
    return [[w.split("(")[0] for w in plain], [w.split("(")[0] for w in dropped]]


@case(needs="root")
def exec_file_capabilities():
    """A program with file capabilities gets them; writing to it takes them away"""
    program("p", "/usr/bin/cat")
    # VFS_CAP_REVISION_2 with the effective bit: CAP_DAC_READ_SEARCH, so that it may read everything.
    os.setxattr("p", "security.capability", struct.pack("<IIIII", 0x02000001, 1 << 2, 0, 0, 0))
    write("secret", "told", 0o600)
    os.chmod("secret", 0o600)

    def tell():
        return subprocess.run(["./p", "secret"], capture_output=True, check=False).stdout.decode()

    first = as_stranger(tell)
    fd = os.open("p", os.O_WRONLY)
    os.pwrite(fd, b"\x7f", 0)
    os.close(fd)
    return [first, attempt(os.getxattr, "p", "security.capability"), as_stranger(tell)]


@case
def exec_from_descriptor_and_unlinked():
    """fexecve, and a program whose name has gone"""
    program("p")
    fd = os.open("p", os.O_RDONLY)
    os.set_inheritable(fd, True)
    os.unlink("p")
    pid = os.fork()
    if pid == 0:
        try:
            os.execve(fd, ["p"], os.environ)
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@case
def exec_interpreters():
    """Scripts for bash, python and awk, modules and sourced files lying in the folder"""
    write("lib.sh", "value=sourced\n")
    write("module.py", "value = 'imported'\n")
    write("main.py", "import module\nprint(module.value)\n")
    write("prog.awk", "END { print NR }\n")
    write("input", "a\nb\n")
    return [
        run_tool("bash", "-c", ". ./lib.sh; echo $value"),
        run_tool("/usr/bin/python3", "-B", "main.py"),
        run_tool("/usr/bin/python3", "main.py"),
        run_tool("awk", "-f", "prog.awk", "input"),
        os.path.isdir("__pycache__"),
    ]
