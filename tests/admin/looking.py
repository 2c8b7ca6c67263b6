"""What the tests of the pages about assistants share."""

from __future__ import annotations

import html
import re
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

from django.contrib.auth.models import Permission
from django.db import connection
from django.db.models import Model
from django.test.utils import CaptureQueriesContext, isolate_apps
from django.urls import reverse
from django.utils import timezone

from mcp_django.audit.records import Gathered, records
from mcp_django.auth import throttles
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.registry import registry
from mcp_django.stores.sessions import OpenStream, Session, get_store
from mcp_django.testing.client import kept_connections
from mcp_django.transports.threads import InlineLane, lanes
from tests.clients import browser_of


def url(name):
    return reverse(f"admin:mcp_django_{name}")


def allow(user, *names):
    """Give permissions, by "app.codename"."""
    for name in names:
        app, _, codename = name.partition(".")
        found = Permission.objects.get(content_type__app_label=app, codename=codename)
        user.user_permissions.add(found)
    return type(user).objects.get(pk=user.pk)


def page_of(row, page="change"):
    """The address of a page about a row of ours."""
    return reverse(f"admin:mcp_django_{row._meta.model_name}_{page}", args=[row.pk])


def words_in(markup):
    """What a person reads, without the tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def text_of(response):
    """What a person reads on a page. On those about assistants the head does not count."""
    content = response.content.decode()
    return words_in(content[max(content.find("mcp-look"), 0) :])


def row_of(response, name):
    """The text of the row of a table that begins with a name."""
    rows = re.findall(r"<tr>.*?</tr>", response.content.decode(), re.DOTALL)
    [found] = [row for row in rows if re.search(rf"<code>{re.escape(name)}</code>", row)]
    return words_in(found)


def post_text(user, tool, text):
    """Try a tool with these arguments, which may be any text."""
    return browser_of(user).post(f"{url('try_it')}?tool={tool}", {"arguments": text})


@contextmanager
def many_models(count):
    """So many models more, without tables, which everybody may see."""
    made = []
    with isolate_apps("tests.shop"):
        for number in range(count):
            meta = type("Meta", (), {"app_label": "shop"})
            attributes = {"Meta": meta, "__module__": __name__}
            made.append(type(f"Many{number}", (Model,), attributes))

    class Open(ModelExposure):
        fields = ["id"]

        def has_view_permission(self, request, obj=None):
            return True

    for model in made:
        registry.register(model, Open)
    try:
        yield made
    finally:
        for model in made:
            registry.unregister(model)


def queries_of(work):
    """How many statements some work takes that answers with a page."""
    with CaptureQueriesContext(connection) as captured:
        assert work().status_code == 200
    return len(captured)


@contextmanager
def in_this_thread():
    """Calls run in the test's thread and transaction."""
    throttles.calls.clear()
    throttles.failures.clear()
    gathered = Gathered()
    with records.using(gathered), lanes.using(InlineLane()), kept_connections():
        yield gathered


def add_session(key="s1", *, user, uris=(), minutes=5, **facts):
    """Store a session that began so many minutes ago, and return its key."""
    now = timezone.now()
    session = Session(
        key=key,
        server="default",
        principal=f"default/user:{user and user.pk}/laptop",
        user="" if user is None else str(user.pk),
        transport="streamable_http",
        revision="2025-11-25",
        client={"name": "Editor", "version": "1.2"},
        is_initialized=True,
        created=now - timedelta(minutes=minutes),
        seen=now,
    )
    get_store().add_session(replace(session, **facts))
    for uri in uris:
        get_store().subscribe(key, uri, most=300)
    return key


def add_stream(key="t1", *, user, minutes=5, **facts):
    """Store a stream that was opened so many minutes ago, and return its key."""
    stream = OpenStream(
        key=key,
        owner="hub",
        server="default",
        principal="default/user:1/laptop",
        user="" if user is None else str(user.pk),
        client="Assistant",
        kind="listen",
        revision="2026-07-28",
        topics=("tools", "django://objects/shop.order/5"),
        opened=timezone.now() - timedelta(minutes=minutes),
    )
    get_store().show_stream(replace(stream, **facts))
    return key
