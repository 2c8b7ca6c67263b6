"""The content of file fields, and the links to it beside a record."""

from __future__ import annotations

import base64

import msgspec
import pytest
from django.core.files.base import ContentFile

from mcp_django.testing import Client
from tests.shop.models import Memo
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


def uri_of(memo, field):
    return f"django://files/shop.memo/{memo.pk}/{field}"


@pytest.mark.parametrize(
    ("name", "content", "mime_type"),
    [
        ("scan.png", b"\x89PNG", "image/png"),
        ("scan.q7z", b"?", "application/octet-stream"),
        # In another encoding.
        ("scan.txt", "Größe".encode("latin-1"), "text/plain"),
    ],
)
def test_a_file_travels_as_a_blob_with_its_type(client, memo, name, content, mime_type):
    memo.scan.save(name, ContentFile(content))
    uri = uri_of(memo, "scan")

    contents = client.request("resources/read", {"uri": uri})["contents"]

    blob = base64.b64encode(content).decode()
    assert contents == [{"uri": uri, "mimeType": mime_type, "blob": blob}]


@requirement("resources:uris")
@pytest.mark.parametrize(
    ("field", "stored"),
    [
        # Fields that name no file of this caller
        *((field, None) for field in ("draft", "text", "nothing", "pk", "id", "scan__name")),
        # Names without a file in the storage
        *(("scan", stored) for stored in ("", "gone.png", "../../../../etc/passwd")),
    ],
)
def test_what_is_no_file_of_the_caller_is_not_found(client, memo, field, stored):
    if stored is not None:
        Memo.objects.update(scan=stored)

    _, sentence = client.failure("resources/read", uri=uri_of(memo, field))

    assert sentence == "Resource not found."


def test_a_file_that_is_too_long_is_refused_in_words(client, memo, settings):
    memo.scan.save("scan.png", ContentFile(b"?" * 301))
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "MAX_RESPONSE": 400}

    _, sentence = client.failure("resources/read", uri=uri_of(memo, "scan"))

    assert "longer than 300 bytes" in sentence


def test_the_template_is_listed_only_to_who_may_see_a_file(make_user, client):
    def templates(client):
        listed = client.list_all("resources/templates/list", "resourceTemplates")
        return [one["name"] for one in listed]

    other = Client(user=make_user("other", "view_order", is_staff=True))

    assert "file" in templates(client)
    assert "file" not in templates(other)


# Beside a record


def blocks(client, **arguments):
    params = {"name": "get_record", "arguments": arguments}
    result = client.request("tools/call", params)
    return result["content"]


@requirement("resources:attributes")
def test_a_record_is_followed_by_links_to_its_files(client, revision, memo):
    text, link = blocks(client, model="shop.memo", pk=memo.pk)

    uri = uri_of(memo, "scan")
    if revision.features.resource_links:
        names = {"uri": uri, "name": "scan.png", "title": "scan"}
        assert link == {"type": "resource_link", **names, "mimeType": "image/png", "size": 4}
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
