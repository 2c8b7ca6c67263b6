from __future__ import annotations

import mcp_django
from mcp_django.conf import Config, get_config


def test_the_version_of_the_site_is_that_of_the_package_unless_it_says(settings):
    settings.MCP_DJANGO = {}

    assert get_config().version == mcp_django.__version__
    assert Config(version="2").version == "2"
