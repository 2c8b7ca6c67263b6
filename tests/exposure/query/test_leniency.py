"""Calls that deviate from the schema in a harmless way are answered as they were meant."""

from __future__ import annotations

import msgspec
import pytest
from django.db import connection

from mcp_django.exceptions import ToolError
from mcp_django.exposure.tools.records import RECORD_TOOLS
from mcp_django.testing.client import rows_as_objects
from tests.nasty.models import Order, Tag
from tests.nasty.site import caller

pytestmark = pytest.mark.django_db


def call(tool, who=None, /, **arguments):
    """The answer of a generic tool about orders."""
    given = {"model": "nasty.order", **arguments}
    outcome = RECORD_TOOLS[tool].call(None, who or caller(), given)
    answer = msgspec.json.decode(outcome.content[0].text)
    return {**answer, "records": rows_as_objects(answer)} if "rows" in answer else answer


def numbers(**arguments):
    return [record["number"] for record in call("find_records", **arguments)["records"]]


def refusal(tool="find_records", /, **arguments):
    with pytest.raises(ToolError) as caught:
        call(tool, **arguments)
    return str(caught.value)


# Texts in place of lists and objects.


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("-number", ["-number"]),
        ("status,-number", ["status", "-number"]),
        (" status , -number, ", ["status", "-number"]),
        ('["status", "-number"]', ["status", "-number"]),
    ],
)
def test_a_text_of_names_is_a_list_of_them(shop, text, names):
    assert numbers(order_by=text) == numbers(order_by=names)
    assert numbers(order_by=text) != numbers()


def test_a_text_of_names_says_what_to_show_and_how_to_group(shop):
    [record, *_] = call("find_records", fields="number, total")["records"]
    found = call("aggregate_records", group_by="status,customer__name", order_by="-count")

    assert list(record) == ["number", "total"]
    assert list(found["records"][0]) == ["status", "customer__name", "count"]


@pytest.mark.parametrize("text", [",", ", ,", "number,,secret", "a,b,c,d,e", "\ud800,\x00"])
def test_a_text_that_names_nothing_usable_is_refused(shop, text):
    assert "order_by" in refusal(order_by=text)
    assert "fields" in refusal(fields=text)
    assert "group_by" in refusal("aggregate_records", group_by=text)


def test_json_in_a_text_is_what_it_says(shop):
    assert numbers(filters='{"status": "paid"}') == ["A1", "A3"]
    assert numbers(exclude='{"status": "paid"}') == ["A2", "R1"]
    assert numbers(any_of='[{"number": "A1"}, {"number": "A2"}]') == ["A1", "A2"]
    assert numbers(any_of=['{"number": "A1"}']) == ["A1"]
    found = call(
        "aggregate_records",
        group_by='["status"]',
        metrics='{"n": {"count": "*"}}',
        having='{"n__gte": 1}',
    )
    assert found == call("aggregate_records", group_by=["status"], metrics={"n": {"count": "*"}})


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"status":' * 200 + "1" + "}" * 200,
        '{"total": NaN}',
        '{"total": 1e999}',
        '{"total": 1' + "0" * 5000 + "}",
        '"{\\"status\\": \\"paid\\"}"',
        '{"status": "paid"',
        '{"status": "\ud800"}',
        "status=paid",
    ],
    ids=lambda text: text[:30].encode("ascii", "replace").decode(),
)
@pytest.mark.parametrize("argument", ["filters", "exclude", "any_of", "having", "metrics"])
def test_hostile_json_in_a_text_is_refused_in_words(shop, text, argument):
    sentence = refusal("aggregate_records", **{argument: text}, group_by="status")

    assert 10 < len(sentence) < 1500


# Conditions in other spellings.


