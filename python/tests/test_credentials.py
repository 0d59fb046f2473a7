"""Chunks in a bucket: whose credentials a server gets, and what a program gives. The server is moto, in a process of
its own, which checks keys and signatures."""
import os
import pathlib
import pickle
import socket
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest

import breccia

STRANGER = "http://example.org:81"
SECRET = "no-one-may-see-this"
GIVEN = {"key": "AKIDEXAMPLE", "secret": SECRET, "endpoint_url": STRANGER}


def backend(endpoint: str, prefix: str = "") -> dict[str, object]:
    return {"name": "s3", "configuration": {"endpoint": endpoint, "bucket": "box", "prefix": prefix}}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """Nothing of the user's own, and no proxy."""
    for name in [n for n in os.environ if n.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def far(tmp_path: pathlib.Path) -> pathlib.Path:
    """A repository whose array is to lie on a stranger's server."""
    path = tmp_path / "far.brc"
    with breccia.open(path, create=True) as repo, repo.session(message="empty") as s:
        try:
            s.create_array("a", shape=(100,), dtype="i4", backend=backend(STRANGER))
        except breccia.UnsupportedError as error:
            pytest.skip(str(error))
    return path


def write(path: pathlib.Path, credentials: object = None) -> None:
    with breccia.open(path, credentials=credentials) as repo, repo.session(message="one") as s:
        s["a"][...] = np.arange(100)


# ---- what is decided here -------------------------------------------------------


def test_a_strangers_server_gets_nothing(far: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    with pytest.raises(breccia.ConflictError, match="nothing is sent before you allow it"):
        write(far)
    own = {"key": "AKIDEXAMPLE", "secret": SECRET}
    for given in own, own | {"endpoint_url": "http://example.com"}, {}:
        with pytest.raises(breccia.ConflictError, match=f'have "endpoint_url": "{STRANGER}"') as raised:
            write(far, given)
        assert SECRET not in str(raised.value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://example.com")
    with pytest.raises(breccia.ConflictError):
        write(far, own)


def test_a_function_decides(far: pathlib.Path) -> None:
    asked = []

    def refuse(server: breccia.Server) -> dict[str, str]:
        asked.append(server)
        raise LookupError("never there")

    with pytest.raises(LookupError, match="never there"):
        write(far, refuse)
    assert {(s.kind, s.endpoint, s.bucket, s.standard) for s in asked} == {("s3", STRANGER, "box", False)}
    for wrong, kind in (lambda _: None, breccia.InvalidError), (lambda _: {"key": "a"}, breccia.InvalidError), \
            (lambda _: {"key": "a", "secret": 7}, breccia.WrongTypeError), (lambda: {}, TypeError):
        with pytest.raises(kind):
            write(far, wrong)

    def interrupt(server: breccia.Server) -> dict[str, str]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(far, interrupt)
    with breccia.open(far, credentials=refuse) as repo:
        assert len(repo.log()) == 1  # what lies in the file is read all the same


def test_each_thread_gets_its_own_exception(far: pathlib.Path) -> None:
    from concurrent.futures import ThreadPoolExecutor
    from itertools import count
    numbers = count()

    def refuse(server: breccia.Server) -> dict[str, str]:
        raise LookupError(next(numbers))

    with breccia.open(far, credentials=refuse) as repo:
        def change(_: int) -> int:
            s = repo.session()
            with pytest.raises(LookupError) as raised:
                s["a"][...] = 7
            return int(raised.value.args[0])

        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(change, range(40)))
    assert len(set(found)) == 40
    from breccia._native import raised as left
    assert len(left) <= 64


@pytest.mark.parametrize("wrong", [
    SECRET, SECRET.encode(), 7, {"key": SECRET}, {"secret": SECRET}, {"key": "a", "secret": 7, "token": SECRET},
    {"key": "a", "secret": SECRET * 100}, {"key": "a", "secret": SECRET + "\0"},
    {"key": "a", "secret": SECRET, "user": "b"},
])
def test_wrong_credentials_are_named_without_them(far: pathlib.Path, wrong: object) -> None:
    with pytest.raises(breccia.InvalidError) as raised:
        breccia.open(far, credentials=wrong)
    assert SECRET not in str(raised.value)


def test_no_text_has_the_secret(far: pathlib.Path) -> None:
    zarr = pytest.importorskip("zarr")
    with breccia.open(far, credentials=GIVEN) as repo:
        store = repo.store()
        for one in (repo, repo.handles, repo._given, repo.view(), repo.view()["a"], store,
                    zarr.open_group(store, mode="r")):
            assert SECRET not in f"{one!r}{one}"
        assert SECRET not in repo._repr_html_()
        copy = pickle.loads(pickle.dumps(repo))
        assert copy == repo and copy._given["credentials"]["secret"] == SECRET
        assert copy != breccia.open(far) and store != repo.store("main", mode="r+")
        assert SECRET not in repr(copy._given)


@pytest.mark.parametrize("given", [
    {"key": "k", "secret": "s", "token": "t"},
    {"aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_session_token": "t"},
    {"access_key_id": "k", "secret_access_key": "s", "session_token": "t", "expires_at": None},
    {"AccessKeyId": "k", "SecretAccessKey": "s", "SessionToken": "t", "Expiration": "2026-01-01T00:00:00Z"},
    {"access_key": "k", "secret_key": "s", "token": "t"},
])
def test_names_of_others(given: dict[str, object]) -> None:
    from breccia._credentials import members
    assert members(given) == {"key": b"k", "secret": b"s", "token": b"t"}


# ---- a real server --------------------------------------------------------------


class Bucket:
    """A bucket on moto, and a user who may do everything there."""

    def __init__(self, folder: pathlib.Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.log = open(folder / "moto.log", "wb")
        self.server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
                                       stdout=self.log, stderr=self.log)

    def start(self) -> None:
        import boto3
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                break
            except OSError:
                if self.server.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        told = dict(endpoint_url=self.endpoint, region_name="us-east-1", aws_access_key_id="root",
                    aws_secret_access_key="root")
        boto3.client("s3", **told).create_bucket(Bucket="box")
        iam = boto3.client("iam", **told)
        iam.create_user(UserName="ada")
        iam.put_user_policy(UserName="ada", PolicyName="all", PolicyDocument='{"Version": "2012-10-17", "Statement": '
                            '[{"Effect": "Allow", "Action": "*", "Resource": "*"}]}')
        made = iam.create_access_key(UserName="ada")["AccessKey"]
        self.key, self.secret = made["AccessKeyId"], made["SecretAccessKey"]
        # From now on keys and signatures count.
        urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/moto-api/reset-auth", b"0",
                                                      {"Content-Type": "text/plain"})).close()

    def given(self, **other: str) -> dict[str, str]:
        return {"key": self.key, "secret": self.secret, "endpoint_url": self.endpoint} | other


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Bucket:
    pytest.importorskip("moto")
    made = Bucket(tmp_path_factory.mktemp("moto"))
    try:
        made.start()
        yield made
    finally:
        made.server.terminate()
        made.server.wait()
        made.log.close()


