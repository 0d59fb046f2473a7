"""A server of a repository, and its page in a notebook."""
from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import urllib.error
import urllib.request

import numpy as np
import pytest

import breccia

PROGRAM = pathlib.Path(breccia.__file__).parent / "libexec" / "breccia" / "serve"
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="this breccia has no server")


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read()


@pytest.fixture
def twice(repo):
    for value in (1, 2):
        with repo.session("main", message=str(value)) as s:
            s.create_array("g/x", shape=(6,), chunks=(3,), dtype="u1", codecs=["bytes"], overwrite=True)[:] = value
    return repo


def test_a_version_by_its_address(twice):
    newest, oldest = [commit.id for commit in twice.log()]
    with twice.serve() as serving:
        assert serving.url.startswith("http://127.0.0.1:") and serving.url.endswith("/")
        assert get(f"{serving.zarr('main', '/g/x')}/c/0") == b"\2\2\2"
        assert get(f"{serving.zarr(oldest)}/g/x/c/1") == b"\1\1\1"
        assert get(f"{serving.zarr(newest, 'g/x', zarr_format=2)}/1") == b"\2\2\2"
        document = json.loads(get(serving.zarr("main~1") + "/zarr.json"))
        assert document["consolidated_metadata"]["metadata"].keys() == {"g", "g/x"}
        assert b"<html" in get(serving.url)
        twice.session("main")["g/x"][:] = 9  # what is uncommitted is not served
        assert get(f"{serving.zarr('main', 'g/x')}/c/0") == b"\2\2\2"
        url = serving.url
    with pytest.raises(urllib.error.URLError):
        get(url)
    serving.close()


def test_a_token_and_what_is_wrong(twice):
    with twice.serve(token="0123456789abcdef") as serving:
        assert serving.url.endswith("/0123456789abcdef/") and "data" in repr(serving)
    with pytest.raises(breccia.Error, match="16 to 128"):
        twice.serve(token="short")
    with pytest.raises(breccia.Error, match="does not exist"):
        breccia.Repository("none.brc", create=None).serve()


def test_zarr_python_opens_it(twice):
    zarr = pytest.importorskip("zarr")
    pytest.importorskip("aiohttp")
    from zarr.storage import FsspecStore
    with twice.serve() as serving:
        group = zarr.open_group(FsspecStore.from_url(serving.zarr("main~1"), read_only=True), mode="r")
        assert np.array_equal(group["g/x"][:], [1] * 6)


def test_a_page_in_a_notebook(twice):
    page = twice.ui("main~1", height=300)
    shown = page._repr_mimebundle_()["text/html"]
    assert f"<iframe src='{page.url}'" in shown and "height:300px" in shown and page.url.endswith("/?rev=main~1")
    assert b"<html" in get(page.url)
    page.close()
    assert "page at" in repr(page)


def test_a_server_ends_with_the_process(twice):
    program = f"import breccia, os; print(breccia.open({str(twice.path)!r}).serve().url, flush=True); os._exit(0)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    url = ended.stdout.strip()
    for _ in range(100):
        try:
            get(url)
        except urllib.error.URLError:
            return
    pytest.fail("the server goes on")
