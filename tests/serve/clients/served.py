"""A server that is started for a test, and requests of it byte by byte."""
from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

BRECCIA = os.environ.get("BRECCIA", "breccia")


def breccia(*words: str, data: bytes | None = None) -> str:
    done = subprocess.run([BRECCIA, *words], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"breccia {' '.join(words)}: {done.stderr.decode()}")
    return done.stdout.decode()


def commits(file: str, rev: str = "main") -> list[str]:
    """The ids of a branch's commits, the newest first."""
    return [commit["id"] for commit in json.loads(breccia("log", file, "--at", rev, "--json"))]


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes


class Served:
    """`with Served("a.brc") as served`: served.url ends with "/"."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def __enter__(self) -> "Served":
        self.process = subprocess.Popen([BRECCIA, "serve", *self.words, "--watch-stdin"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().decode().strip()
        if not self.url:
            raise RuntimeError("the server did not start")
        parts = urlsplit(self.url)
        self.host, self.port, self.token = parts.hostname or "", parts.port or 0, parts.path
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.status = self.process.wait(30)

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=30)

    def ask(self, path: str, method: str = "GET", connection: http.client.HTTPConnection | None = None,
            **headers: str) -> Answer:
        """Asks for what is below the token, or for "/..." as it is. Headers: If_Range="..."."""
        own = connection or self.connect()
        own.request(method, path if path.startswith("/") else self.token + path,
                    headers={name.replace("_", "-"): value for name, value in headers.items()})
        got = own.getresponse()
        answer = Answer(got.status, got.headers, got.read())
        if connection is None:
            own.close()
        return answer

    def memory(self) -> int:
        """The most bytes of memory that the server has had."""
        # The command has become the server.
        with open(f"/proc/{self.process.pid}/status") as status:
            found = re.search(r"VmHWM:\s*(\d+) kB", status.read())
        assert found
        return int(found[1]) * 1024


def expect(is_so: Any, *what: Any) -> None:
    if not is_so:
        raise AssertionError(" ".join(map(str, what)))
