"""The fixtures that all tests share: a repository in a folder of its own."""
import os
import pathlib
import signal

import hypothesis
import pytest

import breccia

hypothesis.settings.register_profile("breccia", deadline=None, derandomize=True, max_examples=30,
                                     suppress_health_check=list(hypothesis.HealthCheck))
hypothesis.settings.load_profile("breccia")

os.environ["XDG_CONFIG_HOME"] = os.devnull  # whatever the user's own settings are

# A job that a shell put into the background ignores Ctrl-C, and so would every program that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def repo(tmp_path: pathlib.Path) -> breccia.Repository:
    with breccia.open(tmp_path / "data.brc", create=True) as made:
        yield made


@pytest.fixture
def session(repo: breccia.Repository) -> breccia.Session:
    return repo.session("main")
