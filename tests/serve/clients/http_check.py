"""http_check.py [CHECK...]: what `breccia serve` promises of HTTP, tried on the real program with sockets. BRECCIA: the
command. It runs in an empty folder and needs nothing but Python."""
from __future__ import annotations

import os
import resource
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from urllib.parse import urljoin

from served import Answer, Served, breccia, commits, expect

CHUNK = 65536


def write(path: str, values: bytes, file: str = "a.brc") -> None:
    breccia("write", file, path, "--from", "-", "--quiet", data=values)


def make_moving(file: str) -> None:
    breccia("create", file, "/moving", "--shape", str(16 * CHUNK), "--dtype", "uint8", "--chunks", str(CHUNK),
            "--compress", "none", "--quiet")
    breccia("commit", file, "-m", "one", "--quiet")


def prepare() -> None:
    breccia("init", "a.brc", "--quiet")
    breccia("create", "a.brc", "/x", "--shape", "1000", "--dtype", "uint8", "--chunks", "100", "--compress", "none",
            "--quiet")
    write("/x", bytes(n % 251 for n in range(1000)))
    breccia("create", "a.brc", "/large", "--shape", str(64 << 20), "--dtype", "uint8", "--chunks", str(1 << 20),
            "--compress", "none", "--quiet")
    write("/large", bytes(range(256)) * (1 << 18))
    make_moving("a.brc")


def headers(served: Served) -> None:
    """Headers that every answer has, whatever its status, and preflights."""
    seen = set()
    for path, method, more in [
            ("main/a.zarr/x/c/1", "GET", {}), ("main/a.zarr/x/c/1", "HEAD", {}), ("main/a.zarr/zarr.json", "GET", {}),
            ("main/a.zarr/x/c/1", "GET", {"Range": "bytes=0-1"}), ("main/a.zarr/x/c/1", "GET", {"Range": "bytes=900-"}),
            ("main/a.zarr/x/c/99", "GET", {}), ("gone/a.zarr/x/c/0", "GET", {}), ("main/a.zarr", "GET", {}),
            ("main/a.zarr/", "GET", {}), ("main/a.zarr/x/c/1", "PUT", {}), ("main/a.zarr/x/c/1", "DELETE", {}),
            ("", "GET", {}), ("api/summary", "GET", {}), ("api/none", "GET", {}), ("/none", "GET", {}), ("/", "GET", {}),
            ("main/a.zarr/x/c/1", "GET", {"Host": "example.org"}), ("main/a.zarr/x/c/1?a=%ff", "GET", {}),
            ("main/" + "a" * 9000, "GET", {}), ("main/a.zarr/x/c/1", "GET", {"X_Long": "a" * 9000}),
            ("main/a.zarr?prefix=x/&list-type=2", "GET", {}), ("main/a.zarr/x/c/1", "OPTIONS", {})]:
        got = served.ask(path, method, **more)
        seen.add(got.status)
        expect(got.headers["Access-Control-Allow-Origin"] == "*", path, method, got.status, "lacks CORS")
        expect("Content-Range" in got.headers["Access-Control-Expose-Headers"], path, "exposes nothing")
        expect(got.headers["X-Content-Type-Options"] == "nosniff" and got.headers["Referrer-Policy"] == "no-referrer", path)
        expect(method != "HEAD" or (int(got.headers["Content-Length"]) == 100 and not got.body), "HEAD of", path)
    expect(seen == {200, 204, 206, 301, 400, 404, 405, 410, 414, 416, 421, 431}, "statuses", sorted(seen))
    got = served.ask("main/a.zarr/x/c/1", "OPTIONS", Origin="https://example.org", Access_Control_Request_Method="GET",
                     Access_Control_Request_Headers="range", Access_Control_Request_Private_Network="true")
    expect("Range" in got.headers["Access-Control-Allow-Headers"] and "HEAD" in got.headers["Access-Control-Allow-Methods"],
           "preflight")
    expect(got.headers["Access-Control-Allow-Private-Network"] == "true", "preflight of a private network")


