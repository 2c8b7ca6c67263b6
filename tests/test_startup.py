"""A mistake in MCP_DJANGO is a message of the system check, never a traceback before it."""

from __future__ import annotations

import os

import pytest

from tests.children import ROOT, finished

pytestmark = [pytest.mark.live, pytest.mark.thorough]


def run(*arguments, settings, folder):
    paths = os.pathsep.join([str(ROOT), str(folder)])
    return finished(*arguments, DJANGO_SETTINGS_MODULE=settings, PYTHONPATH=paths)


#: Prints which loggers say nothing.
SILENT = """
import logging
{beginning}
from mcp_django.asgi import get_mcp_application
get_mcp_application()
for name, logger in sorted(logging.root.manager.loggerDict.items()):
    if name.startswith("mcp_django") and getattr(logger, "disabled", False):
        print(name)
print("done")
"""


@pytest.mark.parametrize("beginning", ["", "import django; django.setup()"])
def test_logging_that_disables_existing_loggers_leaves_ours_alone(tmp_path, beginning):
    """Which is the default of LOGGING."""
    settings = "from tests.settings import *\n\nLOGGING = {'version': 1}\n"
    (tmp_path / "logging_settings.py").write_text(settings)

    code = SILENT.format(beginning=beginning)
    done = run("-c", code, settings="logging_settings", folder=tmp_path)

    assert done.stdout.split() == ["done"], done.stderr


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ({"PAGESIZE": 7}, ("unknown key 'PAGESIZE'", "Write 'PAGE_SIZE'.")),
        ({"PAGE_SIZE": "many"}, ("is 'many'", "a positive whole number")),
        ("Shop", ("MCP_DJANGO is not a dictionary.", '{"NAME": "Shop"}')),
    ],
)
def test_a_site_with_the_admin_is_told_of_a_mistake_by_the_system_check(tmp_path, mistake, words):
    settings = f"from tests.settings import *\n\nMCP_DJANGO = {mistake!r}\n"
    (tmp_path / "mistaken_settings.py").write_text(settings)

    done = run("-m", "django", "check", settings="mistaken_settings", folder=tmp_path)

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "mcp_django.E003" in done.stderr
    for sentence in words:
        assert sentence in done.stderr
