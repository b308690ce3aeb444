"""Everyday programs, which mix the calls above in their own ways."""

import os
import sqlite3
import tempfile

from harness import attempt, case, checked, libc, look, mode_of, read, run_tool, write


def shell(script):
    return run_tool("bash", "-c", f"set -e; {script}")


def make_tree(top):
    for number in range(60):
        os.makedirs(f"{top}/{number % 4}/{number % 3}", exist_ok=True)
        write(f"{top}/{number % 4}/{number % 3}/f{number}", "line\n" * number, 0o640)
    os.symlink("0/0", f"{top}/link")
    os.link(f"{top}/0/0/f0", f"{top}/hard")
    os.mkfifo(f"{top}/fifo")
    os.mkdir(f"{top}/empty")
    os.utime(f"{top}/0/0/f12", ns=(1, 1_000_000_000_000_000_001))


def describe(top):
    return {os.path.relpath(os.path.join(d, n), top): look(os.path.join(d, n)) for d, ds, fs in os.walk(top) for n in sorted(ds + fs)}


@case
def tools_copy_tree():
    """cp -a of a tree with links, FIFO and times"""
    make_tree("a")
    done = shell("cp -a a b")
    return [done, describe("a") == describe("b"), os.stat("b/0/0/f12").st_mtime_ns, os.stat("b/hard").st_nlink]


