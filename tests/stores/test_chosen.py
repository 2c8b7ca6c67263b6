from __future__ import annotations

import os
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from mcp_django.stores.database import DatabaseStore
from mcp_django.stores.interface import get_store
from mcp_django.stores.memory import MemoryStore


@pytest.mark.parametrize(
    ("chosen", "kind"),
    [
        ({}, DatabaseStore),
        ({"STORE": "memory"}, MemoryStore),
        ({"STORE": "mcp_django.stores.memory.MemoryStore"}, MemoryStore),
    ],
)
def test_a_process_has_one_store_until_the_settings_change(settings, configure, chosen, kind):
    settings.MCP_DJANGO = chosen
    store = get_store()

    assert isinstance(store, kind)
    assert get_store() is store
    configure(NAME="Another")
    assert get_store() is not store


class Faulty:
    def __init__(self):
        raise ValueError("no room")


UNKNOWN = ["mamory", "", ".", "tests.nowhere.Store", "tests.stores.No"]


@pytest.mark.parametrize(
    ("name", "error", "sentence"),
    [
        *((name, ImproperlyConfigured, repr(name)) for name in UNKNOWN),
        (f"{__name__}.Faulty", ValueError, "no room"),
    ],
)
def test_a_store_that_nobody_has_is_named_and_a_mistake_of_the_projects_own_is_its_own(
    configure, name, error, sentence
):
    configure(STORE=name)

    with pytest.raises(error, match=sentence):
        get_store()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
# pytest's own threads do not matter to a child that only answers one question.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_a_store_of_its_own(configure):
    configure(STORE="memory")
    before = get_store()

    child = os.fork()
    if not child:
        os._exit(0 if get_store() is not before else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_redis_without_its_package_is_a_mistake_that_says_what_to_install(configure, monkeypatch):
    # As where it is not installed: None makes the import fail.
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.delitem(sys.modules, "mcp_django.stores.redis", raising=False)
    configure(STORE="redis", STORE_URL="redis://127.0.0.1:1/0")

    with pytest.raises(ImproperlyConfigured, match=r"django-mcp-orm\[redis\]"):
        get_store()
