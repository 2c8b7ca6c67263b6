"""Records that are too long for a model: cut, and read in parts."""

from __future__ import annotations

import json

import pytest
from django.core.files.base import ContentFile

from mcp_django.exposure.query.find import part_of_text
from mcp_django.exposure.tools.records import RECORD_TOOLS
from mcp_django.testing.client import CLIENT
from tests.exposure.function_tools import context_of, refusal, text_of
from tests.nasty.models import Order
from tests.nasty.site import ORDER, caller, record, registry
from tests.shop.models import Memo

pytestmark = pytest.mark.django_db

LONG = "".join(f"{number:05} " for number in range(25_000))


@pytest.fixture
def memo(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    memo = Memo(text=LONG, code="m")
    memo.scan.save("scan.txt", ContentFile(LONG.encode()))
    return memo


def ask(client, memo, **arguments):
    return client.call_tool("get_record", model="shop.memo", pk=memo.pk, **arguments).text


def read(client, memo, **arguments):
    return json.loads(ask(client, memo, **arguments))


def test_a_record_that_no_client_holds_has_the_beginnings_of_its_texts_and_says_how_to_go_on(
    client, memo
):
    found = read(client, memo)

    assert found["code"] == "m"
    assert found["text"] == (
        f'{LONG[:4000]}... [cut: 150000 characters; get_record with "fields": ["text"], '
        '"offset": 4000 goes on]'
    )


def test_the_texts_of_a_record_that_fits_are_whole(client, memo):
    Memo.objects.update(text=LONG[:40_000])

    assert read(client, memo)["text"] == LONG[:40_000]


@pytest.mark.parametrize("field", ["text", "scan"])
def test_the_parts_of_a_text_or_file_are_the_whole(client, memo, field):
    parts, offset = [], 0
    while offset is not None:
        part = read(client, memo, fields=[field], offset=offset)
        assert (part["offset"], part["length"]) == (offset, len(LONG))
        parts.append(part["text"])
        offset = part.get("next")

    assert "".join(parts) == LONG
    assert len(parts) == 4


def test_a_part_begins_shortly_before_the_words_that_are_searched(client, memo):
    found = read(client, memo, fields=["text"], search="20000 2")
    later = ask(client, memo, fields=["text"], search="20000 2", offset=130_000)

    assert found["found_at"] == 120_000
    assert found["text"].startswith(LONG[119_800:])
    assert "'20000 2' is not there from character 130000 on." in later


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"offset": 0}, "name that field alone in fields"),
        ({"fields": ["text", "code"], "offset": 0}, "name that field alone in fields"),
        ({"fields": ["text"], "offset": 150_000}, "The text has 150000 characters."),
        ({"fields": ["text"], "offset": -1}, "The text has 150000 characters."),
        ({"fields": ["draft"], "offset": 0}, "draft"),
    ],
)
def test_a_part_that_is_not_there_is_refused(client, memo, arguments, words):
    assert words in ask(client, memo, **arguments)


def test_a_value_of_any_kind_is_read_as_its_text(client, memo):
    assert read(client, memo, fields=["pk"], offset=0)["text"] == str(memo.pk)


def test_a_file_that_is_no_text_has_no_parts(client, memo):
    memo.scan.save("scan.png", ContentFile(b"\x89PNG"))

    assert "scan is a file without text." in ask(client, memo, fields=["scan"], offset=0)


def test_a_long_text_file_is_cut_by_the_tool_and_whole_as_a_resource(client, memo):
    uri = f"django://files/shop.memo/{memo.pk}/scan"

    (cut,) = json.loads(client.call_tool("read_resource", uri=uri).text)["contents"]

    assert cut["text"].startswith(f'{LONG[:4000]}... [cut: 150000 characters; get_record with "fi')
    assert client.read_resource(uri) == LONG


@pytest.mark.parametrize(
    ("name", "most"), [("codex-mcp-client", 10_000), ("gemini-cli-mcp-client-x", 40_000)]
)
def test_a_client_that_holds_less_gets_less(client, monkeypatch, name, most):
    Memo.objects.bulk_create(Memo(text=LONG[:2000], code=f"m{n}") for n in range(40))
    monkeypatch.setitem(CLIENT, "name", name)

    text = client.call_tool("find_records", model="shop.memo", limit=40).text

    assert most - 2500 < len(text) < most + 200
    assert json.loads(text)["next"]


def part_of(who, order, **arguments):
    """A part of a record of the nasty site."""
    given = {"model": "nasty.order", "pk": order.pk, **arguments}
    answer = RECORD_TOOLS["get_record"].call(context_of(who), who, given)
    return json.loads(text_of(answer))


def test_json_is_cut_and_read_in_parts_as_its_text(shop):
    Order.objects.update(payload={"words": LONG.split()})
    whole = json.dumps({"words": LONG.split()}, separators=(",", ":"))
    who = caller(tables=registry({Order: {"fields": "id payload"}}))

    cut = record(who, Order, shop.a1.pk, longest=50_000)["payload"]
    part = part_of(who, shop.a1, fields=["payload"], offset=len(whole) - 20)

    assert cut.startswith(f"{whole[:4000]}... [cut: {len(whole)} characters; ")
    assert part == {"text": whole[-20:], "offset": len(whole) - 20, "length": len(whole)}


def test_a_fence_is_round_each_part_of_a_text_of_strangers(shop):
    Order.objects.update(remark="y" * 1500 + "x" * 600)
    who = caller(tables=registry({Order: {**ORDER, "untrusted_fields": "remark"}}))

    part = part_of(who, shop.a1, fields=["remark"], offset=1500)

    assert part["text"] == f"<data-{who.mark}>{'x' * 500}</data-{who.mark}>"
    assert part["note"] == "[cut: 100 more characters follow, which no tool shows]"


def test_a_part_is_as_long_as_its_bytes_allow():
    part = part_of_text("\x00" * 1000, offset=0, search="", longest=700)

    assert part == {"text": "\x00" * 116, "offset": 0, "length": 1000, "next": 116}
    assert part_of_text("ab", offset=0, search="", longest=1)["text"] == "a"
    assert refusal(part_of_text, "", offset=1, search="", longest=700)