@pytest.fixture
def near(bucket: Bucket, tmp_path: pathlib.Path) -> pathlib.Path:
    """A repository with an array in the bucket, and one in the file."""
    path = tmp_path / "near.brc"
    with breccia.open(path, create=True, credentials=bucket.given()) as repo, repo.session(message="one") as s:
        try:
            s.create_array("a", shape=(300, 30), chunks=(50, 30), dtype="i4", backend=backend(bucket.endpoint, "p"))
        except breccia.UnsupportedError as error:
            pytest.skip(str(error))
        s["a"][...] = np.arange(9000).reshape(300, 30)
        s["b"] = np.arange(3000)
    return path


def total(path: pathlib.Path, credentials: object = None) -> int:
    with breccia.open(path, credentials=credentials) as repo:
        return int(repo.view()["a"][...].sum())


def test_chunks_in_a_bucket(bucket: Bucket, near: pathlib.Path) -> None:
    with breccia.open(near, credentials=lambda server: bucket.given()) as repo:
        with repo.session(message="two") as s:
            s["a"][10:20] = 7
        now = repo.view()["a"]
        assert now.backend["name"] == "s3" and (now[10:20] == 7).all() and now[20, 0] == 600
        assert repo.view("HEAD~1")["a"][10, 0] == 300
        before = repo.info()
        assert before.outside_chunks == 7
        ids = [c.id for c in repo.log()]
        assert repo.repack(backend="inline").objects == 7  # and out of the bucket
        assert repo.info().outside_chunks == 0 and not repo.fsck().damage
        repo.repack(backend=backend(bucket.endpoint, "q"))  # and everything into it
        assert repo.info().outside_chunks > 7 and not repo.fsck().damage
        repo.gc(keep="0")
        assert [c.id for c in repo.log()] == ids and (repo.view()["b"][...] == np.arange(3000)).all()
    with breccia.open(near, credentials=bucket.given()) as repo:
        assert (repo.view()["a"][10:20] == 7).all()


