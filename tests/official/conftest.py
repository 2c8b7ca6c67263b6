from __future__ import annotations

import pytest

from mcp_django.principal import SCOPES
from tests.official.desk import Desk

EVERY_SCOPE = [part for scope in SCOPES for part in ("--scope", scope)]


@pytest.fixture(scope="session")
def desk(fresh_demo, tmp_path_factory):
    """The flight desk behind Daphne, with a token for each of its users and some more."""
    desk = Desk(fresh_demo.copy_to(tmp_path_factory.mktemp("official") / "state").state)
    with desk.inside() as desk.orm:
        desk.ask("prepare")
        for user in ("admin", "dispatcher", "traveller"):
            desk.make_token(user, user, *EVERY_SCOPE)
        for user in ("analyst", "manager"):
            desk.make_token(user, user, "--scope", "mcp:read")
        with desk.serving("daphne"):
            yield desk


@pytest.fixture(scope="session")
def uvicorn(desk):
    with desk.serving("uvicorn"):
        yield "uvicorn"


@pytest.fixture(scope="session")
def wsgi(desk):
    with desk.serving("wsgi"):
        yield "wsgi"


@pytest.fixture(params=["daphne", "uvicorn", "wsgi"])
def server(request):
    """Each server in turn; all but Daphne have a fixture of their own."""
    if request.param != "daphne":
        request.getfixturevalue(request.param)
    return request.param


@pytest.fixture(params=["modern", "legacy"])
def era(request):
    return request.param


@pytest.fixture(params=["admin", "dispatcher", "analyst", "manager"])
def user(request):
    return request.param