def versions(served: Served) -> None:
    """Answers that may be kept, and those that must be asked for again."""
    commit = commits("a.brc")[0]
    got = served.ask("main/a.zarr/x/c/1")
    expect(got.headers["Cache-Control"] == "no-cache" and got.headers["X-Breccia-Commit"] == commit, "a branch")
    place = urljoin(f"{served.token}main/a.zarr/x/c/1", got.headers["Content-Location"])
    expect(place == f"{served.token}{commit}/a.zarr/x/c/1", "Content-Location", place)
    same = served.ask(place)
    expect(same.body == got.body and "immutable" in same.headers["Cache-Control"], "a commit")
    expect(same.headers["Content-Location"] is None and same.headers["ETag"] == got.headers["ETag"], "its etag")
    again = served.ask("main/a.zarr/x/c/1", If_None_Match=got.headers["ETag"])
    expect(again.status == 304 and not again.body and again.headers["ETag"] == got.headers["ETag"], "304")
    part = served.ask("main/a.zarr/x/c/1", Range="bytes=-3")
    expect(part.status == 206 and part.body == got.body[-3:] and part.headers["Content-Range"] == "bytes 97-99/100", "206")
    expect(served.ask("main/a.zarr/x/c/1", Range="bytes=100-").headers["Content-Range"] == "bytes */100", "416")


def one_connection(served: Served) -> None:
    """A connection lasts through answers of all kinds, and what was sent at once is answered in order."""
    connection = served.connect()
    connection.connect()
    own = connection.sock
    for path in ["main/a.zarr/x/c/1", "main/a.zarr/x/c/77", "main/a.zarr/", "api/summary", "main/a.zarr/x/c/2"]:
        served.ask(path, connection=connection)
        served.ask(path, "HEAD", connection=connection)
        served.ask(path, "OPTIONS", connection=connection)
        expect(connection.sock is own, path, "ended the connection")
    connection.close()
    with socket.create_connection((served.host, served.port)) as raw:
        raw.settimeout(20)
        for n in range(10):
            raw.sendall(f"GET {served.token}main/a.zarr/x/c/{n} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        got = b""
        while got.count(b"HTTP/1.1 200") < 10 or len(got.rsplit(b"\r\n\r\n", 1)[1]) < 100:
            more = raw.recv(65536)
            expect(more, "the connection ended")
            got += more
    for n, answer in enumerate(got.split(b"HTTP/1.1 200 OK\r\n")[1:]):
        expect(answer.split(b"\r\n\r\n", 1)[1] == bytes(i % 251 for i in range(100 * n, 100 * n + 100)), "answer", n)


def damaged(served: Served) -> None:
    """Requests that no client sends, after which the server still answers."""
    for text in [b"", b"\0", b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET  HTTP/1.1\r\n\r\n", b"\xff" * 5000,
                 b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
                 b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
                 b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nab",
                 b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000 + b"\r\n", b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
                 b"GET " + served.token.encode() + b"main/a.zarr/x/c/%zz HTTP/1.0\r\n\r\n"]:
        with socket.create_connection((served.host, served.port)) as raw:
            raw.settimeout(5)
            try:
                raw.sendall(text)
                raw.shutdown(socket.SHUT_WR)
                while raw.recv(65536):
                    pass
            except OSError:
                pass
    expect(served.ask("main/a.zarr/x/c/1").status == 200, "the server stopped")


def slow(served: Served) -> None:
    """1,000 clients that read nothing, and as many that send half a request, cost little and keep nobody waiting."""
    own, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096) if most > 0 else 4096, most))
    clients = []
    for n in range(1000):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((served.host, served.port))
        client.sendall(f"GET {served.token}main/a.zarr/large/c/{n % 64} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        clients.append(client)
    for n in range(1000):
        client = socket.create_connection((served.host, served.port))
        client.sendall(f"GET {served.token}main/a.zarr/x/c/1 HTTP/1.1\r\nHost: loc".encode())
        clients.append(client)
    slowest = 0.0
    for n in range(50):
        begun = time.monotonic()
        got = served.ask(f"main/a.zarr/x/c/{n % 10}")
        slowest = max(slowest, time.monotonic() - begun)
        expect(got.status == 200 and got.body == bytes(i % 251 for i in range(n % 10 * 100, n % 10 * 100 + 100)), "beside them")
    expect(slowest < 5, "an answer took", slowest, "s beside 2,000 slow clients")
    # A sanitizer keeps what was freed, and counts as the server's.
    if "ASAN_OPTIONS" not in os.environ:
        expect(served.memory() <= 128 << 20, "memory", served.memory() >> 20, "MiB")
    # One of them reads after all, and gets the right bytes.
    body = b""
    clients[7].settimeout(20)
    while len(body) < (1 << 20) + 100 and (more := clients[7].recv(1 << 16)):
        body += more
    expect(body.endswith(bytes(range(256)) * 4096), "a slow client's bytes")
    for client in clients:
        client.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (own, most))


