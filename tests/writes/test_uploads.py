"""Files that a person put into the admin are written into records by the person's assistants."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from mcp_django.models import Upload
from mcp_django.models.uploads import KEPT
from tests.workshop.models import Thing
from tests.writes.calls import create, refusal

pytestmark = pytest.mark.django_db

MISSING = "There is no such file, or it has expired."


def put(user, *, filename="a.txt", data=b"hello", **facts):
    return Upload.objects.create(user=user, filename=filename, data=data, size=len(data), **facts)


@pytest.mark.thorough
def test_an_upload_is_written_into_a_record_and_can_be_used_again(client, superuser):
    # Longer than any argument: MAX_FILE is not about it.
    upload = put(superuser, data=b"x" * 3_000_000)

    for number in range(2):
        answer = create(client, title="T", paper=upload.address, number=number)
        assert not answer.is_error, answer.text

    for made in Thing.objects.all():
        with made.paper.open() as opened:
            assert len(opened.read()) == 3_000_000
        assert made.paper.name.startswith("papers/a")


@pytest.mark.thorough
def test_the_form_judges_what_an_upload_holds(client, superuser):
    upload = put(superuser, filename="a.png", data=b"this is no picture")

    answer = refusal(create(client, title="T", picture=upload.address))

    assert "picture: " in answer
    assert not Thing.objects.exists()


def test_describe_model_says_that_an_upload_will_do(client):
    described = client.call_tool("describe_model", model="workshop.thing").text

    assert "Or upload://..., of a file that the person put into the admin." in described


# Hostile


def test_the_upload_of_somebody_else_is_missing_in_the_same_words(client, make_user):
    theirs = put(make_user("eve", is_staff=True))

    refused = create(client, title="T", paper=theirs.address)
    missing = create(client, title="T", paper="upload://nothing")

    assert MISSING in refused.text
    assert refused.text == missing.text
    assert not Thing.objects.exists()


def test_an_expired_upload_is_missing(client, superuser):
    ago = timezone.now() - KEPT
    expired = put(superuser, created_at=ago)
    usable = put(superuser, created_at=ago + timedelta(minutes=5))

    assert MISSING in create(client, title="T", paper=expired.address).text
    assert not create(client, title="T", paper=usable.address).is_error


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("upload://", MISSING),
        ("upload://\x00", MISSING),
        ("upload://" + "x" * 5000, MISSING),
        ("upload://%", MISSING),
        ("upload://' OR 1=1 --", MISSING),
        ("UPLOAD://x", "paper: A file is"),
        ("file:///etc/passwd", "paper: A file is"),
        ("http://localhost/x", "paper: A file is"),
    ],
    ids=lambda one: one[:20],
)
def test_an_address_that_was_made_up_leads_nowhere(client, superuser, address, words):
    put(superuser)

    assert words in create(client, title="T", paper=address).text
