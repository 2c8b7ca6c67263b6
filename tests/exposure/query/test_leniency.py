"""Calls that deviate from the schema in a harmless way are answered as they were meant."""

from __future__ import annotations

import msgspec
import pytest

from mcp_django.exposure.tools.records import RECORD_TOOLS
from mcp_django.testing.client import rows_as_objects
from tests.exposure.function_tools import context_of, refusal
from tests.nasty.models import Tag
from tests.nasty.site import caller

pytestmark = pytest.mark.django_db

FIND, AGGREGATE = "find_records", "aggregate_records"


def call(tool, who=None, /, **arguments):
    """The answer of a generic tool about orders."""
    given = {"model": "nasty.order", **arguments}
    who = who or caller()
    outcome = RECORD_TOOLS[tool].call(context_of(who), who, given)
    answer = msgspec.json.decode(outcome.content[0].text)
    return {**answer, "records": rows_as_objects(answer)} if "rows" in answer else answer


def numbers(**arguments):
    return [record["number"] for record in call(FIND, **arguments)["records"]]


# Texts in place of lists and objects, and conditions in other spellings.

COUNT = {"n": {"count": "*"}}
SAME = [
    (FIND, "order_by", "-number", ["-number"]),
    (FIND, "order_by", " status , -number, ", ["status", "-number"]),
    (FIND, "order_by", '["status", "-number"]', ["status", "-number"]),
    (FIND, "fields", "number, total", ["number", "total"]),
    (FIND, "filters", '{"status": "paid"}', {"status": "paid"}),
    (FIND, "any_of", '[{"number": "A1"}]', [{"number": "A1"}]),
    (FIND, "any_of", ['{"number": "A1"}'], [{"number": "A1"}]),
    (AGGREGATE, "group_by", "status,customer__name", ["status", "customer__name"]),
    (AGGREGATE, "metrics", {"n": "count"}, COUNT),
    (AGGREGATE, "metrics", '{"n": {"count": "*"}}', COUNT),
    (AGGREGATE, "metrics", {"n": '{"count": "*"}'}, COUNT),
    (AGGREGATE, "metrics", {"n": "count", "t": {"sum": "total"}}, COUNT | {"t": {"sum": "total"}}),
]


@pytest.mark.parametrize(("tool", "argument", "written", "meant"), SAME, ids=str)
def test_another_spelling_of_an_argument_means_the_same(shop, tool, argument, written, meant):
    answer = call(tool, **{argument: written})

    assert answer == call(tool, **{argument: meant})
    assert answer != call(tool)


