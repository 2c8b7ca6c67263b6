"""What is decided in one process counts in every other within a second."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.db import connection
from django.test import Client as Browser
from django.urls import reverse

from mcp_django.levels import Level
from tests.children import start

pytestmark = [pytest.mark.live, pytest.mark.thorough]


PAGE = reverse("admin:mcp_django_exposedmodel_change", args=["shop.order"])


@pytest.fixture
def other(transactional_db):
    with start(
        [sys.executable, "-m", "tests.admin.two_processes", connection.settings_dict["NAME"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.stdin.close()


def level_after(process, seconds):
    """The level that the other process knows of when so much of its time has passed."""
    process.stdin.write(f"shop.order {seconds}\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def test_a_level_counts_in_another_process_within_a_second(other, make_user):
    browser = Browser()
    browser.force_login(make_user("boss", is_staff=True, is_superuser=True))
    before = level_after(other, 0)
    browser.get(reverse("admin:mcp_django_exposedmodel_changelist"))
    assert before == Level.READ

    for level in (Level.AGGREGATES, Level.HIDDEN, Level.WRITE):
        form = browser.get(PAGE).context["adminform"].form
        codes = {f"uses-{name}-code": "1" for name in form.fields["uses"].initial}
        sent = {"level": level.value, "based_on": form["based_on"].value(), **codes}
        assert browser.post(PAGE, sent).status_code == 302

        assert level_after(other, 0.5) == before
        assert level_after(other, 0.5) == level
        before = level
