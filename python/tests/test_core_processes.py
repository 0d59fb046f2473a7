"""Threads, forks, Ctrl-C."""
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import breccia
from breccia._native import ffi, lib


@pytest.fixture
def rows(repo):
    with repo.session("main", message="rows") as s:
        s.create_array("x", data=np.arange(640 * 50).reshape(640, 50), chunks=(10, 50))
    return repo


def test_threads_read_one_array(rows):
    for view in rows.view("main"), rows.view(rows.resolve("main")), rows.session("main"), rows.draft("main"):
        x, start = view["x"], threading.Barrier(8)

        def read(i):
            start.wait()
            want = np.arange(640 * 50).reshape(640, 50)
            return all((x[k:k + 7] == want[k:k + 7]).all() for k in range(i, 600, 61))

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(read, range(8)))


def test_threads_write_one_session(rows):
    for add, s in (100, rows.session("main")), (200, rows.draft("main")):
        start = threading.Barrier(8)

        def write(i):
            start.wait()
            for k in range(i, 64, 8):
                s["x"][k * 10:k * 10 + 10] = k + add
                s.attrs[f"k{k}"] = k

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(8)))
        want = np.repeat(np.arange(64) + add, 10)
        np.testing.assert_array_equal(s["x"][:, 3], want)
        assert len(s.attrs) == 64
        s.commit("together")
        np.testing.assert_array_equal(rows.view("main")["x"][:, 49], want)
        s["x"][0] = 5
        assert s["x"][0, 0] == 5
        s.discard()


def test_lent_text_is_copied_before_another_thread_asks(rows, monkeypatch):
    give = rows.handles.give

    def ask_and_give(handle):
        handle.call(lib.brc_head, ffi.new("const char **"), handle.repo)
        give(handle)

    monkeypatch.setattr(rows.handles, "give", ask_and_give)
    assert rows.head == "main"


def test_a_transaction_is_of_its_thread(rows):
    s = rows.session("main")
    inside, seen = threading.Event(), []

    def look():
        inside.wait()
        seen.append(s["x"][0, 0])

    other = threading.Thread(target=look)
    other.start()
    s["x"][0] = 1
    with pytest.raises(ZeroDivisionError):
        with s.transaction():
            s["x"][0] = 2
            1 / 0
    inside.set()
    other.join()
    assert seen == [1] and s["x"][0, 0] == 1


def in_child(work):
    """Returns as text what work() returns or raises in a child of fork()."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            said = str(work())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
            if os.environ.get("SHOW"):
                traceback.print_exc()
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        said = file.read()
    os.waitpid(pid, 0)
    return said


def test_fork(rows):
    views = rows.view("main"), rows.view(rows.resolve("main")), rows.draft("main"), rows.session("main")
    arrays = [v["x"] for v in views]
    for a in arrays:
        assert in_child(lambda: (int(a[3, 4]), len(rows.log()))) == "(154, 1)"

    def change():
        arrays[3][2] = 9
        return "changed"

    assert in_child(change) == "changed" and arrays[3][2, 0] == 9  # it is one draft, the parent's
    assert [d.owner for d in rows.drafts()] == ["alive"]
    views[3]["x"][0] = 7
    assert in_child(lambda: arrays[3][0, 0]) == "7"

    def write():
        with rows.session("main", message="of a child") as s:
            s["x"][1] = 8
        return "done"

    assert in_child(write) == "done" and rows.log()[0].message == "of a child"
    assert arrays[3][0, 0] == 7  # the parent goes on
    views[3].commit("of the parent")
    assert rows.view("main")["x"][:2, 0].tolist() == [7, 8]


def test_processes_that_create_one_file_at_once(tmp_path):
    for n in range(8):
        path, said = tmp_path / f"{n}.brc", []
        together = threading.Barrier(6)

        def create():
            together.wait()
            said.append(in_child(lambda: breccia.open(path, create=True).branches()))

        threads = [threading.Thread(target=create) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert said == ["{'main': ''}"] * 6


def test_fork_in_a_transaction(rows):
    s = rows.session("main")
    with s.transaction():
        s["x"][0] = 1
        assert in_child(lambda: s["x"][0, 0]).startswith("MisuseError")
        s["x"][1] = 2
    assert s["x"][:2, 0].tolist() == [1, 2]


def test_children_read_while_the_parent_writes(rows):
    x = rows.view("main")["x"]

    def read():
        for _ in range(60):
            part = x[:, 0].reshape(64, 10)
            assert (part == part[:, :1]).all() or (part[:, 1] - part[:, 0] == 50).all()
        return "whole"

    pipes = []
    for _ in range(8):
        end, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                said = read()
            except BaseException as error:
                said = repr(error)
            os.write(write, said.encode())
            os._exit(0)
        os.close(write)
        pipes.append((pid, end))
    s = rows.draft("main")
    for value in range(8):
        s["x"][...] = value
        s.commit(f"{value}")
    for pid, end in pipes:
        with os.fdopen(end) as file:
            assert file.read() == "whole"
        os.waitpid(pid, 0)


def test_nothing_stays_open(rows):
    def descriptors():
        gc.collect()
        return sum(1 for fd in os.listdir("/proc/self/fd")
                   if "data.brc" in os.path.realpath(f"/proc/self/fd/{fd}"))

    before = descriptors()
    for _ in range(20):
        rows.view("main")["x"][0]
        rows.session("main")["x"][0]
    assert descriptors() <= before + 2


INTERRUPTED = """
    import os, signal, sys, threading, time
    import numpy as np
    import breccia
    path, kind, delay = sys.argv[1], sys.argv[2], float(sys.argv[3])
    repo = breccia.open(path)
    s = repo.session("main")
    x, z = s["x"], np.random.default_rng(0).standard_normal((1500, 1000))
    calls = {
        "read": lambda: x[...],
        "write": lambda: s.__setitem__("z", z),
        "points": lambda: x.vindex[np.arange(200_000) % x.shape[0], np.arange(200_000) % x.shape[1]],
        "fsck": repo.fsck,
        "told": lambda: repo.fsck(progress=lambda *_: None),
        "diff": lambda: repo.diff("main~1", "main", elements=True),
        "gc": repo.gc,
        "log": repo.log,
    }
    sent = []
    def send():
        time.sleep(delay)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    sender = threading.Thread(target=send)
    try:
        sender.start()
        while True:
            calls[kind]()
    except KeyboardInterrupt:
        took = time.monotonic() - sent[0]
    sender.join()
    assert x[0, 0] == 1.0 and len(repo.log()) == 2, "the handle works again"
    repo.fsck(decode=False)
    s.discard()
    print(took)
