"""What a person does in the admin: open a page, change what its form shows, press Save."""

from __future__ import annotations

from django.core.cache import cache
from django.db import transaction
from django.db.models import QuerySet

from mcp_django.exposure.forms.html import read_page


def save_in_browser(browser, url, changes):
    """Send the form of a page with these values in place of those that it shows."""
    page = browser.get(url)
    form = max(read_page(page.content.decode()).forms, key=lambda one: len(one.controls))
    data = {}
    for name, value in form.pairs():
        data.setdefault(name, []).append(value)
    answer = browser.post(url, {**data, **changes, "_save": "Save"})
    assert answer.status_code == 302, answer.context["errors"]
    return answer


def rows_after(act, *models):
    """All rows of these models after an action, which is undone."""
    with transaction.atomic():
        act()
        # Not through a manager: that of django-modeltranslation leaves languages out.
        rows = {one.__name__: list(QuerySet(one).order_by("pk").values()) for one in models}
        transaction.set_rollback(True)
    # In which django-parler puts what it saves.
    cache.clear()
    return rows
