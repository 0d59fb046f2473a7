"""Arguments: a wrong one is named, whatever the call; what a commit gets that nobody gave."""
from __future__ import annotations

import inspect
import os
import pathlib
import re
import subprocess

import numpy as np
import pytest

import breccia
from breccia._made import calls

COMMAND = pathlib.Path(breccia.__file__).parent / "bin" / "breccia"
RIGHT = {"str": "x", "int": 1, "str | os.PathLike[str]": "x", "Any": None, "Session": None}


@pytest.fixture
def grid(repo):
    with repo.session("main", message="first", author="Ada") as s:
        s["x"] = np.zeros((4, 4), "i4")
    return repo


def on(repo, own):
    """An object of each class."""
    if own is breccia.Repository:
        return repo
    s = repo.session("main")
    return {breccia.Session: s, breccia.Group: s.create_group("g", overwrite=True), breccia.Array: s["x"]}[own]


def public(own):
    for name, _ in inspect.getmembers(own, inspect.isfunction):
        parameters = inspect.signature(getattr(own, name)).parameters
        if name[0] != "_" or name == "__init__" and own is breccia.Repository:
            yield name, list(parameters.values())[1:]


CLASSES = breccia.Repository, breccia.Session, breccia.Group, breccia.Array
WORDS = re.compile(r"str|int|bool|None|float|datetime\.datetime|Paths|Progress|dict\[str, Any\]|os\.PathLike\[str\]"
                   r"|Sequence\[(str|int|str \| None)\]")
NAMED = [(own, name, p.name) for own in CLASSES for name, given in public(own) for p in given
         if p.kind is not p.VAR_POSITIONAL and re.sub(WORDS, "", str(p.annotation)).replace("|", "").strip() == ""]


def test_all_calls_of_the_tables_are_tried():
    for own in CLASSES:
        made = getattr(calls, own.__name__ + "Calls")
        for name, function in vars(made).items():
            if inspect.isfunction(function) and name[0] != "_":
                for p in list(inspect.signature(function).parameters.values())[1:]:
                    assert (own, name, p.name) in NAMED or p.annotation == "Any", (own, name, p)
    some = {(breccia.Repository, "gc", "keep"), (breccia.Repository, "view", "rev"),
            (breccia.Session, "commit", "time"), (breccia.Repository, "__init__", "wait"),
            (breccia.Array, "append", "axis")}
    assert some <= {*NAMED} and len(NAMED) > 150


@pytest.mark.parametrize("own, call, wrong", NAMED, ids=lambda v: getattr(v, "__name__", v))
def test_a_wrong_type_is_named(grid, own, call, wrong):
    """By name, and at its place where it has one. InvalidError, which is a ValueError, and a TypeError."""
    thing = on(grid, own)
    given = dict(public(own))[call]
    needed = {p.name: RIGHT[p.annotation] for p in given if p.default is p.empty and p.kind is not p.VAR_POSITIONAL}
    tries = [((), {**needed, wrong: object()})]
    places = [p.name for p in given if p.kind is p.POSITIONAL_OR_KEYWORD]
    if wrong in places:
        at = places.index(wrong)
        tries.append(((*[needed.get(name) for name in places[:at]], object()), {}))
    for args, named in tries:
        if args and any(a is None for a in args[:-1]):
            continue  # something before it may not be None
        with pytest.raises(breccia.WrongTypeError, match=rf"^{wrong} must be .*, not <object"):
            getattr(thing, call)(*args, **named)
    assert issubclass(breccia.WrongTypeError, (breccia.InvalidError)) and issubclass(breccia.WrongTypeError, TypeError)


@pytest.mark.parametrize("call, said", [
    (lambda r: r.gc(keep=0), "keep must be str or None, not 0"), (lambda r: r.tag(1), "name must be str, not 1"),
    (lambda r: r.view(5), "rev must be str or None, not 5"),
    (lambda r: r.gc(dry_run="no"), "dry_run must be bool, not 'no'"),
    (lambda r: r.expire(keep_last="x"), "keep_last must be int, not 'x'"),
    (lambda r: r.merge("main", paths=[1]), "paths must be str or Sequence[str] or None, not [1]"),
    (lambda r: r.session()[5], "a path must be str, not 5"),
    (lambda r: r.bisect("odd"), "mark must be 'look', 'start'"),
    (lambda r: r.merge_settle("mine"), "side must be 'ours', 'theirs', not 'mine'"),
    (lambda r: r.session().create_array("a", shape=3, dtype="i4", shards=[2.5]), "shard cannot be [2.5]"),
    (lambda r: r.session().create_array("a", shape=3, dtype="i4", chunks=[2.5]), "chunks are")])
