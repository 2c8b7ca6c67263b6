from __future__ import annotations

import json
import re
import uuid
from datetime import date

import msgspec
import pytest
from django.contrib import admin
from django.db import connection, models, transaction
from django.db.models import Count, F, FilteredRelation, Q
from django.db.models.expressions import RawSQL
from django.db.models.functions import Upper
from django.test import override_settings
from django.test.utils import isolate_apps, modify_settings
from django.utils import timezone

from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure.query.arguments import FindRecords
from mcp_django.exposure.query.related import find_objects
from tests.nasty.hostile import KEYS, SHAPES, VALUES
from tests.nasty.models import (
    Customer,
    Line,
    Odd,
    Order,
    PaidOrder,
    Person,
    RushOrder,
    Seat,
    Tenant,
    Tricky,
)
from tests.nasty.site import (
    ORDER,
    Narrowable,
    caller,
    count,
    numbers,
    objects,
    page,
    record,
    records,
    refusal,
    registry,
)

pytestmark = [pytest.mark.django_db, pytest.mark.database]

MEANINGS = [
    ({"status": "paid"}, "A1 A3"),
    ({"customer__country__in": ["FR"]}, "A1"),
    ({"tags__slug": "blue"}, "A1 A2"),
    ({"tags__isnull": False}, "A1 A2"),
    ({"lines__sku": "x", "lines__amount__gte": 5}, "A1 A2"),
    ({"watchers__username": "boss"}, "A1"),
    ({"notes__text": "hello"}, "A1"),
    ({"tricky__year": 2020}, "A1"),
    ({"tricky__year__gte": 2021}, ""),
    ({"tricky__contains__contains": "b"}, "A1"),
    ({"rushorder__courier": "zed"}, "R1"),
    ({"double": 4}, "A2"),
    ({"placed_at__date": "2026-01-31"}, "A1"),
    ({"placed_at__date__gt": "2026-01-30"}, "A1"),
    ({"placed_at__date__lte": "2026-01-31"}, "A1"),
    ({"placed_at__year": 2026, "placed_at__month": 1}, "A1"),
    ({"placed_at__month__range": [1, 2], "placed_at__day__in": [30, 31]}, "A1"),
    # The last of January in 2026 is a Saturday, Django's seventh day, in the fifth week.
    ({"placed_at__week": 5, "placed_at__week_day": 7, "placed_at__quarter": 1}, "A1"),
    ({"placed_at__week__range": [1, 4]}, ""),
    ({"total__range": [5, "15.5"]}, "A1"),
    ({"tags__parent__slug__isnull": True}, "A1 A2"),
    ({"gift__isnull": True, "quantity__lt": 2}, "A1 R1"),
    ({"payload__has_key": "color"}, "A2"),
]


@pytest.mark.parametrize(("filters", "expected"), MEANINGS, ids=str)
def test_filters_mean_what_django_means(shop, filters, expected):
    assert numbers(filters=filters) == expected.split()


PARTS_OF_JSON = [
    ({"payload__contains": {"color": "red"}}, "A2"),
    ({"payload": {"contains": {"sizes": [1]}}}, "A2"),
    ({"payload__contains": {"color": "blue"}}, ""),
]


@pytest.mark.parametrize(("filters", "expected"), PARTS_OF_JSON, ids=str)
def test_json_is_searched_for_a_part_where_the_database_can(shop, filters, expected):
    if connection.features.supports_json_field_contains:
        assert numbers(filters=filters) == expected.split()
    else:
        with pytest.raises(QueryError, match="no contains for JSON; use has_key"):
            numbers(filters=filters)


def test_json_that_no_record_shows_is_asked_for_null_alone(shop):
    who = caller(tables=registry({Order: {"fields": "id number", "filter_fields": "id payload"}}))

    assert len(records(who, Order, filters={"payload__isnull": False})) == 4
    for lookup in ("payload__has_key", "payload__contains"):
        with pytest.raises(QueryError, match="payload has the operators isnull"):
            records(who, Order, filters={lookup: "color"})