@pytest.mark.parametrize(
    ("spelled", "meant"),
    [
        ({"quantity": {"gt": 1}}, {"quantity__gt": 1}),
        ({"quantity": {"gte": 1, "lt": 3}}, {"quantity__gte": 1, "quantity__lt": 3}),
        ({"placed_at__year": {"gte": 2026}}, {"placed_at__year__gte": 2026}),
        ({"placed_at": {"date__gte": "2026-01-31"}}, {"placed_at__date__gte": "2026-01-31"}),
        ({"tags": {"slug": "blue"}}, {"tags__slug": "blue"}),
        ({"customer": None}, {"customer__isnull": True}),
        ({"gift": {"exact": None}}, {"gift__isnull": True}),
        ({"tags": None}, {"tags__isnull": True}),
        ({"customer__country": None}, {"customer__country__isnull": True}),
    ],
    ids=str,
)
def test_a_condition_in_another_spelling_means_the_same(shop, spelled, meant):
    assert numbers(filters=spelled) == numbers(filters=meant)
    assert numbers(exclude=spelled) == numbers(exclude=meant)
    assert numbers(any_of=[spelled, {"number": "A2"}]) == numbers(any_of=[meant, {"number": "A2"}])
    assert sorted(numbers(filters=spelled) + numbers(exclude=spelled)) == numbers()


def test_an_object_of_operators_compares_metrics(shop):
    def groups(having):
        return call("aggregate_records", group_by="status", having=having)["records"]

    assert groups({"count": {"gte": 1, "lt": 3}}) == groups({"count__gte": 1, "count__lt": 3})
    assert groups({"count": {"gt": 100}}) == []


@pytest.mark.parametrize(
    "filters",
    [
        {"quantity": {}},
        {"quantity": {"gt": {"gt": 1}}},
        {"quantity": {"": 1}},
        {"quantity": {"regex": "x"}},
        {"quantity": {"gt" * 200: 1}},
        {"quantity": {"gt": None}},
        {"quantity__in": None},
        {"quantity__isnull": None},
        {"placed_at__year": None},
        {"quantity": {f"k{at}": 1 for at in range(99)}},
        {f"k{at}": {"gt": 1, "lt": 2} for at in range(17)},
    ],
    ids=lambda filters: str(filters)[:40],
)
def test_an_object_that_means_nothing_is_refused(shop, filters):
    assert 10 < len(refusal(filters=filters)) < 1500


@pytest.mark.parametrize(
    ("filters", "shown"),
    [
        ({"status__ne": "paid"}, '{"exclude": {"status": "paid"}}'),
        ({"status__not": "paid"}, '{"exclude": {"status": "paid"}}'),
        ({"status": {"ne": "paid"}}, '{"exclude": {"status": "paid"}}'),
        ({"status__not_in": ["paid"]}, '{"exclude": {"status__in": ["paid"]}}'),
        ({"status__nin": ["paid"]}, '{"exclude": {"status__in": ["paid"]}}'),
        ({"customer__country__neq": "FR"}, '{"exclude": {"customer__country": "FR"}}'),
    ],
    ids=str,
)
def test_a_negation_is_answered_with_the_exclusion_that_works(shop, filters, shown):
    sentence = refusal(filters=filters)

    assert shown in sentence
    assert numbers(**msgspec.json.decode(shown)) != numbers()


def test_a_negation_shows_no_long_value(shop):
    assert len(refusal(filters={"number__ne": "x" * 5000})) < 1000
    assert len(refusal(filters={"number__ne": 10**300})) < 1000
    assert len(refusal(filters={"number__ne": "\ud800"})) < 1000


# Metrics.


def metrics(given):
    return call("aggregate_records", metrics=given)["records"]


def test_a_count_needs_no_path(shop):
    assert metrics({"n": "count"}) == metrics({"n": {"count": "*"}})
    assert metrics('{"n": "count"}') == metrics({"n": {"count": "*"}})
    assert metrics({"n": '{"count": "*"}'}) == metrics({"n": {"count": "*"}})
    assert metrics({"n": "count", "t": {"sum": "total"}}) == [{"n": 4, "t": "30.00"}]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"total": "sum"}, '{"total": {"sum": "total"}}'),
        ({"total": {"sum": "*"}}, '{"total": {"sum": "total"}}'),
        ({"sum": "total"}, '{"sum": {"sum": "total"}}'),
        ({"x": "sum"}, '{"x": {"sum": "total"}}'),
        ({"customer": "count_distinct"}, '{"customer": {"count_distinct": "customer"}}'),
    ],
    ids=str,
)
def test_a_metric_without_a_path_is_answered_with_its_form(shop, given, shown):
    sentence = refusal("aggregate_records", metrics=given)

    assert "metrics" in sentence
    assert shown in sentence
    assert metrics(shown)


