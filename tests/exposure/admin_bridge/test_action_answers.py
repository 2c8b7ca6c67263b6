"""What the admin answers to an action becomes a result: text, a file, a link, or a refusal."""

from __future__ import annotations

import base64

import pytest
from django.core.signals import request_finished
from django.db import connections
from django.http import HttpResponse

from mcp_django.exposure.admin_bridge.actions import File, file_name
from tests.depot import actions
from tests.depot.models import Parcel

# Of packages that were written for Django 6.0.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:Overriding get_action"),
]


@pytest.fixture(autouse=True)
def _nothing_is_closed():
    actions.closed.clear()


def embedded(client, name, parcel):
    params = {"name": f"depot_parcel_{name}", "arguments": {"pks": [parcel.pk]}}
    return client.request("tools/call", params)["content"][1]["resource"]


def test_a_file_is_embedded_as_text_or_as_bytes_and_closed(boss, parcel):
    text, binary = embedded(boss, "list_numbers", parcel), embedded(boss, "labels", parcel)

    assert text == {
        "uri": "django://actions/depot.parcel/list_numbers/numbers.csv",
        "mimeType": "text/csv",
        "text": "n1\n",
    }
    assert binary["uri"] == "django://actions/depot.parcel/labels/labels.png"
    assert base64.b64decode(binary["blob"]) == b"\x89PNG\xff" * 10
    assert actions.closed == ["sheet"]


def test_reading_an_answer_is_not_the_end_of_the_request(boss, parcel):
    finished = []

    def listen(**kwargs):
        finished.append(kwargs)

    request_finished.connect(listen)
    try:
        embedded(boss, "labels", parcel)
    finally:
        request_finished.disconnect(listen)

    # One is that of the call itself, or none.
    assert len(finished) <= 1


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("huge", "a file of more than 1048576 bytes, which is too long to be sent. Choose fewer"),
        ("half_huge", "a file of more than 786432 bytes"),
        ("endless", "a file of more than 1048576 bytes"),
        ("later", "asynchronous stream"),
        ("teapot", "the status 418"),
        ("refuse", "The depot is closed. Come back at eight."),
        ("vanish", "The admin does not let you do this."),
    ],
)
def test_what_cannot_be_answered_is_refused_in_words(boss, parcel, name, sentence):
    assert sentence in boss.refusal(f"depot_parcel_{name}", pks=[parcel.pk])
    # A stream ends at the limit, and is closed.
    assert actions.closed == (["endless"] if name == "endless" else [])


def test_what_cannot_be_closed_is_logged_and_answered_all_the_same(
    boss, parcel, monkeypatch, caplog
):
    def fail(self):
        raise OSError("gone")

    monkeypatch.setattr("django.http.response.HttpResponse.__init__", with_closer(fail))

    assert embedded(boss, "list_numbers", parcel)["text"] == "n1\n"
    assert "could not be closed" in caplog.text


def with_closer(close):
    made = HttpResponse.__init__

    def init(self, *args, **kwargs):
        made(self, *args, **kwargs)
        self._resource_closers.append(lambda: close(self))

    return init


def test_another_address_is_a_link(boss, parcel):
    abroad = boss.call_tool("depot_parcel_report", pks=[parcel.pk]).data
    at_home = boss.call_tool("depot_parcel_history", pks=[parcel.pk]).data

    assert abroad == {"outcome": "link", "records": 1, "link": "https://reports.example/7"}
    assert at_home["link"] == "http://testserver/depot/depot/driver/"


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


@pytest.mark.parametrize("name", ["break_whole", "break_half_way"])
def test_an_action_in_a_transaction_that_raises_half_way_is_taken_back(
    boss, parcel, monkeypatch, name
):
    if name == "break_half_way":
        monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)

    refusal = boss.refusal(f"depot_parcel_{name}", pks=[parcel.pk])

    parcel.refresh_from_db()
    assert "What it did in the database was taken back." in refusal
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


@pytest.mark.parametrize(
    ("mime_type", "content", "charset", "text"),
    [
        ("application/json", b"{}", "utf-8", "{}"),
        ("text/plain", b"\xff", "utf-8", None),
        ("text/plain", b"\xff", "no-such-charset", None),
    ],
)
def test_text_in_an_encoding_that_it_does_not_have_is_bytes(mime_type, content, charset, text):
    file = File(name="a", mime_type=mime_type, content=content, charset=charset)

    contents = file.embedded("django://actions/x").contents

    assert (contents.text, contents.blob) == (text, None if text else content)
