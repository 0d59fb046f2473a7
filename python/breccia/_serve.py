"""A server of a repository over HTTP, which is a program of its own, and its page in a notebook."""
from __future__ import annotations

import html
import os
import subprocess
import weakref
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import quote

from ._errors import Error, UnsupportedError
from ._native import LIBEXEC


def _end(process: subprocess.Popen[bytes]) -> None:
    for stream in process.stdin, process.stdout, process.stderr:  # the server ends with its standard input
        if stream is not None:
            stream.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Serving(AbstractContextManager["Serving", None]):
    """A server that runs until close(), the end of a `with`, or that of this process. `url` ends with "/": below it are
    REV/NAME.zarr (`zarr()` has the address), and it is the address of the page. Whoever knows it can read the file."""

    def __init__(self, path: str, *, port: int = 0, token: str | None = None, options: tuple[str, ...] = ()) -> None:
        program = os.path.join(LIBEXEC or "", "serve")
        if LIBEXEC is None or not os.access(program, os.X_OK):
            raise UnsupportedError(f"{program} is not there: this breccia was built without libmicrohttpd")
        words = [program, "--watch-stdin", f"--port={port}", *options]
        words += [f"--token={token}"] if token is not None else []
        pipe = subprocess.PIPE
        process = subprocess.Popen([*words, "--", path], stdin=pipe, stdout=pipe, stderr=pipe)
        assert process.stdout is not None and process.stderr is not None
        self.url = process.stdout.readline().decode().strip()
        said = process.stderr.read().decode().strip() if not self.url else ""
        self._close = weakref.finalize(self, _end, process)
        if not self.url:
            self.close()
            raise Error(said.removeprefix("breccia: error: ") or "the server does not start")
        name = os.path.basename(path)
        self._name = quote(name.removesuffix(".brc") or name, safe="")

    def zarr(self, rev: str = "main", path: str = "", *, zarr_format: int = 3) -> str:
        """The address of a version, or of the node at `path` in it, for programs that read Zarr over HTTP."""
        view = "v2/" if zarr_format == 2 else ""
        return f"{self.url}{view}{quote(rev, safe='')}/{self._name}.zarr/{quote(path.strip('/'))}".rstrip("/")

    def close(self) -> None:
        """Ends the server."""
        self._close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<breccia serving {self._name} at {self.url}>"


class Page:
    """The page of a repository: a notebook shows it in a frame as long as this object lives."""

    def __init__(self, serving: Serving, rev: str | None, height: int) -> None:
        self.serving, self.height = serving, height
        self.url = serving.url + (f"?rev={quote(rev, safe='')}" if rev else "")

    def _repr_html_(self) -> str:
        url = html.escape(self.url)
        return (f"<iframe src='{url}' title='breccia' style='width:100%;height:{self.height}px;border:1px solid #8888'>"
                f"</iframe><p><a href='{url}' target='_blank' rel='noopener'>{url}</a></p>")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}

    def close(self) -> None:
        """Ends the server of the page."""
        self.serving.close()

    def __repr__(self) -> str:
        return f"<breccia page at {self.url}>"
