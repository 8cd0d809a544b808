"""Fixtures of every script: a cerco with a state folder of its own, and a small internet."""
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))

from cerco import Cerco  # noqa: E402


@pytest.fixture
def cerco(tmp_path):
    return Cerco(tmp_path)


@pytest.fixture(scope="module")
def shared_cerco(tmp_path_factory):
    """One state folder for a whole script, where tests do not disturb each other."""
    return Cerco(tmp_path_factory.mktemp("cerco"))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    from world import World
    made = World(tmp_path_factory.mktemp("world"))
    yield made
    made.close()


def pytest_sessionfinish(session, exitstatus):
    """Folders of a script that passed go; those of one that failed stay to be looked at."""
    made = getattr(session.config, "_tmp_path_factory", None)
    if made is not None and exitstatus == 0:
        shutil.rmtree(made.getbasetemp(), ignore_errors=True)
