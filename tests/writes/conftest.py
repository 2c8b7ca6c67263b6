from __future__ import annotations

import io
import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pytest
from django.contrib.admin import ModelAdmin
from django.contrib.contenttypes.admin import GenericTabularInline
from django.core.files.base import ContentFile
from PIL import Image

from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from tests.workshop.admin import ThingAdmin, site
from tests.workshop.exposed import exposed
from tests.workshop.models import Part, Remark, Tag, Thing


@pytest.fixture(autouse=True)
def _workshop(request, settings, tmp_path):
    """The admin of the workshop, and what it exposes; `exposure(Thing={...})` marks changes."""
    settings.MEDIA_ROOT = tmp_path
    own = {"ADMIN_SITES": ["workshop"], "KEEP_CHANGES": ["workshop"]}
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, **own}
    marker = request.node.get_closest_marker("exposure")
    with exposed(**({} if marker is None else marker.kwargs)):
        yield


@pytest.fixture
def client_user(superuser):
    return superuser


@pytest.fixture
def tags(db):
    """Two that are active, and one that is not any more."""
    return [
        Tag.objects.create(name="red"),
        Tag.objects.create(name="blue"),
        Tag.objects.create(name="old", is_active=False),
    ]


def png():
    out = io.BytesIO()
    Image.new("RGB", (1, 1)).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def thing(tags):
    """With values that browsers lose: spaces, line breaks, microseconds, stale relations."""
    red, blue, old = tags
    stored = Thing(
        title="T", note="  kept spaces \n x ", slug="t-slug", count=12345, ratio=1234567.125,
        price=Decimal("1234.500"), local_price=Decimal("1234.500"), is_on=True, is_odd=False,
        day=date(2026, 1, 2), day_in_parts=date(2026, 1, 2),
        at=datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
        at_in_one=datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
        made_at=datetime(2025, 1, 2, 3, 4, 5, 678901, UTC),
        clock=time(1, 2, 3, 456), span=timedelta(days=1, microseconds=5),
        data={"a": [1, {"b": "ü"}]}, reference=uuid.uuid4(), mail="a@example.com",
        link="https://example.com/x", address="10.0.0.1", state="paid", radio="b", rank=2,
        tag=red, tag_active=old, tag_raw=red, tag_searched=blue, pair="x,y", locked="lo",
        unseen="keep", secret_code="s3cret", low=1, high=5, group="g", number=1,
        newlines="\n\nlead\r\nx",
    )  # fmt: skip
    stored.paper.save("paper.txt", ContentFile(b"paper"), save=False)
    stored.picture.save("picture.png", ContentFile(png()), save=False)
    stored.save()
    for name in ("tags", "tags_raw", "tags_searched", "tags_aside", "tags_boxes"):
        getattr(stored, name).set([red, blue])
    stored.tags_active.set([red, old])
    for at in range(3):
        Part.objects.create(
            thing=stored, name=f" p{at}", at=datetime(2026, 1, 1, 0, 0, 0, 123456, UTC)
        )
    stored.scraps.create(text=" scrap ")
    return stored


@pytest.fixture
def snapshot():
    return whole


def whole(thing):
    """Everything that is stored about a thing, but for the time of the last change."""
    row = Thing.objects.filter(pk=thing.pk).values().get()
    del row["modified_at"]
    for field in Thing._meta.many_to_many:
        row[field.name] = sorted(getattr(thing, field.name).values_list("pk", flat=True))
    for name in ("parts", "scraps"):
        row[name] = list(getattr(thing, name).order_by("pk").values())
    return row


@pytest.fixture
def remarks(monkeypatch):
    """Remarks are rows in the form of a thing, and their rules hide some."""

    class RemarkInline(GenericTabularInline):
        model = Remark

    class RemarkAdmin(ModelAdmin):
        def get_queryset(self, request):
            return super().get_queryset(request).filter(is_hidden=False)

    monkeypatch.setattr(ThingAdmin, "inlines", [RemarkInline])
    site.register(Remark, RemarkAdmin)
    options = {"fields": ["id", "text"], "level": Level.WRITE}
    registry.register(Remark, type("RemarkExposure", (ModelExposure,), options))
    yield
    registry.unregister(Remark)
    site.unregister(Remark)