def test_credentials_of_the_environment(bucket: Bucket, near: pathlib.Path, monkeypatch: pytest.MonkeyPatch,
                                        tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", bucket.endpoint)
    with pytest.raises(breccia.InputOutputError, match="set AWS_ACCESS_KEY_ID"):
        total(near)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", bucket.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", bucket.secret)
    assert total(near) == 9000 * 8999 // 2
    assert total(near, {"key": bucket.key, "secret": bucket.secret}) == 9000 * 8999 // 2
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(breccia.Error, match="check both") as raised:
        total(near)
    assert "wrong" not in str(raised.value)


def test_credentials_of_files_and_commands(bucket: Bucket, near: pathlib.Path, tmp_path: pathlib.Path) -> None:
    config = tmp_path / ".aws" / "config"
    config.parent.mkdir()
    (tmp_path / "says.json").write_text(
        f'{{"Version": 1, "AccessKeyId": "{bucket.key}", "SecretAccessKey": "{bucket.secret}"}}')
    for own in (f"aws_access_key_id = {bucket.key}\naws_secret_access_key = {bucket.secret}",
                f"credential_process = cat {tmp_path}/says.json"):
        config.write_text(f"[profile lab]\nendpoint_url = {bucket.endpoint}\n{own}\n")
        assert total(near) == 9000 * 8999 // 2
    config.write_text(f"[profile lab]\nendpoint_url = {bucket.endpoint}\ncredential_process = false\n")
    with pytest.raises(breccia.Error, match="run it by hand"):
        total(near)


def test_wrong_credentials(bucket: Bucket, near: pathlib.Path) -> None:
    for wrong in bucket.given(secret=SECRET), bucket.given(key="AKIDNOBODY"):
        with pytest.raises(breccia.Error, match="check both") as raised:
            total(near, wrong)
        assert SECRET not in str(raised.value)
    with pytest.raises(breccia.Error, match="set AWS_ACCESS_KEY_ID"):
        total(near, {"endpoint_url": bucket.endpoint})  # nothing is signed


def test_a_cache_has_what_was_read(bucket: Bucket, near: pathlib.Path, tmp_path: pathlib.Path,
                                   monkeypatch: pytest.MonkeyPatch) -> None:
    zarr = pytest.importorskip("zarr")
    cache, wrong, sum_of_all = tmp_path / "chunks", bucket.given(secret=SECRET), 9000 * 8999 // 2
    with breccia.open(near, credentials=bucket.given(), cache=cache, cache_bytes=10 << 20) as repo:
        assert repo.view()["a"][...].sum() == sum_of_all
    assert cache.stat().st_size > 9000
    with breccia.open(near, credentials=wrong, cache=cache) as repo:  # the server is not asked
        for one in repo, pickle.loads(pickle.dumps(repo)):
            assert one.view()["a"][...].sum() == sum_of_all
            assert zarr.open_group(one.store(), mode="r")["a"][1, 0] == 30
    with pytest.raises(breccia.Error, match="check both"):
        total(near, wrong)
    monkeypatch.setenv("BRECCIA_CACHE", str(cache))
    assert total(near, wrong) == sum_of_all
    store = breccia.zarr.Store(near, read_only=True, credentials=wrong)
    assert zarr.open_group(store, mode="r")["a"][...].sum() == sum_of_all
    with pytest.raises(breccia.Error, match="check both"):
        zarr.open_group(breccia.zarr.Store(near, read_only=True, credentials=wrong, cache=""), mode="r")["a"][1, 0]
    with breccia.open(near, credentials=wrong, cache="") as repo, pytest.raises(breccia.Error, match="check both"):
        repo.view()["a"][...]
    monkeypatch.setenv("BRECCIA_CACHE_BYTES", "much")
    with pytest.raises(breccia.InvalidError, match="much"):
        breccia.open(near)
    for no_number in -1, 1 << 63:
        with pytest.raises(breccia.InvalidError, match="cache_bytes is a number"):
            breccia.open(near, cache=cache, cache_bytes=no_number)


def test_others_get_the_credentials_too(bucket: Bucket, near: pathlib.Path) -> None:
    zarr = pytest.importorskip("zarr")
    from breccia.zarr import Store
    for store in (breccia.open(near, credentials=bucket.given()).store(),
                  Store(near, credentials=bucket.given(), read_only=True)):
        for one in store, pickle.loads(pickle.dumps(store)), store.with_read_only(True):
            assert zarr.open_group(one, mode="r")["a"][1, 0] == 30


def test_processes_get_the_credentials_too(bucket: Bucket, near: pathlib.Path) -> None:
    from multiprocessing import get_context
    repo = breccia.open(near, credentials=bucket.given())
    for how in "fork", "spawn":
        with get_context(how).Pool(1) as pool:
            assert pool.apply(first, (repo,)) == 30


def first(repo: breccia.Repository) -> int:
    return int(repo.view()["a"][1, 0])
