from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.core.cache.backends.locmem import LocMemCache

from mcp_django.stores.sessions import get_store


def test_sessions_are_in_the_default_cache_where_nobody_says_otherwise(settings):
    settings.MCP_DJANGO = {}

    assert isinstance(get_store().documents.cache, LocMemCache)


def test_a_process_has_one_store_until_the_settings_change(configure, settings):
    store = get_store()

    assert get_store() is store
    configure(NAME="Another")
    after = get_store()
    assert after is not store
    settings.CACHES = {**settings.CACHES}
    assert get_store() is not after


FORKS = """
import os, django
django.setup()
from mcp_django.stores.sessions import get_store
before, child = get_store(), os.fork()
if not child:
    os._exit(get_store() is before)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_a_store_of_its_own():
    # A process of its own: a thread of another test could hold a lock while this one forks.
    done = subprocess.run([sys.executable, "-c", FORKS], check=False, timeout=60)

    assert done.returncode == 0