"""


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    path = tmp_path_factory.mktemp("big") / "data.brc"
    with breccia.open(path, create=True) as repo:
        with repo.session("main", message="one") as s:
            s.create_array("x", data=np.zeros((3000, 1000)), chunks=(100, 100))
        with repo.session("main", message="two") as s:
            s["x"][...] = np.random.default_rng(0).standard_normal((3000, 1000))
            s["x"][0, 0] = 1
    return path


@pytest.mark.parametrize("kind", ["read", "write", "points", "fsck", "told", "diff", "gc", "log"])
def test_interrupt(big, kind):
    """KeyboardInterrupt comes out of a call, at whatever moment, and everything works afterwards."""
    for delay in (0.0, 0.004, 0.03):
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(INTERRUPTED), str(big), kind,
                               str(delay)],
                              capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr and "KeyboardInterrupt" not in done.stderr
        assert float(done.stdout) < 10  # how fast it is is not for a machine with others on it
    assert breccia.open(big).fsck().damage == ()


def test_interrupt_ends_the_call(big):
    """The call itself ends, not only what follows: what C says is that it was stopped."""
    repo = breccia.open(big)
    with repo.handles.at_work() as handle:
        assert handle.repo
    old = signal.signal(signal.SIGINT,
                        lambda *_: None)  # a handler that raises nothing: then the call says it
    try:
        stop = threading.Event()

        def send():
            while not stop.is_set():
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)

        sender = threading.Thread(target=send)
        sender.start()
        with pytest.raises(breccia.InterruptError):
            for _ in range(1000):
                repo.fsck()
        stop.set()
        sender.join()
    finally:
        stop.set()
        signal.signal(signal.SIGINT, old)
    assert repo.fsck().damage == ()


def test_others_are_stopped(big):
    """A thread that waits for others stops what they do, and the file can be used again afterwards."""
    repo = breccia.open(big)
    x, out, began = repo.view("main")["x"], [], threading.Event()
    sessions = x.session._sessions
    natives = [sessions.take() for _ in range(3)]
    for native in natives:
        sessions.give(native)

    def work():
        try:
            while True:
                began.set()
                x[...]
        except breccia.InterruptError as error:
            out.append(error)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for w in workers:
        w.start()
    began.wait()
    for native in natives:
        lib.brc_interrupt(native.repo, 1)
    for w in workers:
        w.join()
    for native in natives:
        lib.brc_interrupt(native.repo, 0)
    assert len(out) == 3 and x[0, 0] == 1.0


def test_the_handler_is_put_back(rows):
    before = signal.getsignal(signal.SIGINT)
    rows.fsck()
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
        time.sleep(1)
    assert rows.view("main")["x"][0, 1] == 1