def test_what_is_said_of_it(grid, call, said):
    with pytest.raises(breccia.InvalidError, match=re.escape(said)):
        call(grid)


@pytest.mark.parametrize("name, call", [
    ("keep_last", lambda r, n: r.expire(keep_last=n)), ("expect", lambda r, n: r.undo(expect=n)),
    ("draft", lambda r, n: r.drop(n)), ("limit", lambda r, n: r.log(limit=n)),
    ("memory", lambda r, n: breccia.open(r.path, memory=n)), ("threads", lambda r, n: breccia.open(r.path, threads=n)),
    ("mainline", lambda r, n: r.revert("HEAD", mainline=n)),
    ("shape", lambda r, n: r.session().create_array("a", shape=n, dtype="i4")),
    ("chunk", lambda r, n: r.session().create_array("a", shape=9, dtype="i4", chunks=n)),
    ("resize", lambda r, n: r.session()["x"].resize(n, 3))])
def test_a_number_that_does_not_fit_is_no_overflow(grid, name, call):
    for n in -3, 1 << 64, 1 << 200:
        try:
            call(grid, n)
        except breccia.Error as error:
            said = re.search(rf"{name}|shape|-3", str(error))
            assert said or isinstance(error, breccia.StaleError | breccia.NotFoundError)
        else:
            assert (name, n) in [("limit", 1 << 64), ("limit", 1 << 200)]


# ---- commits ----


def test_a_commit_needs_a_message(grid):
    s = grid.session("main")
    s["x"][0] = 1
    for message in None, "", " \t\n":
        with pytest.raises(breccia.InvalidError, match="message"):
            s.commit(message)
        with pytest.raises(breccia.InvalidError, match="message"):
            s.commit(message, allow_empty=True)
    with pytest.raises(breccia.InvalidError, match="message"):
        s.commit(" ", amend=True)
    assert not s.clean() and len(grid.log()) == 1
    s.commit("second")
    s["x"][1] = 2
    s.commit(amend=True)
    assert [c.message for c in grid.log()] == ["second", "first"] and grid.view()["x"][:2, 0].tolist() == [1, 2]


@pytest.mark.parametrize("kind", ["session", "draft"])
@pytest.mark.parametrize("message", [None, " "])
def test_a_block_without_a_message_keeps_what_it_wrote(grid, kind, message):
    with pytest.raises(breccia.InvalidError, match="message"), getattr(grid, kind)("main", message=message) as s:
        s["x"][0] = 7
    assert len(grid.log()) == 1 and s["x"][0, 0] == 7
    s.commit("what the block did")
    assert grid.view(grid.resolve("main"))["x"][0, 0] == 7 and grid.commit().message == "what the block did"


@pytest.mark.parametrize("kind", ["session", "draft"])
def test_a_block_that_has_committed_needs_no_message(grid, kind):
    with getattr(grid, kind)("main") as s:
        s["x"][0] = 7
        s.commit("in the block")
    with getattr(grid, kind)("main") as s:
        assert s["x"][0, 0] == 7
    assert [c.message for c in grid.log()] == ["in the block", "first"]


def test_no_commit_of_any_call_has_a_blank_message(grid):
    grid.branch("side")
    with grid.session("side", message="side") as s:
        s["x"][0] = 1
    with grid.session("main", message="main") as s:
        s["x"][0] = 2
    for call in (lambda: grid.merge("side", ours=True, message=" "), lambda: grid.revert("HEAD", message=""),
                 lambda: grid.cherry_pick("side", ours=True, message="\n"), lambda: grid.merge_continue(message=" ")):
        grid.merge_state() or call.__code__.co_names[0] != "merge_continue" or grid.merge("side", keep=True)
        with pytest.raises(breccia.InvalidError, match="must not be blank"):
            call()
    assert [c.message for c in grid.log()] == ["main", "first"]