@case
def tools_tar_there_and_back():
    """tar c and tar x of a tree"""
    make_tree("a")
    done = shell("tar cf t.tar a; mkdir b; tar xf t.tar -C b")
    return [done, describe("a") == describe("b/a"), os.stat("b/a/0/0/f12").st_mtime_ns // 1_000_000_000]


@case
def tools_sed_and_friends():
    """sed -i, sort -o, tee, truncate, split, mv, ln -sf, patch"""
    script = """
    printf 'one\\ntwo\\nthree\\n' > f; cp f orig
    sed -i s/two/TWO/ f; sort -o f f; echo more | tee -a f > /dev/null
    ln f hard; sed -i s/one/ONE/ f; ln -sf f l; ln -sfn orig l; mv f g
    truncate -s 5 hard; split -b 4 g part.; rm part.aa
    diff -u orig g > p || true; cp orig o2; patch -s o2 < p; cmp o2 g
    chmod u+x,go= g; touch -d @1000000000 g; stat -c '%n %s %a %h' g hard orig l part.*; stat -c %Y g
    """
    return [shell(script), sorted(os.listdir("."))]


@case(seconds=60)
def tools_git():
    """git init, add, commit, checkout, stash, gc, worktree and clean"""
    script = """
    export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
    export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
    git init -q -b main r; cd r; mkdir d; for i in 1 2 3 4 5 6 7 8 9; do echo $i > d/$i; done
    git add .; git commit -qm first; git checkout -qb side; echo x >> d/1; git rm -q d/2; git commit -qam second
    git checkout -q main; echo mine > d/3; git stash -q; git merge -q side; git stash pop -q
    git gc -q; git worktree add -q ../w main~1 2>/dev/null; ls ../w/d; git status --short; git log --format=%H; git fsck --strict --no-dangling 2>&1
    git clean -fdq; git reset -q --hard; cat d/1 d/3
    """
    return shell(script)


@case(seconds=60)
def tools_sqlite():
    """SQLite with rollback journal and with WAL, from two connections"""
    results = []
    for mode in ("delete", "wal", "truncate"):
        name = f"{mode}.db"
        one = sqlite3.connect(name)
        results.append(one.execute(f"pragma journal_mode={mode}").fetchone()[0])
        one.execute("create table t (id integer primary key, text)")
        for number in range(50):
            with one:
                one.execute("insert into t (text) values (?)", ("x" * number * 20,))
        two = sqlite3.connect(name)
        results.append(two.execute("select count(*), sum(length(text)) from t").fetchone())
        with two:
            two.execute("delete from t where id % 2")
        results.append(one.execute("select count(*) from t").fetchone()[0])
        results.append(one.execute("pragma integrity_check").fetchone()[0])
        one.close()
        two.close()
    return results + [sorted(os.listdir("."))]


@case
def tools_find_and_grep():
    """find with tests, grep -r, xargs and wc over a tree"""
    make_tree("a")
    script = """
    find a | sort | wc -l; find a -type f -size +200c | sort | head -5; find a -empty | sort; find a -links 2 -type f | sort
    find a -newermt 2002-01-01 -type f | wc -l; find a -perm 640 -name 'f1?' | sort; grep -rlc line a | sort | wc -l
    find a -name 'f3*' -print0 | xargs -0 wc -l | sort; find a -name 'f2*' -delete; find a -type f | wc -l; ls -R a | wc -l
    """
    return shell(script)


@case
def tools_rsync():
    """rsync -aHAX to a copy, then only what changed"""
    make_tree("a")
    script = """
    rsync -aHAX a/ b; diff -r --no-dereference a/0 b/0; echo changed > a/0/0/f12; rm a/1/1/f1; rsync -aHAXO --delete --itemize-changes a/ b | cut -c1-2,13-
    rsync -a --inplace a/0/0/f12 b/0/0/f24; cat b/0/0/f24
    """
    return shell(script)


@case
def tools_temporary_names():
    """mkstemp, mkdtemp and NamedTemporaryFile"""
    fd, name = tempfile.mkstemp(dir=".")
    os.write(fd, b"x")
    folder = tempfile.mkdtemp(dir=".")
    with tempfile.NamedTemporaryFile(dir=".") as file:
        file.write(b"data")
        file.flush()
        there = os.path.exists(file.name)
    with tempfile.TemporaryFile(dir=".") as file:
        file.write(b"nameless")
        file.seek(0)
        content = file.read().decode()
    return [mode_of(name), mode_of(folder), there, content, len(os.listdir("."))]


@case
def tools_compile_and_run():
    """make with a compiler, twice: the second time nothing is to be done"""
    write("main.c", '#include <stdio.h>\n#include "h.h"\nint main(void) { printf("%d\\n", N); return 0; }\n')
    write("h.h", "#define N 42\n")
    write("Makefile", "main: main.c h.h\n\t$(CC) -o main main.c\n")
    script = "make -s; ./main; make -q; touch -d '1 hour ago' main; make -q || echo stale; sed -i s/42/43/ h.h; make -s; ./main"
    return shell(script)


@case
def statfs_is_the_folders():
    """statfs tells the size and limits of the filesystem below"""
    info = os.statvfs(".")
    os.mkdir("d")
    inside = os.statvfs("d")
    fd = os.open("d", os.O_RDONLY)
    return [info.f_namemax, info.f_frsize, info.f_bsize, info.f_blocks, info.f_files, inside.f_blocks == os.fstatvfs(fd).f_blocks, info.f_bavail <= info.f_bfree <= info.f_blocks]


@case
def ioctl_of_terminals():
    """A file is no terminal"""
    import fcntl
    import termios

    write("f", "")
    fd = os.open("f", os.O_RDONLY)
    return [attempt(fcntl.ioctl, fd, termios.TCGETS, bytes(100)), os.isatty(fd)]


@case
def ioctl_set_flags():
    """FS_IOC_SETFLAGS (chattr)"""
    import array
    import fcntl

    write("f", "")
    fd = os.open("f", os.O_RDONLY)
    return attempt(fcntl.ioctl, fd, 0x40086602, array.array("l", [0]))


@case
def ioctl_clone():
    """FICLONE"""
    import fcntl

    write("a", "x" * 10_000)
    source, target = os.open("a", os.O_RDONLY), os.open("b", os.O_WRONLY | os.O_CREAT)
    return attempt(fcntl.ioctl, target, 0x40049409, source)


@case
def system_calls_that_wait_for_nothing():
    """sync, name_to_handle_at and friends return"""
    write("f", "x")
    fd = os.open("f", os.O_RDONLY)
    os.sync()
    return [attempt(lambda: checked(libc.readahead(fd, 0, 10))), attempt(os.posix_fadvise, fd, 0, 0, os.POSIX_FADV_SEQUENTIAL), os.pathconf("f", "PC_NAME_MAX"), os.pathconf(".", "PC_PATH_MAX")]
