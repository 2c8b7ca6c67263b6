"""What stands beside a record: links to its files, and when it was changed."""

from __future__ import annotations

import msgspec
import pytest
from django.core.files.base import ContentFile

from tests.clients import CheckedClient
from tests.shop.mcp import OrderExposure
from tests.shop.models import Memo, Order
from tests.spec import requirement

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def memo():
    memo = Memo(text="x", code="m")
    memo.scan.save("scan.png", ContentFile(b"\x89PNG"))
    memo.draft.save("draft.txt", ContentFile(b"secret"))
    return memo


def blocks(client, **arguments):
    params = {"name": "get_record", "arguments": arguments}
    result = client.request("tools/call", params)
    return result["content"]


@requirement("resources:attributes")
def test_a_record_is_followed_by_links_to_its_files(staff, revision, memo):
    client = CheckedClient(user=staff, revision=revision)

    text, link = blocks(client, model="shop.memo", pk=memo.pk)

    uri = f"django://files/shop.memo/{memo.pk}/scan"
    if revision.features.resource_links:
        assert link == {
            "type": "resource_link",
            "uri": uri,
            "name": "scan.png",
            "title": "scan",
            "mimeType": "image/png",
            "size": 4,
        }
        assert msgspec.json.decode(text["text"])["scan"] == "scan.png"
    else:
        assert link == {"type": "text", "text": f"scan: {uri}"}
    assert "django://files" not in text["text"]
    assert client.request("resources/read", {"uri": uri})["contents"][0]["blob"]


def test_only_files_that_the_answer_names_are_linked(client, memo):
    empty = Memo.objects.create(text="x", code="e")

    assert len(blocks(client, model="shop.memo", pk=memo.pk, fields=["code"])) == 1
    assert len(blocks(client, model="shop.memo", pk=empty.pk)) == 1
    assert "draft" not in str(blocks(client, model="shop.memo", pk=memo.pk))


@pytest.mark.parametrize("stored", ["gone.q7z", "../../etc/passwd"])
def test_a_file_that_cannot_be_measured_has_no_size(client, memo, stored):
    Memo.objects.update(scan=stored)

    _, link = blocks(client, model="shop.memo", pk=memo.pk)

    assert "size" not in link
    assert link["name"] == stored.rpartition("/")[2]


# When a record was changed


def test_the_text_of_a_record_says_when_it_was_changed(staff, revision, monkeypatch):
    monkeypatch.setattr(OrderExposure, "modified_field", "placed_at")
    order = Order.objects.create(number="A1", placed_at="2026-01-31T12:00:00Z")
    client = CheckedClient(user=staff, revision=revision)

    (text,) = blocks(client, model="shop.order", pk=order.pk)

    shown = text.get("annotations", {}).get("lastModified")
    has_it = revision.features.last_modified
    assert shown == ("2026-01-31T12:00Z" if has_it else None)


def test_what_a_client_should_see_first_has_priority(client):
    annotations = {one["uri"]: one.get("annotations", {}) for one in client.list_resources()}

    assert annotations["django://site"]["priority"] == 1.0
    assert annotations["django://models/shop.order"]["priority"] == 0.8
    assert "priority" not in annotations["django://objects/shop.order"]
