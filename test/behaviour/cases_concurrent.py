"""Several processes at once: what must come out whatever the order."""

import errno
import os

from harness import RENAME_EXCHANGE, attempt, case, read, renameat2, start_child, wait_all, write


@case
def concurrent_appends():
    """Four processes append 500 lines each; none is lost or torn"""

    def writer(name):
        fd = os.open("log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        for number in range(500):
            os.write(fd, f"{name} {number:04} {'x' * (number % 50)}\n".encode())

    statuses = wait_all([start_child(lambda name=name: writer(name)) for name in "abcd"])
    lines = read("log").splitlines()
    order = [[line for line in lines if line[0] == name] for name in "abcd"]
    whole = all(line == f"{line[0]} {int(line[2:6]):04} {'x' * (int(line[2:6]) % 50)}" for line in lines)
    return [statuses, len(lines), whole, [o == sorted(o) for o in order]]


@case
def concurrent_exclusive_create():
    """Of four processes that create each of 200 names with O_EXCL, one wins each"""

    def player(name):
        won = []
        for number in range(200):
            try:
                os.close(os.open(f"n{number}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                won.append(str(number))
            except FileExistsError:
                pass
        write(f"won-{name}", "\n".join(won))

    statuses = wait_all([start_child(lambda name=name: player(name)) for name in "abcd"])
    won = [int(n) for name in "abcd" for n in read(f"won-{name}").split()]
    return [statuses, len(won), sorted(won) == list(range(200))]


@case
def concurrent_mkdir_and_makedirs():
    """Several processes make the same folders, as mkdir -p does"""

    def player():
        for number in range(100):
            os.makedirs(f"d/{number % 10}/{number}", exist_ok=True)

    return [wait_all([start_child(player) for _ in range(4)]), len(os.listdir("d")), sum(len(os.listdir(f"d/{n}")) for n in os.listdir("d"))]


@case
def concurrent_changes_in_one_folder():
    """Creating, renaming and removing in one folder by four processes leaves exactly what each one left"""

    def player(name):
        for number in range(200):
            write(f"{name}{number}", name)
            os.rename(f"{name}{number}", f"{name}-{number}")
            if number % 2:
                os.unlink(f"{name}-{number}")

    statuses = wait_all([start_child(lambda name=name: player(name)) for name in "abcd"])
    expected = sorted(f"{name}-{number}" for name in "abcd" for number in range(0, 200, 2))
    return [statuses, sorted(os.listdir(".")) == expected, all(read(n) == n[0] for n in os.listdir("."))]


@case
def concurrent_fight_over_one_name():
    """Three processes create, replace and remove one name: only expected errnos come up"""
    allowed = {errno.ENOENT, errno.EEXIST}

    def player(name):
        for number in range(300):
            try:
                if name == "a":
                    os.close(os.open("prize", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                elif name == "b":
                    write("mine", "b")
                    os.rename("mine", "prize")
                else:
                    os.unlink("prize")
            except OSError as error:
                if error.errno not in allowed:
                    raise

    statuses = wait_all([start_child(lambda name=name: player(name)) for name in "abc"])
    return [statuses, set(os.listdir(".")) <= {"prize", "mine"}]


@case
def concurrent_folder_moves():
    """Renames of folders across each other by two processes end in a tree"""
    for name in "abcd":
        os.makedirs(f"{name}/sub")
    allowed = {errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.EINVAL}

    def player(first, second):
        for number in range(300):
            try:
                os.rename(f"{first}/sub", f"{second}/sub")
                os.rename(f"{second}/sub", f"{first}/sub")
            except OSError as error:
                if error.errno not in allowed:
                    raise

    statuses = wait_all([start_child(lambda: player("a", "b")), start_child(lambda: player("b", "a")), start_child(lambda: player("c", "d"))])
    subs = sum(os.path.isdir(f"{name}/sub") for name in "abcd")
    return [statuses, 2 <= subs <= 4, sorted(os.listdir("."))]


@case
def concurrent_writes_to_own_ranges():
    """Four processes write interleaved blocks of one file"""
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY))

    def player(name):
        fd = os.open("f", os.O_WRONLY)
        for number in range(200):
            os.pwrite(fd, "abcd"[name].encode() * 700, (number * 4 + name) * 700)

    statuses = wait_all([start_child(lambda name=name: player(name)) for name in range(4)])
    return [statuses, read("f") == "".join(letter * 700 for _ in range(200) for letter in "abcd")]


@case
def concurrent_readers_see_whole_files():
    """Readers of a file that is replaced by rename never see a half-written one"""
    write("f", "0" * 5000)

    def writer():
        for number in range(200):
            write("new", str(number % 10) * 5000)
            os.rename("new", "f")

    def reader():
        for _ in range(400):
            content = read("f")
            if len(content) != 5000 or content != content[0] * 5000:
                raise ValueError("a mixed file")

    return wait_all([start_child(writer), start_child(reader), start_child(reader)])


@case
def concurrent_exchange():
    """While one process exchanges two files, another always finds both"""
    write("a", "A")
    write("b", "B")

    def swapper():
        for _ in range(500):
            renameat2("a", "b", RENAME_EXCHANGE)

    def reader():
        for _ in range(500):
            if read("a") not in "AB" or read("b") not in "AB":
                raise ValueError("neither")

    return [wait_all([start_child(swapper), start_child(reader)]), read("a") + read("b")]


@case
def concurrent_listing():
    """Listing a folder while others change it shows the lasting names every time"""
    for number in range(300):
        write(f"stay{number}", "")

    def changer():
        for number in range(500):
            write(f"t{number % 20}", "")
            attempt(os.unlink, f"t{number % 20}")

    def lister():
        for _ in range(30):
            names = [n for n in os.listdir(".") if n.startswith("stay")]
            if len(names) != 300 or len(set(names)) != 300:
                raise ValueError(len(names))

    return wait_all([start_child(changer), start_child(lister), start_child(lister)])


@case
def concurrent_rm_and_create():
    """rm -rf against a process that goes on creating in the tree"""
    os.mkdir("t")
    allowed = {errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST}

    def maker():
        for number in range(300):
            try:
                os.makedirs(f"t/{number % 7}", exist_ok=True)
                write(f"t/{number % 7}/{number}", "x")
            except OSError as error:
                if error.errno not in allowed:
                    raise

    def remover():
        for _ in range(40):
            for folder, folders, files in os.walk("t", topdown=False):
                for name in files:
                    attempt(os.unlink, f"{folder}/{name}")
                for name in folders:
                    attempt(os.rmdir, f"{folder}/{name}")

    return [wait_all([start_child(maker), start_child(remover)]), os.path.isdir("t")]


@case
def concurrent_links():
    """Processes that link and unlink one file leave the right count"""
    write("f", "x")

    def player(name):
        for number in range(200):
            os.link("f", f"{name}{number}")
            if number % 4:
                os.unlink(f"{name}{number}")

    statuses = wait_all([start_child(lambda name=name: player(name)) for name in "abc"])
    return [statuses, os.stat("f").st_nlink, len(os.listdir("."))]