@pytest.mark.parametrize(
    "given",
    ["count", "[]]", {"n": ""}, {"n": "median"}, {"": "count"}, {"n": "*"}, {"n": 5}, ["n"]],
)
def test_a_metric_that_means_nothing_is_refused(shop, given):
    assert "metric" in refusal("aggregate_records", metrics=given)


# Limits.


def test_a_limit_above_the_largest_page_is_that_of_the_largest_page_and_said(shop, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "PAGE_SIZE": 1, "MAX_PAGE_SIZE": 2}

    capped = call("find_records", limit=1000)
    largest = call("find_records", limit=2)

    assert capped["note"] == "limit is at most 2."
    assert len(capped["records"]) == len(largest["records"]) == 2
    assert capped["next"]
    assert "note" not in largest
    assert "note" not in call("find_records")


def test_a_limit_above_the_most_groups_is_that_many_and_said(shop):
    capped = call("aggregate_records", group_by="status", limit=201)
    largest = call("aggregate_records", group_by="status", limit=200)

    assert capped == {**largest, "note": "limit is at most 200."}
    assert "note" not in largest


@pytest.mark.parametrize("tool", ["find_records", "aggregate_records"])
@pytest.mark.parametrize("limit", [0, -1, -(10**300), 1.5, True, "many", [5]])
def test_a_limit_that_is_no_number_of_records_is_refused_by_its_name(shop, tool, limit):
    assert "limit:" in refusal(tool, limit=limit)


# Weeks.


@pytest.mark.parametrize(
    ("day", "week"),
    [
        ("2026-01-01", 1),
        ("2025-12-29", 1),
        ("2025-12-28", 52),
        ("2027-01-03", 53),
        ("2027-01-04", 1),
    ],
)
def test_a_week_is_that_of_iso_8601(shop, day, week):
    Order.objects.filter(pk=shop.a1.pk).update(due=day, placed_at=f"{day}T12:00:00Z")

    assert numbers(filters={"due": day, "due__week": week}) == ["A1"]
    assert numbers(filters={"number": "A1", "placed_at__week": week}) == ["A1"]
    assert numbers(filters={"due": day, "due__week": week + 1 if week < 53 else 1}) == []


# Texts that are not exactly so.


def note(who=None, /, **arguments):
    return call("find_records", who, **arguments).get("note")


def test_an_exact_text_that_finds_nothing_says_what_icontains_would_find(shop):
    assert note(filters={"number": "a"}) == (
        "Texts compare exactly. With number__icontains there are 3 records."
    )
    assert note(filters={"number": "r"}) == (
        "Texts compare exactly. With number__icontains there is 1 record."
    )
    assert note(filters={"customer__name": "ann", "number": "A"}) == (
        "Texts compare exactly. With customer__name__icontains and number__icontains there is "
        "1 record."
    )
    assert note(filters={"tags__slug": "BL", "status": "paid"}) == (
        "Texts compare exactly. With tags__slug__icontains there is 1 record."
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {"filters": {"number": "A1"}},
        {"filters": {"number": "zzz"}},
        {"filters": {"number": ""}},
        {"filters": {"number__startswith": "1"}},
        {"filters": {"number__iexact": "a"}},
        {"filters": {"number__in": ["a"]}},
        {"filters": {"status": "new", "quantity": 1000}},
        {"filters": {"number": "a", "quantity": 1000}},
        {"exclude": {"number__startswith": ""}},
        {"any_of": [{"number": "a"}]},
        {"search": "zzz"},
    ],
    ids=str,
)
def test_there_is_no_note_where_icontains_would_change_nothing(shop, arguments):
    assert note(**arguments) is None


