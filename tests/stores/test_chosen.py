from __future__ import annotations

import os

import pytest
from django.core.exceptions import ImproperlyConfigured

from mcp_django.stores.chosen import get_store
from mcp_django.stores.memory import MemoryStore


@pytest.fixture
def choose(settings):
    def by_name(name, **others):
        settings.MCP_DJANGO = {**settings.MCP_DJANGO, "STORE": name, **others}

    return by_name


def test_a_process_has_one_store(choose):
    choose("memory")

    assert isinstance(get_store(), MemoryStore)
    assert get_store() is get_store()


def test_a_change_of_settings_makes_another(choose):
    choose("memory")
    before = get_store()

    choose("memory", NAME="Another")

    assert get_store() is not before


def test_a_store_of_the_project_is_named_by_its_path(choose):
    choose("mcp_django.stores.memory.MemoryStore")

    assert isinstance(get_store(), MemoryStore)


@pytest.mark.parametrize("name", ["mamory", "", ".", "tests.nowhere.Store", "tests.stores.No"])
def test_a_store_that_nobody_has_is_an_error_that_names_it(choose, name):
    choose(name)

    with pytest.raises(ImproperlyConfigured, match=repr(name)):
        get_store()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
# pytest's own threads do not matter to a child that only answers one question.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_a_store_of_its_own(choose):
    choose("memory")
    before = get_store()

    child = os.fork()
    if not child:
        os._exit(0 if get_store() is not before else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
