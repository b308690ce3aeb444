"""FIFOs, sockets, device nodes."""

import os
import socket
import stat

from harness import as_stranger, attempt, attempt_open, case, in_child, look, start_child, wait_all, write


@case
def special_fifo_carries_bytes():
    """Two processes talk through a FIFO"""
    os.mkfifo("p", 0o600)

    def talk():
        fd = os.open("p", os.O_WRONLY)
        os.write(fd, b"through the pipe")

    child = start_child(talk)
    fd = os.open("p", os.O_RDONLY)
    heard = b""
    while data := os.read(fd, 100):
        heard += data
    return [heard.decode(), wait_all([child]), look("p")]


@case
def special_fifo_errnos():
    """FIFOs without the other end, and what they don't do"""
    os.mkfifo("p")
    fd = os.open("p", os.O_RDWR)
    return [
        attempt(os.mkfifo, "p"),
        attempt(os.lseek, fd, 0, os.SEEK_SET),
        attempt(os.ftruncate, fd, 0),
        attempt(os.truncate, "p", 0),
        attempt(os.pwrite, fd, b"x", 0),
        attempt(os.posix_fallocate, fd, 0, 10),
        attempt(os.close, fd),
        attempt_open("p", os.O_WRONLY | os.O_NONBLOCK),
        attempt_open("p", os.O_RDONLY | os.O_NONBLOCK),
    ]


@case
def special_fifo_renamed_and_removed_while_open():
    """A FIFO goes on working when its name moves or goes"""
    os.mkfifo("p")
    fd = os.open("p", os.O_RDWR)
    os.rename("p", "q")
    os.write(fd, b"a")
    os.unlink("q")
    os.write(fd, b"b")
    return [os.read(fd, 10).decode(), os.listdir("."), os.fstat(fd).st_nlink]


@case
def special_socket_carries_bytes():
    """Two processes talk through a socket in the folder"""
    server = socket.socket(socket.AF_UNIX)
    server.bind("s")
    server.listen()

    def talk():
        client = socket.socket(socket.AF_UNIX)
        client.connect("s")
        client.sendall(b"hello")
        return client.recv(10).decode()

    reader, writer = os.pipe()

    def child():
        os.write(writer, talk().encode())

    pid = start_child(child)
    connection, _ = server.accept()
    heard = connection.recv(10).decode()
    connection.sendall(b"world")
    status = wait_all([pid])
    return [heard, os.read(reader, 10).decode(), status, look("s")]


@case
def special_socket_errnos():
    """Sockets nobody listens on, bound twice, opened as files"""
    server = socket.socket(socket.AF_UNIX)
    server.bind("s")
    second = socket.socket(socket.AF_UNIX)
    client = socket.socket(socket.AF_UNIX)
    results = [attempt(second.bind, "s"), attempt(client.connect, "s"), attempt_open("s", os.O_RDONLY)]
    server.listen()
    results.append(attempt(client.connect, "s"))
    os.rename("s", "t")
    results += [attempt(socket.socket(socket.AF_UNIX).connect, "t"), attempt(socket.socket(socket.AF_UNIX).connect, "s")]
    os.unlink("t")
    write("file", "")
    return results + [attempt(socket.socket(socket.AF_UNIX).connect, n) for n in ("t", "file", ".")]


@case
def special_socket_mode_counts():
    """The umask and chmod close a socket to nobody but others"""
    os.umask(0o077)
    server = socket.socket(socket.AF_UNIX)
    server.bind("s")
    server.listen()
    closed = look("s")
    os.chmod("s", 0o666)
    return [closed, look("s"), attempt(socket.socket(socket.AF_UNIX).connect, "s")]


@case(needs="root")
def special_devices():
    """Device nodes are made, carry their numbers, and work"""
    os.mknod("null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod("zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    os.mknod("big", stat.S_IFBLK | 0o600, os.makedev(259, 70000))
    fd = os.open("zero", os.O_RDWR)
    return [look("null"), look("zero"), look("big"), os.read(fd, 4) == bytes(4), os.write(fd, b"x"), attempt_open("null", os.O_WRONLY)]


@case(needs="root")
def special_devices_by_others():
    """Ordinary users can't make device nodes, and modes close them"""
    os.chmod(".", 0o777)
    os.mknod("closed", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    return as_stranger(
        lambda: [
            attempt(os.mknod, "n", stat.S_IFCHR | 0o666, os.makedev(1, 3)),
            attempt(os.mknod, "b", stat.S_IFBLK | 0o666, os.makedev(8, 0)),
            attempt(os.mknod, "p", stat.S_IFIFO | 0o666),
            attempt(os.mknod, "f", stat.S_IFREG | 0o666),
            attempt(os.mknod, "s", stat.S_IFSOCK | 0o666),
            attempt_open("closed", os.O_RDONLY),
            sorted(os.listdir(".")),
        ]
    )


@case(needs="user")
def special_nodes_of_ordinary_users():
    """mknod by an ordinary user: FIFOs, sockets and files, no devices"""
    kinds = {"p": stat.S_IFIFO, "f": stat.S_IFREG, "s": stat.S_IFSOCK, "c": stat.S_IFCHR, "b": stat.S_IFBLK}
    return [[name, attempt(os.mknod, name, kind | 0o666, os.makedev(1, 3)), look(name)] for name, kind in kinds.items()]


@case
def special_mknod_errnos():
    """mknod of existing names and of impossible kinds"""
    write("f", "")
    return [
        attempt(os.mknod, "f", stat.S_IFREG | 0o600),
        attempt(os.mknod, "missing/f", stat.S_IFREG | 0o600),
        attempt(os.mknod, "f/x", stat.S_IFIFO | 0o600),
        attempt(os.mknod, "d", stat.S_IFDIR | 0o700),
        attempt(os.mknod, "plain", 0o600),
        look("plain"),
        attempt(os.mknod, "n" * 256, stat.S_IFREG | 0o600),
    ]


@case
def special_fifo_between_users_of_one_descriptor():
    """A child writes to a FIFO that the parent opened"""
    os.mkfifo("p")
    fd = os.open("p", os.O_RDWR)
    return [in_child(lambda: os.write(fd, b"abc")), os.read(fd, 10).decode()]