@pytest.mark.skipif(connection.vendor != "postgresql", reason="only PostgreSQL has them")
def test_arrays_are_searched_for_their_values(transactional_db):
    from django.contrib.postgres.fields import ArrayField

    with isolate_apps("tests.nasty"):

        class Word(models.Model):
            letters = ArrayField(models.CharField(max_length=5))

            class Meta:
                app_label = "nasty"

    with connection.schema_editor() as editor:
        editor.create_model(Word)
    try:
        Word.objects.bulk_create([Word(letters=["a", "b,c"]), Word(letters=["d"])])
        who = caller(tables=registry({Word: {"fields": "id letters"}}))

        def keys(**filters):
            return [row["id"] for row in records(who, Word, filters=filters)]

        assert keys(letters__contains=["b,c", "a"]) == [1]
        assert keys(letters__overlap=["d", "e"]) == [2]
        with pytest.raises(QueryError, match="contains takes a list with at least one value"):
            keys(letters__contains="a")
    finally:
        with connection.schema_editor() as editor:
            editor.delete_model(Word)


def test_the_sites_own_manager_does_not_rewrite_what_we_ask(shop):
    assert Order.objects.filter(number="t1").count() == 1  # it does rewrite

    assert numbers(filters={"number": "t1"}) == []


def test_two_conditions_behind_one_hop_speak_of_the_same_row_in_exclude_too(shop):
    Line.objects.filter(order=shop.a1, sku="y").update(amount=7)

    assert numbers(exclude={"lines__sku": "y", "lines__amount": 7}) == ["A2", "A3", "R1"]
    assert numbers(exclude={"lines__sku": "x", "lines__amount": 7}) == ["A1", "A2", "A3", "R1"]
    assert numbers(exclude={"customer__country": "FR"}) == ["A2", "A3", "R1"]
    # Nor is anything lost by a key that is NULL.
    rows = records(caller(), Customer, exclude={"orders__status": "paid"})
    assert [row["name"] for row in rows] == ["Bert"]


def test_search_looks_into_every_declared_column_for_every_word(shop):
    assert numbers(search="A1") == ["A1"]
    assert numbers(search="an") == ["A1"]
    assert numbers(search="blu ann") == ["A1"]
    assert numbers(search=str(shop.a2.pk)) == ["A2"]
    assert numbers(search="9" * 30) == []
    assert numbers(search=" ") == ["A1", "A2", "A3", "R1"]
    by_key = caller(tables=registry({Order: {**ORDER, "search_fields": "id"}}))
    assert numbers(by_key, search="word") == []


@pytest.mark.parametrize(
    ("path", "stored", "words"),
    [
        ("attachment", "files/report-7.pdf", "Report"), ("ip", "192.168.7.1", "168.7"),
        ("ref", uuid.UUID(int=2**127), "80000000-0000"), ("quantity", 91234, "123"),
        ("=quantity", 91234, "91234"), ("^quantity", 91234, "91"), ("total", "91234.50", "1234.5"),
        ("due", date(2026, 1, 31), "2026-01"),
    ],
)  # fmt: skip
def test_search_finds_what_the_admin_finds_in_columns_that_are_no_texts(shop, path, stored, words):
    Order.objects.filter(pk=shop.a2.pk).update(**{path.strip("^="): stored})
    model_admin = admin.ModelAdmin(Order, admin.site)
    model_admin.search_fields = [path]
    rows, _ = model_admin.get_search_results(None, Order.objects.order_by("number"), words)
    who = caller(tables=registry({Order: {**ORDER, "search_fields": path}}))

    assert [row.number for row in rows] == numbers(who, search=words) == ["A2"]
    assert numbers(who, search=f"{words}x") == []


def test_a_page_is_one_query_however_many_labels_and_rows(shop, django_assert_num_queries):
    who = caller(narrow={Customer: lambda rows: rows.filter(tenant__name="a")})

    for rights in (caller(), who):
        for _ in range(2):
            with django_assert_num_queries(1):
                page(rights, Order, fields=["number", "customer"], order_by=["number"])
            with django_assert_num_queries(1):
                record(rights, Order, shop.a1.pk)
            with django_assert_num_queries(1):
                count(rights, Order)


