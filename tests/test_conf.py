from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

import mcp_django
from mcp_django.conf import Config, get_config


def test_an_unknown_key_is_an_error_that_names_it(settings):
    settings.MCP_DJANGO = {"PAGESIZE": 7}

    with pytest.raises(ImproperlyConfigured, match="PAGESIZE"):
        get_config()


def test_the_version_of_the_site_is_that_of_the_package_unless_it_says(settings):
    settings.MCP_DJANGO = {}

    assert get_config().version == mcp_django.__version__
    assert Config(version="2").version == "2"
