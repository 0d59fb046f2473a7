"""What all tests share: a repository in a folder of its own."""
import pathlib

import hypothesis
import pytest

import breccia

hypothesis.settings.register_profile("breccia", deadline=None, derandomize=True, max_examples=30,
                                     suppress_health_check=list(hypothesis.HealthCheck))
hypothesis.settings.load_profile("breccia")


@pytest.fixture
def repo(tmp_path: pathlib.Path) -> breccia.Repository:
    with breccia.open(tmp_path / "data.brc", create=True) as made:
        yield made


@pytest.fixture
def session(repo: breccia.Repository) -> breccia.Session:
    return repo.session("main")