BASES = {
    "tenant": lambda rows: rows.filter(customer__tenant__name="a"),
    "many and distinct": lambda rows: rows.filter(
        tags__internal_note="", customer__tenant__name="a"
    ).distinct(),
    "annotate": lambda rows: rows.annotate(n=Count("lines")).filter(n__gte=2),
    "shadow": lambda rows: rows.filter(api_token="t1").annotate(customer__country=F("api_token")),
    "extra": lambda rows: rows.extra(where=["api_token = 't1'"]),
    "union": lambda rows: (
        rows.filter(api_token="t1").order_by().union(rows.filter(api_token="t1").order_by())
    ),
    "subquery": lambda rows: rows.filter(
        owner__in=Person.objects.filter(salary=9), api_token="t1"
    ),
    "instances": lambda rows: (
        rows.select_related("owner").defer("status").select_for_update().filter(api_token="t1")
    ),
    "sliced": lambda rows: rows.order_by("number")[:1],
    "raw sql": lambda rows: rows.filter(
        pk__in=RawSQL("SELECT id FROM nasty_order WHERE api_token = %s", ["t1"])
    ),
    "alias": lambda rows: rows.alias(secret=Upper("api_token")).filter(secret="T1"),
    "filtered relation": lambda rows: rows.annotate(
        cheap=FilteredRelation("lines", condition=Q(lines__cost=1))
    ).filter(cheap__sku="y"),
}


@pytest.mark.parametrize("name", BASES)
def test_a_narrow_queryset_of_the_site_is_kept_and_not_judged(shop, name):
    who = caller(narrow={Order: BASES[name]})

    assert numbers(who) == ["A1"]
    assert numbers(who, filters={"customer__country": "FR", "tags__slug": "red"}) == ["A1"]
    assert numbers(who, filters={"customer__country": "DE"}) == []
    assert numbers(who, exclude={"lines__sku": "y"}) == []
    assert numbers(who, any_of=[{"number": "A2"}, {"status": "new"}]) == []
    assert numbers(who, search="A2") == []
    assert count(who, Order) == 1
    assert record(who, Order, shop.a1.pk)["number"] == "A1"
    keys, exposure = [shop.a1.pk, shop.a2.pk], who.exposure("nasty.order")
    assert set(find_objects(who, exposure, keys, using="default")) == {shop.a1}
    with pytest.raises(NotFound):
        record(who, Order, shop.a2.pk)
    lines = records(who, Line, filters={"order__status__in": ["paid", "new"]})
    assert [row["sku"] for row in lines] == ["x", "y"]


def test_inherited_and_proxy_models_are_found_over_the_parents_columns(shop):
    for narrow in (None, {Customer: lambda rows: rows.filter(tenant__name="a")}):
        who = caller(narrow=narrow)
        RushOrder.objects.update(customer=shop.anne)

        assert numbers(who, RushOrder, filters={"courier": "zed", "id": shop.r1.pk}) == ["R1"]
        assert numbers(who, RushOrder, filters={"customer__country": "FR"}) == ["R1"]
        assert numbers(who, RushOrder, filters={"tags__slug": "zed"}) == []
        assert numbers(who, RushOrder, exclude={"lines__sku": "x"}) == ["R1"]
        assert numbers(who, RushOrder, filters={"notes__text": "hello"}) == []
        assert numbers(who, PaidOrder, filters={"lines__sku": "y"}) == ["A1"]
    assert record(caller(), RushOrder, str(shop.r1.pk))["customer__name"] == "Anne"


def test_a_page_that_is_too_long_in_bytes_ends_early_with_a_cursor(shop):
    Order.objects.update(remark="x" * 1500)
    arguments = {"fields": ["number", "remark"], "order_by": ["number"]}
    with override_settings(MCP_DJANGO={"MAX_RESPONSE": 10}):
        start = page(caller(), Order, **arguments)
        then = page(caller(), Order, **arguments, cursor=start.next_cursor)
        assert objects(then.table)[0]["number"] == "A2"