def moving(served: Served, file: str = "a.brc") -> None:
    """While a writer commits, each answer for the branch is from the commit that it names."""
    ends = threading.Event()
    wrong: list[str] = []
    seen: dict[str, set[int]] = {}

    def read() -> None:
        connection = served.connect()
        n = 0
        while not ends.is_set():
            got = served.ask(f"main/{file[0]}.zarr/moving/c/{n % 16}", connection=connection)
            n += 1
            if got.status == 404:  # the first version has no chunks
                continue
            if got.status == 503:
                time.sleep(0.01)
            elif got.status != 200 or len(got.body) != CHUNK or len(set(got.body)) != 1:
                wrong.append(f"{got.status}: {got.body[:60]!r}")
            else:
                seen.setdefault(got.headers["X-Breccia-Commit"], set()).add(got.body[0])

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    values = range(1, 9)
    for value in values:
        write("/moving", bytes([value]) * (16 * CHUNK), file)
        breccia("commit", file, "-m", str(value), "--quiet")
    ends.set()
    for reader in readers:
        reader.join()
    expect(not wrong, "wrong answers:", wrong[:3])
    order = dict(zip(commits(file), reversed(values)))
    expect(len(seen) > 2, "only", len(seen), "versions were seen")
    for commit, bodies in seen.items():
        expect(bodies == {order[commit]}, commit, "was answered with", bodies, "and not", order[commit])


def moving_wal(_: Served) -> None:
    """The same of a file whose changes are in a log beside it."""
    breccia("init", "w.brc", "--quiet")
    breccia("config", "w.brc", "journal", "wal", "--quiet")
    make_moving("w.brc")
    with Served("w.brc") as other:
        moving(other, "w.brc")


def replaced(served: Served) -> None:
    """A file that goes away, and another one in its place."""
    expect(served.ask("main/a.zarr/x/c/1").status == 200, "before")
    os.rename("a.brc", "aside.brc")
    for path in ["main/a.zarr/x/c/1", "main/a.zarr/x/zarr.json", "api/summary"]:
        expect(served.ask(path).status == 410, "gone:", path, served.ask(path).status)
    breccia("init", "a.brc", "--quiet")
    breccia("create", "a.brc", "/x", "--shape", "100", "--dtype", "uint8", "--chunks", "100", "--compress", "none", "--quiet")
    write("/x", bytes([5]) * 100)
    breccia("commit", "a.brc", "-m", "another", "--quiet")
    expect(served.ask("main/a.zarr/x/c/0").body == bytes([5]) * 100, "the file in its place")
    expect(served.ask("main/a.zarr/x/c/1").status == 404, "a chunk that it does not have")
    os.rename("aside.brc", "a.brc")
    expect(served.ask("main/a.zarr/x/c/1").body == bytes(n % 251 for n in range(100, 200)), "the first one again")


def locked(served: Served) -> None:
    """While somebody has the file for himself an answer waits, and then says that it may be asked for again."""
    with Served("a.brc", "--wait", "1") as impatient:
        expect(impatient.ask("main/a.zarr/x/c/1").status == 200, "before")
        lock = sqlite3.connect("a.brc", isolation_level=None)
        lock.execute("BEGIN EXCLUSIVE")
        for path in ["main/a.zarr/x/c/2", "main/a.zarr/x/c/1", "main/a.zarr/zarr.json", "api/log"]:
            got = impatient.ask(path)
            expect(got.status == 503 and got.headers["Retry-After"], path, got.status)
        waits = threading.Thread(target=lambda: answers.append(served.ask("main/a.zarr/x/c/2")))
        answers: list[Answer] = []
        waits.start()
        time.sleep(0.3)
        expect(not answers, "an answer came from a file that is locked")
        lock.execute("ROLLBACK")
        lock.close()
        waits.join()
        expect(answers[0].status == 200 and impatient.ask("main/a.zarr/x/c/2").body == answers[0].body, "behind")


CHECKS: list[Callable[[Served], None]] = [headers, versions, one_connection, damaged, slow, moving, moving_wal, locked, replaced]


def main(names: list[str]) -> int:
    prepare()
    with Served("a.brc") as served:
        for check in CHECKS:
            if not names or check.__name__ in names:
                check(served)
                print(f"{check.__name__}: as it must be", flush=True)
    expect(served.status == 0, "the server ended with", served.status)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