@pytest.mark.parametrize(
    ("spelled", "meant"),
    [
        ({"quantity": {"gte": 1, "lt": 3}}, {"quantity__gte": 1, "quantity__lt": 3}),
        ({"placed_at__year": {"gte": 2026}}, {"placed_at__year__gte": 2026}),
        ({"placed_at": {"date__gte": "2026-01-31"}}, {"placed_at__date__gte": "2026-01-31"}),
        ({"tags": {"slug": "blue"}}, {"tags__slug": "blue"}),
        ({"customer": None}, {"customer__isnull": True}),
        ({"gift": {"exact": None}}, {"gift__isnull": True}),
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
        return call(AGGREGATE, group_by="status", having=having)["records"]

    assert groups({"count": {"gte": 1, "lt": 3}}) == groups({"count__gte": 1, "count__lt": 3})
    assert groups('{"count": {"gt": 100}}') == []


HOSTILE = [
    "[" * 100_000, '{"status":' * 200 + "1" + "}" * 200, '{"total": NaN}',
    '{"total": 1' + "0" * 5000 + "}", '"{\\"status\\": \\"paid\\"}"', '{"status": "\ud800"}',
    "status=paid",
]  # fmt: skip
MEANINGLESS = [
    *((FIND, name, text) for text in HOSTILE for name in ("filters", "any_of")),
    *((AGGREGATE, name, text) for text in HOSTILE for name in ("having", "metrics")),
    *((FIND, name, text) for text in (",", "number,,secret") for name in ("order_by", "fields")),
    (FIND, "filters", {"quantity": {}}),
    (FIND, "filters", {"quantity": {"gt": {"gt": 1}}}),
    (FIND, "filters", {"quantity": {"gt" * 200: 1}}),
    (FIND, "filters", {"quantity": {"gt": None}}),
    (FIND, "filters", {"placed_at__year": None}),
    (FIND, "filters", {"quantity": {f"k{at}": 1 for at in range(99)}}),
    (FIND, "filters", {f"k{at}": {"gt": 1, "lt": 2} for at in range(17)}),
    *((AGGREGATE, "metrics", given) for given in ({"n": ""}, {"": "count"}, {"n": 5}, ["n"])),
    *((FIND, "limit", limit) for limit in (-1, -(10**300), 1.5, True, [5])),
]


@pytest.mark.parametrize("at", range(len(MEANINGLESS)))
def test_what_means_nothing_is_refused_in_words_with_its_argument(shop, at):
    tool, argument, value = MEANINGLESS[at]

    sentence = refusal(
        call, tool, **{"group_by": "status"} if argument == "having" else {}, **{argument: value}
    )

    assert argument in sentence
    assert len(sentence) < 1500


@pytest.mark.parametrize(
    ("filters", "shown"),
    [
        ({"status__ne": "paid"}, '{"exclude": {"status": "paid"}}'),
        ({"status": {"ne": "paid"}}, '{"exclude": {"status": "paid"}}'),
        ({"status__not_in": ["paid"]}, '{"exclude": {"status__in": ["paid"]}}'),
        ({"customer__country__neq": "FR"}, '{"exclude": {"customer__country": "FR"}}'),
    ],
    ids=str,
)
def test_a_negation_is_answered_with_the_exclusion_that_works(shop, filters, shown):
    assert shown in refusal(call, FIND, filters=filters)
    assert shown not in refusal(call, FIND, exclude=filters)
    assert numbers(**msgspec.json.decode(shown)) != numbers()
    # A long value is not said again.
    for value in ("x" * 5000, 10**5000, "\ud800"):
        assert len(refusal(call, FIND, filters={"number__ne": value})) < 1000


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"total": "sum"}, '{"total": {"sum": "total"}}'),
        ({"total": {"sum": "*"}}, '{"total": {"sum": "total"}}'),
        ({"sum": "total"}, '{"sum": {"sum": "total"}}'),
        ({"customer": "count_distinct"}, '{"customer": {"count_distinct": "customer"}}'),
    ],
    ids=str,
)
def test_a_metric_without_a_path_is_answered_with_its_form(shop, given, shown):
    sentence = refusal(call, AGGREGATE, metrics=given)

    assert "metrics" in sentence
    assert shown in sentence
    assert call(AGGREGATE, metrics=shown)["records"]


def test_a_limit_above_the_largest_page_is_that_of_the_largest_page_and_said(shop, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "PAGE_SIZE": 1, "MAX_PAGE_SIZE": 2}

    capped = call(FIND, limit=10**300)
    largest = call(FIND, limit=2)

    assert capped["note"] == "limit is at most 2."
    assert len(capped["records"]) == len(largest["records"]) == 2
    assert capped["next"]
    assert "note" not in largest
    assert call(AGGREGATE, group_by="status", limit=1000.0)["note"] == "limit is at most 200."
    Tag.objects.bulk_create([Tag(slug=f"tag-{at}") for at in range(101)])
    assert note(model="nasty.tag", filters={"slug": "TAG"}, limit=1000) == (
        "limit is at most 2. Texts compare exactly. With slug__icontains there are more than 100 "
        "records."
    )


# Texts that are not exactly so.


def note(who=None, /, **arguments):
    return call(FIND, who, **arguments).get("note")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"filters": {"number": "a"}}, "number__icontains there are 3 records."),
        ({"filters": {"number": "r"}}, "number__icontains there is 1 record."),
        (
            {"filters": {"customer__name": "ann", "number": "A"}},
            "customer__name__icontains and number__icontains there is 1 record.",
        ),
        (
            {"filters": {"tags__slug": "BL", "status": "paid"}},
            "tags__slug__icontains there is 1 record.",
        ),
        ({"filters": {"number": "zzz"}}, None),
        ({"filters": {"number__startswith": "1"}}, None),
        ({"filters": {"number__in": ["a"]}}, None),
        ({"filters": {"number": "a", "quantity": 1000}}, None),
        ({"any_of": [{"number": "a"}]}, None),
    ],
    ids=str,
)
def test_an_exact_text_that_finds_nothing_says_what_icontains_would_find(shop, arguments, said):
    assert note(**arguments) == (said and f"Texts compare exactly. With {said}")


def test_a_note_takes_one_query_and_records_take_none_for_it(shop, django_assert_num_queries):
    who = caller()
    note(who, filters={"number": "b"})

    with django_assert_num_queries(2):
        assert note(who, filters={"number": "a"})
    with django_assert_num_queries(1):
        assert call(FIND, who, filters={"number": "A1"})["records"]
    with django_assert_num_queries(1):
        assert not call(FIND, who, filters={"quantity": 1000})["records"]
