"""What the admin answers to an action becomes a result: text, a file, a link, or a refusal."""

from __future__ import annotations

import base64

import pytest
from django.core.signals import request_finished
from django.http import HttpResponse

from mcp_django.exposure.admin_bridge.actions import File, file_name
from tests.depot import actions
from tests.depot.models import Parcel

# Of packages that were written for Django 6.0.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:Overriding get_action"),
]


@pytest.fixture
def parcel(db):
    actions.closed.clear()
    return Parcel.objects.create(number="n1")


def content(client, name, parcel):
    params = {"name": f"depot_parcel_{name}", "arguments": {"pks": [parcel.pk]}}
    return client.request("tools/call", params)["content"]


def test_a_file_of_text_is_embedded_as_text(boss, parcel):
    _, block = content(boss, "list_numbers", parcel)

    assert block["resource"] == {
        "uri": "django://actions/depot.parcel/list_numbers/numbers.csv",
        "mimeType": "text/csv",
        "text": "n1\n",
    }


def test_a_file_of_bytes_is_embedded_and_closed(boss, parcel):
    _, block = content(boss, "labels", parcel)

    assert block["resource"]["uri"] == "django://actions/depot.parcel/labels/labels.png"
    assert base64.b64decode(block["resource"]["blob"]) == b"\x89PNG\xff" * 10
    assert actions.closed == ["sheet"]


def test_reading_an_answer_is_not_the_end_of_the_request(boss, parcel):
    finished = []

    def listen(**kwargs):
        finished.append(kwargs)

    request_finished.connect(listen)
    try:
        content(boss, "labels", parcel)
    finally:
        request_finished.disconnect(listen)

    # One is that of the call itself, or none.
    assert len(finished) <= 1


@pytest.mark.parametrize(("name", "longest"), [("huge", 1048576), ("half_huge", 786432)])
def test_a_file_that_is_too_long_is_refused(boss, parcel, name, longest):
    answer = boss.call_tool(f"depot_parcel_{name}", pks=[parcel.pk])

    assert answer.is_error
    assert f"a file of more than {longest} bytes" in answer.text
    assert "Choose fewer records." in answer.text


def test_what_cannot_be_closed_is_logged_and_answered_all_the_same(
    boss, parcel, monkeypatch, caplog
):
    def fail(self):
        raise OSError("gone")

    monkeypatch.setattr("django.http.response.HttpResponse.__init__", with_closer(fail))

    _, block = content(boss, "list_numbers", parcel)

    assert block["resource"]["text"] == "n1\n"
    assert "could not be closed" in caplog.text


def with_closer(close):
    made = HttpResponse.__init__

    def init(self, *args, **kwargs):
        made(self, *args, **kwargs)
        self._resource_closers.append(lambda: close(self))

    return init


def test_an_endless_stream_ends_at_the_limit_and_is_closed(boss, parcel):
    answer = boss.call_tool("depot_parcel_endless", pks=[parcel.pk])

    assert answer.is_error
    assert "more than 1048576 bytes" in answer.text
    assert actions.closed == ["endless"]


def test_an_asynchronous_stream_is_refused_in_words(boss, parcel):
    answer = boss.call_tool("depot_parcel_later", pks=[parcel.pk])

    assert answer.is_error
    assert "asynchronous stream" in answer.text


def test_another_address_is_a_link(boss, parcel):
    abroad = boss.call_tool("depot_parcel_report", pks=[parcel.pk]).data
    at_home = boss.call_tool("depot_parcel_history", pks=[parcel.pk]).data

    assert abroad == {"outcome": "link", "records": 1, "link": "https://reports.example/7"}
    assert at_home["link"] == "http://testserver/depot/depot/driver/"


def test_a_status_of_an_error_is_one(boss, parcel):
    answer = boss.call_tool("depot_parcel_teapot", pks=[parcel.pk])

    assert answer.is_error
    assert "the status 418" in answer.text


def test_what_the_action_refuses_in_words_is_told_in_its_words(boss, parcel):
    answer = boss.call_tool("depot_parcel_refuse", pks=[parcel.pk])

    assert answer.is_error
    assert answer.text == "The depot is closed. Come back at eight."


def test_what_the_action_does_not_find_is_not_let_through(boss, parcel):
    answer = boss.call_tool("depot_parcel_vanish", pks=[parcel.pk])

    assert answer.is_error
    assert answer.text == "The admin does not let you do this."


def test_an_action_that_raises_half_way_says_so_and_keeps_its_secret(boss, parcel, caplog):
    answer = boss.call_tool("depot_parcel_break_half_way", pks=[parcel.pk])

    parcel.refresh_from_db()
    number = answer.text.partition("(id ")[2].partition(")")[0]
    assert answer.is_error
    assert "It may have been done in part: check before you repeat it." in answer.text
    assert "secret" not in answer.text
    assert len(number) == 16
    assert number in caplog.text
    assert "secret: the belt tore" in caplog.text
    assert parcel.status == "lost"


def test_an_atomic_action_that_raises_half_way_is_taken_back(boss, parcel):
    answer = boss.call_tool("depot_parcel_break_whole", pks=[parcel.pk])

    parcel.refresh_from_db()
    assert answer.is_error
    assert "What it did in the database was taken back." in answer.text
    assert parcel.status == "waiting"


def test_requests_that_are_atomic_are_so_here(boss, parcel, monkeypatch):
    from django.db import connections

    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)

    boss.call_tool("depot_parcel_break_half_way", pks=[parcel.pk])

    parcel.refresh_from_db()
    assert parcel.status == "waiting"


def test_progress_is_told_and_a_browser_has_none(boss, parcel):
    params = {
        "name": "depot_parcel_count_slowly",
        "arguments": {"pks": [parcel.pk, Parcel.objects.create(number="n2").pk]},
        "_meta": {"progressToken": "t"},
    }

    *notifications, final = boss.exchange("tools/call", params)

    assert notifications[-1]["params"] == {
        "progressToken": "t",
        "progress": 2,
        "total": 2,
        "message": "parcel 2",
    }
    assert "Counted." in final["result"]["content"][0]["text"]


def test_the_same_action_runs_in_a_browser(boss, parcel, admin_client):
    page = {"action": "count_slowly", "_selected_action": [parcel.pk]}

    response = admin_client.post("/depot/depot/parcel/", page, follow=True)

    assert "Counted." in response.content.decode()


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ('attachment; filename="a.csv"', "a.csv"),
        ("attachment; filename*=utf-8''%C3%A4.csv", "ä.csv"),
        ('attachment; filename="../../etc/passwd"', "passwd"),
        (r'attachment; filename="C:\\x\\b.csv"', "b.csv"),
        ("attachment", "answer"),
        ("inline", "answer"),
        (f'attachment; filename="{"a" * 300}.csv"', "a" * 96 + ".csv"),
    ],
)
def test_the_name_of_a_file_is_its_last_part(header, name):
    response = HttpResponse(headers={"Content-Disposition": header})

    assert file_name(response) == name


@pytest.mark.parametrize("charset", ["utf-8", "no-such-charset"])
def test_text_in_an_encoding_that_it_does_not_have_is_bytes(charset):
    file = File(name="a", mime_type="text/plain", content=b"\xff", charset=charset)

    contents = file.embedded("django://actions/x").contents

    assert (contents.text, contents.blob) == (None, b"\xff")


def test_json_is_text():
    file = File(name="a", mime_type="application/json", content=b"{}", charset="utf-8")

    assert file.embedded("django://actions/x").contents.text == "{}"