def test_keys_are_taken_as_json_values_and_as_texts_of_a_uri(shop):
    Seat.objects.create(hall=1, number=2, label="x")
    Odd.objects.create(word="w")

    assert record(caller(), Order, shop.a1.pk)["number"] == "A1"
    assert record(caller(), Order, str(shop.a1.pk))["number"] == "A1"
    assert record(caller(), Tricky, "a/b")["year"] == 2020
    assert record(caller(), Seat, [1, 2])["label"] == "x"
    assert record(caller(), Seat, ["1", "2"], fields=["label"]) == {"label": "x"}
    assert record(caller(), Odd, "w") == {"word": "w"}


class Judge(Narrowable):
    """Shows every second order, and says so object by object."""

    def has_view_permission(self, request, obj=None):
        return obj is None or obj.number[-1:] in "02468"


def judged(**narrow):
    tables = registry({Order: {**ORDER, "bases": (Judge,)}})
    return caller(tables=tables, **narrow)


def many_orders(size=40):
    owner = Person.objects.create(username="o")
    Order.objects.bulk_create(Order(owner=owner, number=f"{n:03}") for n in range(size))


@pytest.mark.parametrize("names", [("000", "xx1"), ("000", "xx1", "xx3"), ("000", "zz1")])
def test_no_cursor_tells_of_a_row_that_is_judged_away(db, names):
    owner = Person.objects.create(username="o")
    Order.objects.bulk_create(Order(owner=owner, number=name) for name in names)
    either = [{"number": "000"}, {"number__startswith": "xx"}]

    found = page(judged(), Order, any_of=either, order_by=["number"], limit=1)

    assert found.count == 1
    assert found.next_cursor is None


# Values that no database takes, and calls of odd shapes.


def refusal_or_none(**arguments):
    """The sentence that refuses a call, or None where it ran. Anything else is raised."""
    try:
        with transaction.atomic():
            page(caller(), Order, **{"fields": ["id"], "limit": 2, **arguments})
    except QueryError as error:
        return str(error)
    return None


@pytest.mark.thorough
@pytest.mark.parametrize("keys", [KEYS[at::4] for at in range(4)], ids=range(4))
def test_a_hostile_value_is_refused_in_words_or_simply_finds_nothing(shop, keys):
    refusals = [
        refusal_or_none(**{place: {key: value}})
        for key in keys
        for value in VALUES
        for place in ("filters", "exclude")
    ]

    assert None in refusals
    assert not [one for one in refusals if one is not None and not 10 < len(one) < 1500]


def test_a_hostile_shape_is_refused():
    shapes = [one for one in SHAPES if {*one} <= {*FindRecords.__struct_fields__} - {"model"}]

    assert not [one for one in shapes if not 10 < len(refusal_or_none(**one) or "") < 1500]


@pytest.mark.parametrize("model", [Order, Tricky, Seat, Odd])
def test_a_hostile_key_of_a_record_is_simply_not_found(model):
    for value in [*VALUES, "explode", [1, "x"], [1, 2, 3], [[1], [2]]]:
        with transaction.atomic(), pytest.raises(NotFound):
            record(caller(), model, value)


# Search by words and their forms, where the exposure asks for it and the database has it.

FULL_TEXT = registry({Order: {"fields": "number", "search_fields": "@remark number"}})


@pytest.fixture
def _remarks(shop):
    for order, remark in ((shop.a1, "Two running horses"), (shop.a2, "A horse race")):
        order.remark = remark
        order.save()


def found_by(words):
    return numbers(caller(tables=FULL_TEXT), search=words)


@pytest.mark.usefixtures("_remarks")
def test_without_it_words_are_found_as_they_are_written():
    assert found_by("horse") == ["A1", "A2"]
    assert found_by("horse run") == ["A1"]
    assert found_by("ran") == []


@pytest.mark.usefixtures("_remarks")
@pytest.mark.skipif(connection.vendor != "postgresql", reason="only PostgreSQL has it")
def test_forms_of_a_word_are_found_on_postgresql():
    with modify_settings(INSTALLED_APPS={"append": "django.contrib.postgres"}):
        assert found_by("races") == ["A2"]
        assert found_by("run horse") == ["A1"]
        assert found_by("A2") == ["A2"]
        assert found_by("cars") == []


