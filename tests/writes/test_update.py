"""A record is changed as the form of the admin would, and nothing but what was sent."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from django import forms
from django.contrib.admin import ModelAdmin
from django.contrib.admin.models import LogEntry
from django.core.exceptions import SuspiciousFileOperation
from django.core.files.storage import FileSystemStorage
from django.utils import translation

from tests.workshop.admin import TeamAdmin, TeamForm
from tests.workshop.models import Rack, Tag, Team, Thing
from tests.writes.calls import changed, differing, refusal, update

pytestmark = pytest.mark.django_db


@pytest.fixture(params=["en", "de"])
def language(request, settings):
    settings.LANGUAGE_CODE = request.param
    settings.USE_THOUSAND_SEPARATOR = True
    settings.TIME_ZONE = "Europe/Berlin"
    with translation.override(request.param):
        yield request.param


@pytest.mark.thorough
def test_one_field_that_is_sent_changes_one_field(client, thing, snapshot, language):
    before = snapshot(thing)

    answer = update(client, thing, title="new")

    assert not answer.is_error, answer.text
    assert differing(before, snapshot(thing)) == {"title"}
    assert list(answer.data["changed"]) == ["title"]


@pytest.mark.thorough
def test_repeating_what_is_stored_changes_nothing(client, thing, snapshot, language):
    before = snapshot(thing)

    answer = update(client, thing, count=12345, state="paid", at="2026-01-02T03:04:05.678901Z")

    # What the caller cannot read counts as changed, whatever it held.
    assert list(answer.data["changed"]) == ["count", "at"]
    assert snapshot(thing) == before


SAME = object()
VALUES = [
    ("note", "a\nb", SAME),
    ("note", "a\r\nb <b>&amp;</b> \"'", SAME),
    ("note", " outer ", "outer"),
    ("newlines", "\n\nkept", "kept"),
    ("newlines", "<b>&amp;\n" * 100_000 + "end", SAME),
    ("note", "", ""),
    ("note", None, ""),
    ("count", 1234567, SAME),
    ("count", "1234567", 1234567),
    ("ratio", 0.5, SAME),
    ("ratio", 1e300, SAME),
    ("price", "9.125", Decimal("9.125")),
    ("price", 1234.5, Decimal("1234.5")),
    ("local_price", "1234.125", Decimal("1234.125")),
    ("local_price", 1234567.125, Decimal("1234567.125")),
    ("is_on", False, False),
    ("is_odd", True, True),
    ("is_odd", None, None),
    ("day", "2030-12-31", date(2030, 12, 31)),
    ("day", None, None),
    ("day_in_parts", "2030-12-31", date(2030, 12, 31)),
    ("day_in_parts", None, None),
    ("at", "2030-01-02T03:04:05.123456Z", datetime(2030, 1, 2, 3, 4, 5, 123456, UTC)),
    ("at", "2030-01-02", datetime(2030, 1, 1, 23, 0, tzinfo=UTC)),
    ("at", None, None),
    ("at_in_one", "2030-07-02T03:04:05.5+05:00", datetime(2030, 7, 1, 22, 4, 5, 500000, UTC)),
    ("at_in_one", "2026-10-25T02:30:00+01:00", datetime(2026, 10, 25, 1, 30, tzinfo=UTC)),
    ("made_at", "2030-01-02T03:04:05", datetime(2030, 1, 2, 2, 4, 5, tzinfo=UTC)),
    ("clock", "23:59:59.000001", time(23, 59, 59, 1)),
    ("span", "P1DT2H", timedelta(days=1, hours=2)),
    ("span", "1 02:00:00.000005", timedelta(days=1, hours=2, microseconds=5)),
    ("data", {"x": [1, None, "ü"]}, SAME),
    ("data", [], SAME),
    ("data", "text", SAME),
    ("data_or_null", {"n": None}, SAME),
    ("data_or_null", None, None),
    ("mail", "x@example.org", SAME),
    ("link", "https://example.org/?a=1&b=2", SAME),
    ("address", "::1", SAME),
    ("address", None, None),
    ("state", "done", SAME),
    ("radio", "a", SAME),
    ("radio", "", SAME),
    ("radio", None, ""),
    ("rank", 1, SAME),
    ("rank", "1", 1),
    ("pair", "p,q", SAME),
    (
        "reference",
        "7d444840-9dc0-11d1-b245-5ffdce74fad2",
        UUID(int=0x7D4448409DC011D1B2455FFDCE74FAD2),
    ),
]


def rounds():
    """The values, as many fields at a time as there are."""
    by_name = {}
    for name, value, stored in VALUES:
        by_name.setdefault(name, []).append((value, value if stored is SAME else stored))
    for at in range(max(map(len, by_name.values()))):
        yield {name: values[at] for name, values in by_name.items() if len(values) > at}


@pytest.mark.thorough
@pytest.mark.parametrize("values", list(rounds()))
def test_every_widget_takes_a_json_value(values, client, thing, snapshot, language):
    before = snapshot(thing)

    changed(update(client, thing, **{name: value for name, (value, _) in values.items()}))

    after = snapshot(thing)
    assert {name: after[name] for name in values} == {
        name: stored for name, (_, stored) in values.items()
    }
    assert differing(before, after) <= values.keys()


@pytest.mark.thorough
def test_a_related_record_is_named_by_its_key(client, thing, tags, snapshot, language):
    _, blue, _ = tags
    for name in ("tag", "tag_raw", "tag_searched", "tag_active"):
        assert not update(client, thing, **{name: blue.pk}).is_error
        assert snapshot(thing)[f"{name}_id"] == blue.pk
        assert not update(client, thing, **{name: None}).is_error
        assert snapshot(thing)[f"{name}_id"] is None


@pytest.mark.thorough
def test_related_records_are_found_by_text_and_several_are_told_apart(client, thing, tags):
    Tag.objects.create(name="blueish")

    assert not update(client, thing, tag="red", tags={"set": ["ueis"]}).is_error
    answer = refusal(update(client, thing, tag="lue"))

    assert f"tag: 2 tags match 'lue': {tags[1].pk}: blue" in answer
    assert "str of" not in answer


@pytest.mark.parametrize("written", ["{}", " {}", "{}\n", "0{}"])
def test_a_key_is_that_key_however_it_is_written_and_no_text_to_find(written, client, thing, tags):
    blue = tags[1]
    Tag.objects.create(name=f"number {blue.pk}")

    changed(update(client, thing, tag=written.format(blue.pk)))

    thing.refresh_from_db()
    assert thing.tag == blue


#: By the names of fields: values that they cannot take.
REFUSED = {
    "state": ["nope", None, ["new"]],
    "rank": [7, None, True],
    "radio": ["zz"],
    "tag": [999, True, [1], "nobody"],
    "tags": [[1], {"set": [999]}, 1, None],
    "tags_raw": [{"set": ["1,2"]}],
    "tag_searched": [{}],
    "is_on": ["no", None],
    "is_odd": ["yes"],
    "day": ["soon", "2026-02-30", 5],
    "at": [
        *("2030-13-01", "2026-03-29T02:30:00"),
        *("2026-10-25T02:30:00+01:00", "9999-12-31T23:59:59-23:00"),
    ],
    "clock": ["25:00", "10:00+02:00", "10:00Z"],
    "span": ["long"],
    "address": ["x"],
    "mail": ["x"],
    "title": ["", None, "x" * 51, ["a"], 5],
    "note": ["a\x00b", {"a": 1}],
    "count": ["1,5x", 1.5, True, 10**30, "1e400"],
    "ratio": ["nan", "Infinity"],
    "price": ["9" * 5000],
    "number": [None],
    "reference": ["x"],
    "high": [500, -5],
    "pair": [["a"]],
    "paper": ["text"],
    "picture": [{"filename": "x.png", "data": "bm8gcGljdHVyZQ=="}],
}
WRONG = [{name: value} for name, values in REFUSED.items() for value in values]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "values", [*WRONG, {"at": None, "made_at": None}], ids=lambda one: str(one)[:40]
)
def test_what_a_field_cannot_take_is_refused_by_its_name(
    values, client, thing, snapshot, settings
):
    settings.TIME_ZONE = "Europe/Berlin"
    before = snapshot(thing)

    answer = refusal(update(client, thing, **values))

    assert answer.startswith("Nothing was saved.\n")
    *_, name = values
    assert f"\n{name}: " in answer or "low_below_high" in answer
    assert snapshot(thing) == before


def test_all_faults_are_told_at_once(client, thing):
    answer = update(client, thing, state="nope", count="x", tag=999, titel="T")

    assert answer.text.splitlines()[:4] == [
        "Nothing was saved.",
        f"'titel' is not a field that you can set. Did you mean title? You can set: {SETTABLE}.",
        "count: 'x' is not a number.",
        "state: 'nope' is not one of: new, paid, done, void.",
    ]
    assert "tag: No tag matches 999." in answer.text


SETTABLE = (
    "title, note, slug, count, ratio, price, local_price, is_on, is_odd, day, day_in_parts, at, "
    "at_in_one, made_at, clock, span, data, data_or_null, reference, mail, link, address, state, "
    "radio, rank, tag, tag_active, tag_raw, tag_searched, tags, tags_raw, tags_searched, "
    "tags_aside, tags_boxes, tags_active, paper, picture, pair, low, high, group, number, newlines"
)


@pytest.mark.parametrize(
    "name",
    ["locked", "unseen", "id", "nonsense", "secret_code", "modified_at", "parts-0-quantity",
     "_saveasnew", "paper-clear", "parts", "initial-made_at"],
)  # fmt: skip
def test_what_cannot_be_set_is_refused_in_the_same_words_whatever_it_is(
    name, client, thing, snapshot
):
    before = snapshot(thing)

    answer = update(client, thing, **{name: "x"})

    line = answer.text.splitlines()[1]
    assert line.startswith(f"'{name}' is not a field that you can set. ")
    assert line.endswith(f"You can set: {SETTABLE}.")
    assert snapshot(thing) == before


@pytest.mark.thorough
def test_rules_over_fields_that_were_not_sent_hold_and_say_so(client, thing, snapshot):
    update(client, thing, note="")
    before = snapshot(thing)

    answer = refusal(update(client, thing, state="void"))

    assert "note: Say why it is void. (You did not send this field.)" in answer
    assert snapshot(thing) == before
    assert not update(client, thing, state="void", note="broken").is_error


def test_the_log_says_what_changed_and_who_did_it(client, thing, superuser):
    update(client, thing, state="done", title="T")

    entry = LogEntry.objects.get()
    assert entry.user == superuser
    assert entry.get_change_message() == (
        "Changed State. Added note “through an assistant: mcp_django.testing”."
    )


# Names of files

ODD_NAMES = [
    " ", "?", "%", ":", "..", ".", "", "/", "a/", "a/?", "\\ ", "a\x00.txt", "a\u202etxt.exe",
    "\n", "é" * 200 + ".txt", "x" * 5000,
]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_that_no_file_can_have_is_a_fault_of_its_field(
    name, dry_run, client, thing, snapshot
):
    before = snapshot(thing)
    file = {"paper": {"filename": name, "data": "aGVsbG8="}}

    changed = update(client, thing, dry_run=dry_run, **file)
    created = client.call_tool(
        "create_record", model="workshop.thing", values={"title": "x", **file}, dry_run=dry_run
    )

    for answer in (changed, created):
        assert answer.is_error
        assert answer.text.startswith("Nothing was saved.\npaper: ")
        assert "name" in answer.text
    assert snapshot(thing) == before
    assert Thing.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("a b?.txt", "papers/a_b.txt"),
        ("C:\\x\\y.txt", "papers/y.txt"),
        ("..\\..\\a/../new.txt", "papers/new.txt"),
        ("ü:%.txt", "papers/ü.txt"),
    ],
)
def test_a_name_is_cleaned_up_as_the_admin_does(name, stored, client, thing):
    changed(update(client, thing, paper={"filename": name, "data": "aGVsbG8="}))

    thing.refresh_from_db()
    assert thing.paper.name == stored
    with thing.paper.open() as opened:
        assert opened.read() == b"hello"


def test_a_name_that_the_storage_refuses_is_told_as_such(client, thing, monkeypatch):
    def refuse(self, name):
        raise SuspiciousFileOperation("/secret/path")

    monkeypatch.setattr(FileSystemStorage, "get_valid_name", refuse)

    answer = refusal(update(client, thing, paper={"filename": "a.txt", "data": "aGVsbG8="}))

    assert answer == (
        "The site cannot store a file of this name. Use a short name of letters and digits."
    )


def test_a_key_is_set_once_and_an_update_makes_no_second_record(client):
    made = client.data("create_record", model="workshop.rack", values={"code": "a b"})
    rack = Rack.objects.get()

    refused = update(client, rack, code="a c", note="x")
    changes = changed(update(client, rack, note="y"))

    assert made["pk"] == "a b"
    assert refused.text == (
        "Nothing was saved.\n'code' is not a field that you can set. You can set: note."
    )
    assert changes == {"note": ["", "y"]}
    assert list(Rack.objects.values_list("code", "note")) == [("a b", "y")]
    described = client.data("describe_model", model="workshop.rack")["writing"]
    assert list(described["create_record"]["values"]["properties"]) == ["code", "note"]
    assert list(described["update_record"]["values"]["properties"]) == ["note"]


# What is another package's business: tests/sites/test_admin_packages.py.


def test_the_only_record_is_made_by_its_update_where_its_page_makes_it(client, monkeypatch):
    def prepare(self):
        Team.objects.get_or_create(pk=5, defaults={"name": "Only"})

    monkeypatch.setattr(TeamAdmin, "prepare", prepare)
    monkeypatch.setattr(TeamAdmin, "has_add_permission", lambda self, request: False)
    team, values = {"model": "workshop.team"}, {"name": "New"}

    described = client.data("describe_model", **team)["writing"]["update_record"]
    advice = client.refusal("get_record", **team, pk=5)
    refusal = client.refusal("update_record", **team, pk=6, values=values)
    trial = client.data("update_record", **team, pk=5, values=values, dry_run=True)
    is_made_already = Team.objects.exists()
    made = client.data("update_record", **team, pk=5, values=values)

    assert described["no_record_yet"].startswith("update_record with the key 5 makes the record")
    assert "If there is none yet because its page in the admin makes it" in advice
    assert "There is no workshop.team with the key 6." in refusal
    assert not is_made_already
    assert trial["changed"] == made["changed"] == {"name": ["Only", "New"]}
    assert Team.objects.get().pk == 5


class MottoForm(TeamForm):
    """With a text that no column of the model holds, as packages for translations have them."""

    motto = forms.CharField(required=False)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.initial["motto"] = self.instance.motto

    def _save_m2m(self):
        super()._save_m2m()
        Tag.objects.update_or_create(
            pk=1000 + self.instance.pk, defaults={"name": self.cleaned_data["motto"]}
        )


def motto_of(team):
    return next(
        iter(Tag.objects.filter(pk=1000 + (team.pk or 0)).values_list("name", flat=True)), ""
    )


@pytest.mark.exposure(Team={"computed": None})
def test_a_text_that_no_column_holds_is_a_part_of_the_record(client, monkeypatch):
    def get_form(self, request, obj=None, change=False, **kwargs):
        return ModelAdmin.get_form(self, request, obj, change=change, **kwargs)

    monkeypatch.setattr(TeamAdmin, "form", MottoForm)
    monkeypatch.setattr(TeamAdmin, "get_form", get_form)
    monkeypatch.setattr(Team, "motto", property(motto_of), raising=False)
    team = {"model": "workshop.team", "pk": Team.objects.create(name="Reds").pk}
    read = client.data("get_record", **team)

    done = client.data("update_record", **team, values={"motto": "Go"}, version=read["_version"])
    Tag.objects.update(name="Gone")
    late = client.refusal(
        "update_record", **team, values={"motto": "Stop"}, version=done["version"]
    )

    assert read["motto"] == ""
    assert done["changed"] == {"motto": ["", "Go"]}
    assert "changed after you read it" in late
    (entry,) = client.data("get_history", **team)["history"]
    assert entry["change"].startswith("Changed motto.")