def test_a_note_counts_rows_that_the_caller_sees(shop):
    narrowed = caller(narrow={Order: lambda rows: rows.exclude(status="paid")})
    blind = caller(narrow={Order: lambda rows: rows.none()})

    assert "is 1 record" in note(narrowed, filters={"number": "a"})
    assert note(blind, filters={"number": "a"}) is None


def test_a_note_takes_one_query_and_records_take_none_for_it(shop, django_assert_num_queries):
    who = caller()
    note(who, filters={"number": "b"})

    with django_assert_num_queries(2):
        assert note(who, filters={"number": "a"})
    with django_assert_num_queries(1):
        assert call("find_records", who, filters={"number": "A1"})["records"]
    with django_assert_num_queries(1):
        assert not call("find_records", who, filters={"quantity": 1000})["records"]


def test_a_note_counts_to_a_hundred(shop):
    Tag.objects.bulk_create([Tag(slug=f"tag-{at}") for at in range(101)])

    found = call("find_records", model="nasty.tag", filters={"slug": "TAG"})

    assert found["note"].endswith("there are more than 100 records.")


@pytest.mark.skipif(connection.vendor != "sqlite", reason="It needs a deadline of no time.")
def test_a_count_that_takes_too_long_leaves_the_answer_as_it_is(shop, settings):
    Tag.objects.bulk_create([Tag(slug=f"tag-{at}") for at in range(5000)])
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "STATEMENT_TIMEOUT": 1e-9}

    found = call("find_records", model="nasty.tag", filters={"slug": "-4999"})

    assert found["records"] == []
    assert found.keys() == {"columns", "rows", "records"}


# Refusals.


@pytest.mark.parametrize(
    ("tool", "argument", "value"),
    [
        ("find_records", "filters", {"quantity": "many"}),
        ("find_records", "filters", {"quantity__regex": "1"}),
        ("find_records", "filters", {"secret": 1}),
        ("find_records", "exclude", {"customer": "Nobody"}),
        ("find_records", "exclude", {"status": "lost"}),
        ("find_records", "any_of", [{"gift": "maybe"}]),
        ("find_records", "any_of", [{}]),
        ("find_records", "search", "\x00"),
        ("find_records", "search", "x" * 101),
        ("find_records", "search", "a b c d e f g h i"),
        ("find_records", "order_by", ["secret"]),
        ("find_records", "fields", ["secret"]),
        ("find_records", "limit", 0),
        ("find_records", "cursor", "next"),
        ("aggregate_records", "filters", {"quantity": "many"}),
        ("aggregate_records", "group_by", ["secret"]),
        ("aggregate_records", "group_by", ["tags__slug"]),
        ("aggregate_records", "group_by", ["status"] * 4),
        ("aggregate_records", "metrics", {"a__b": {"count": "*"}}),
        ("aggregate_records", "metrics", {"status": {"count": "*"}}),
        ("aggregate_records", "metrics", {"t": {"sum": "total", "avg": "total"}}),
        ("aggregate_records", "metrics", {"t": {"sum": "number"}}),
        ("aggregate_records", "metrics", {"t": {"sum": "secret"}}),
        ("aggregate_records", "metrics", {"t": {"median": "total"}}),
        ("aggregate_records", "metrics", {"t": {"sum": "tags__slug"}}),
        ("aggregate_records", "having", {"count": "many"}),
        ("aggregate_records", "having", {"secret": 1}),
        ("aggregate_records", "order_by", ["secret"]),
        ("aggregate_records", "limit", 0),
    ],
    ids=str,
)
def test_a_refusal_names_its_argument(shop, tool, argument, value):
    arguments = {"group_by": ["status"]} if tool == "aggregate_records" else {}

    sentence = refusal(tool, **{**arguments, argument: value}).partition(" A valid call:")[0]

    assert argument in sentence