@pytest.mark.parametrize("told, own", [(None, None), ("", None), ("Eve <eve@example.org>", None),
                                       (None, "Ann <ann@example.org>"), ("Eve <eve@example.org>", "Ann")])
def test_the_author_is_the_commands(grid, tmp_path, monkeypatch, told, own):
    """Every call that makes a commit without an author takes the command's."""
    monkeypatch.delenv("BRECCIA_AUTHOR", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    if own is not None:
        subprocess.run([COMMAND, "config", "--user", "author", own], check=True)
    if told is not None:
        monkeypatch.setenv("BRECCIA_AUTHOR", told)
    subprocess.run([COMMAND, "write", grid.path, "/x", "[0, 0]", "--value", "5"], check=True)
    subprocess.run([COMMAND, "commit", grid.path, "-m", "theirs"], check=True)
    want = grid.commit().author
    assert want == (told or own) if told or own else want != "unknown" and os.uname().nodename in want
    made = [("commit", lambda: None), ("merge", lambda: grid.merge("side")),
            ("continue", lambda: (grid.merge("other", keep=True), grid.merge_settle("ours"), grid.merge_continue())),
            ("import", lambda: grid.import_(tmp_path / "a.npy", "a")), ("revert", lambda: grid.revert("HEAD"))]
    np.save(tmp_path / "a.npy", np.arange(3))
    for branch, at in ("side", 1), ("other", 2):
        grid.branch(branch)
        with grid.session(branch, message=branch, author="Bob") as s:
            s["x"][at, at] = at
    with grid.session("main", message="main") as s:
        s["x"][2, 2] = 9
    for name, call in made:
        before = grid.resolve("main")
        call()
        assert name == "commit" or grid.resolve("main") != before
        assert grid.commit().author == want, name
    with grid.session("main", message="named", author="Cyd") as s:
        s["x"][3, 3] = 3
    assert grid.commit().author == "Cyd"
    s = grid.session("main")
    s["x"][3, 3] = 4
    s.commit(amend=True)
    assert grid.commit().author == "Cyd"


# ---- what is said of a change, and of a merge that is only tried ----


def test_an_added_array_says_what_it_added(grid):
    with grid.session("main", message="second") as s:
        s["y"], s["one"] = np.arange(6), np.ones(1)
        s["x"].resize(3, 4)
    said = {c.path: repr(c) for c in grid.diff("HEAD~1", "HEAD", elements=True)}
    assert said["/y"] == "<Change added array /y; 1 chunk added; 6 elements added>"
    assert "; 1 element added>" in said["/one"] and "4 elements removed" in said["/x"] and "0 " not in said["/x"]
    assert "6 elements removed" in repr(grid.diff("HEAD", "HEAD~1", path="y", elements=True)[0])
    with grid.session("main", message="third") as s:
        s["x"].attrs["units"] = "K"
        s["y"][2] = 9
    assert repr(grid.diff("HEAD~1", "HEAD", path="y", values=4)[0]).endswith("1 chunk changed; [2] 2 → 9>")
    said = {c.path: repr(c) for c in grid.diff("HEAD~1", "HEAD", elements=True)}
    assert "no element changed" in said["/x"] and "1 element changed by up to 7" in said["/y"]
    with grid.session("main", message="fourth") as s:
        s["y"][2:] = 7
        assert repr(s.diff(values=2)[0]).endswith("; [2] 9 → 7; [3] 3 → 7; ...>")


def test_a_dry_run_of_a_merge_is_as_its_docstring_says(grid):
    grid.branch("side")
    for branch, value in ("main", 1), ("side", 2):
        with grid.session(branch, message=branch) as s:
            s["x"][0, 0] = value
    tip, drafts = grid.resolve("main"), grid.drafts()
    with pytest.raises(breccia.ConflictError) as caught:
        grid.merge("side", dry_run=True)
    assert [c.path for c in caught.value.conflicts] == ["/x"]
    tried = grid.merge("side", dry_run=True, keep=True)
    assert tried.result == "conflict" and tried.conflicts == caught.value.conflicts and not tried.draft
    assert grid.merge("side", dry_run=True, theirs=True).result == "merged"
    assert grid.resolve("main") == tip and grid.merge_state() is None and grid.drafts() == drafts
