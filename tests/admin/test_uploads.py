"""The page on which staff put files for their assistants."""

from __future__ import annotations

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from mcp_django.models import Upload
from mcp_django.models.uploads import MOST
from tests.clients import browser_of

pytestmark = pytest.mark.django_db

LIST = "/admin/mcp_django/upload/"


@pytest.fixture
def ada(make_user):
    return make_user("ada", is_staff=True)


@pytest.fixture
def browser(ada):
    return browser_of(ada)


@pytest.fixture
def upload(ada):
    return Upload.objects.create(user=ada, filename="mine.txt", data=b"mine", size=4)


@pytest.fixture
def theirs(make_user):
    bob = make_user("bob", is_staff=True)
    return Upload.objects.create(user=bob, filename="secret.txt", data=b"secret", size=6)


def text_of(response):
    """What a person reads on a page of the admin, without its tags."""
    return re.sub(r"<[^>]*>", " ", response.content.decode())


def put(browser, name="photo.png", content=b"bytes", **more):
    return browser.post(f"{LIST}add/", {"file": SimpleUploadedFile(name, content), **more})


def test_staff_put_a_file_and_read_what_to_tell_their_assistant(browser, ada, theirs):
    index = browser.get(reverse("admin:index")).content.decode()
    # What a browser sends besides decides nothing.
    response = put(browser, user=theirs.user.pk, reference="chosen", filename="x", size=1)

    upload = Upload.objects.get(user=ada)
    assert LIST in index
    assert "Files for assistants" in index
    assert upload.reference != "chosen"
    assert (upload.user, upload.filename, bytes(upload.data), upload.size) == (
        ada, "photo.png", b"bytes", 5,
    )  # fmt: skip
    assert response.url == LIST
    shown = text_of(browser.get(LIST))
    assert "photo.png" in shown
    assert upload.address in shown
    assert upload.address in text_of(browser.get(f"{LIST}{upload.pk}/change/"))
    entry = LogEntry.objects.get()
    assert entry.user == ada
    assert entry.object_repr.startswith("photo.png, upload://")


@pytest.mark.parametrize(
    ("name", "most", "words"),
    [
        ("photo.png", 4, "This file has 5\xa0bytes. At most 4\xa0bytes fit."),
        ("x" * 250, 5, "The name of the file is too long: at most 200 bytes."),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_the_limit(browser, configure, name, most, words):
    configure(MAX_UPLOAD=most)

    assert words in text_of(put(browser, name=name))
    assert not Upload.objects.exists()


def test_the_newest_are_kept(browser, ada, theirs):
    for number in range(MOST + 2):
        put(browser, name=f"{number}.txt")

    names = set(Upload.objects.filter(user=ada).values_list("filename", flat=True))
    assert names == {f"{number}.txt" for number in range(2, MOST + 2)}
    assert Upload.objects.filter(pk=theirs.pk).exists()


def test_nobody_sees_or_deletes_the_file_of_somebody_else(browser, make_user, theirs):
    root = browser_of(make_user("root", is_staff=True, is_superuser=True))

    for one in (browser, root):
        assert "secret.txt" not in text_of(one.get(LIST))
        for page in ("change", "delete", "history"):
            assert one.get(f"{LIST}{theirs.pk}/{page}/").status_code == 302
        selected = {"action": "delete_selected", "_selected_action": theirs.pk, "post": "yes"}
        one.post(LIST, selected)
    assert Upload.objects.filter(pk=theirs.pk).exists()


def test_a_file_is_deleted_and_never_replaced(browser, upload):
    page = f"{LIST}{upload.pk}/"

    replaced = browser.post(f"{page}change/", {"file": SimpleUploadedFile("b.txt", b"b")})
    upload.refresh_from_db()
    deleted = browser.post(f"{page}delete/", {"post": "yes"})

    assert replaced.status_code == 403
    assert bytes(upload.data) == b"mine"
    assert deleted.status_code == 302
    assert not Upload.objects.exists()


def test_who_is_not_staff_has_no_such_page(make_user, upload):
    outside = browser_of(make_user("customer", "add_upload", "view_upload"))

    assert outside.get(LIST).status_code == 302
    assert put(outside).status_code == 302
    assert Upload.objects.count() == 1


def test_the_list_reads_no_file(browser, upload, django_assert_num_queries):
    with django_assert_num_queries(7) as captured:
        browser.get(LIST)

    assert not [query for query in captured if re.search(r"\bdata\b", query["sql"])]