@pytest.mark.usefixtures("_remarks")
@pytest.mark.skipif(connection.vendor != "postgresql", reason="only PostgreSQL has it")
@pytest.mark.parametrize("words", ["' | 'x", "a & !b", ":*", "\\", "%", "(((", "-- x", "horse:*A"])
def test_the_signs_of_text_queries_are_only_characters(words):
    with modify_settings(INSTALLED_APPS={"append": "django.contrib.postgres"}):
        assert set(found_by(words)) <= {"A1", "A2"}


# Parts of points in time, on databases that may not know the time zone of the site.

PARTS = {
    "placed_at__month": 7,
    "placed_at__hour": 7,
    "placed_at__quarter__in": [4],
    "placed_at__week_day__in": [4],
    "placed_at__year__in": [2026],
}


@pytest.fixture
def without_tables(monkeypatch):
    monkeypatch.setattr(connection.features, "has_zoneinfo_database", False)


@pytest.mark.parametrize("key", PARTS)
def test_without_zone_tables_parts_are_refused_and_not_wrong(shop, without_tables, key):
    with timezone.override("Europe/Paris"):
        sentence = refusal(numbers, filters={key: PARTS[key]})

    assert "no time zone tables" in sentence
    offered = json.loads(re.search(r"\{.*\}", sentence)[0])
    with timezone.override("Europe/Paris"):
        assert numbers(filters=offered) == []


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"placed_at__year": 2026}, ["A1"]),
        ({"placed_at__year__range": [2025, 2026]}, ["A1"]),
        ({"placed_at__date": "2026-02-01"}, ["A1"]),
        ({"placed_at__date": "2026-01-31"}, []),
        ({"due__month": 2}, []),
    ],
    ids=str,
)
def test_years_and_days_need_no_zone_tables(shop, without_tables, filters, found):
    # A1 was placed at half past midnight of the first of February, in Paris.
    with timezone.override("Europe/Paris"):
        assert numbers(filters=filters) == found
    # In the zone of the database parts need none either.
    assert numbers(filters={"placed_at__month": 1, "placed_at__hour": 23}) == ["A1"]


# Pages as tables: each label once, and only of rows that the page has.


def table(rights=None, **arguments):
    given = {"fields": ["number", "customer"], "order_by": ["number"], **arguments}
    return msgspec.json.decode(page(rights or caller(), Order, **given).answer)


def test_a_label_is_said_once_for_all_rows(shop):
    Order.objects.filter(pk=shop.a2.pk).update(customer=shop.anne)

    found = table(filters={"number__in": ["A1", "A2"]})

    assert found == {
        "columns": ["number", "customer"],
        "rows": [["A1", shop.anne.pk], ["A2", shop.anne.pk]],
        "labels": {"nasty.customer": {str(shop.anne.pk): "Anne"}},
    }


def test_a_page_that_ends_early_in_bytes_counts_its_labels(shop):
    tenant = Tenant.objects.first()
    for order in (shop.a1, shop.a2, shop.a3):
        customer = Customer.objects.create(tenant=tenant, name=order.number * 20, country="FR")
        Order.objects.filter(pk=order.pk).update(customer=customer)

    with override_settings(MCP_DJANGO={"MAX_RESPONSE": 400}):
        found, numbers = table(), table(fields=["number"])

    assert len(numbers["rows"]) == 4
    assert [number for number, _ in found["rows"]] == ["A1"]
    assert found["next"]
    assert "A2A2" not in str(found)


def test_the_columns_of_related_records_are_said_with_their_name(shop):
    asked = {"include": ["orders"], "fields": ["name"], "filters": {"name": "Anne"}}
    who = caller(tables=registry({Order: {"fields": "id number customer"}}))
    found = msgspec.json.decode(page(who, Customer, **asked).answer)

    name, orders = found["columns"]
    assert name == "name"
    assert "number" in orders["orders"]
    [[_, cell]] = found["rows"]
    assert cell.keys() == {"count", "rows"}
    assert len(cell["rows"][0]) == len(orders["orders"])
