"""Pages laid end to end are the full list, whatever the order, NULLs, ties and writers."""

from __future__ import annotations

import base64
import uuid
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import msgspec
import pytest
from django.core import signing
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_django.exceptions import QueryError
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query import find, pagination
from mcp_django.signing import seal
from tests.exposure.query.test_find import Judge, many_orders
from tests.nasty.models import Customer, Order, Person, Seat, Tenant
from tests.nasty.site import ORDER, Narrowable, caller, objects, page, records, refusal, registry

pytestmark = [pytest.mark.django_db, pytest.mark.database]

TEXT = st.sampled_from(
    ["", " ", "a", "A", "á", "ä", "b", "Z", "_", "%", "ß", "ss", "a ", "\U0001f600", "'", "\\",
     "10", "9", "a\nb", "İ", "\u0131"]
)  # fmt: skip
ROW = st.fixed_dictionaries(
    {
        "number": TEXT,
        "total": st.none() | st.decimals(-999, 999, places=2),
        "quantity": st.integers(-3, 3),
        "weight": st.none()
        | st.sampled_from([0.0, -0.0, 0.1 + 0.2, 0.3, 1e300, -1e300, 5e-324, 1 / 3]),
        "gift": st.none() | st.booleans(),
        "status": st.sampled_from(["new", "paid"]),
        "placed_at": st.none()
        | st.sampled_from(
            [
                datetime(2026, 3, 29, 1, minute, 0, micro, tzinfo=UTC)
                for minute in (0, 59)
                for micro in (0, 1, 999999)
            ]
        ),
        "due": st.none() | st.dates(date(1999, 12, 30), date(2000, 1, 2)),
        "at": st.none() | st.sampled_from([time(0), time(1, 2, 3, 4), time(23, 59, 59, 999999)]),
        "took": st.none()
        | st.sampled_from([timedelta(0), timedelta(days=-1), timedelta(microseconds=1)]),
        "ref": st.none() | st.sampled_from([uuid.UUID(int=n) for n in (0, 2**64, 2**128 - 1)]),
        "who": st.sampled_from([None, 0, 1, 2]),
    }
)
TERM = st.tuples(st.sampled_from(ORDER["order_fields"].split()), st.booleans())
SLOW: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def pages(who, model, between=lambda: None, **arguments):
    """All records page by page, with something happening after each page."""
    cursor, found = None, []
    for _ in range(200):
        more: dict[str, Any] = {"cursor": cursor} if cursor else {}
        one = page(who, model, **arguments, **more)
        found += objects(one.table)
        if (cursor := one.next_cursor) is None:
            return found
        between()
    raise AssertionError("paging does not end")


@settings(**SLOW)
@given(
    rows=st.lists(ROW, max_size=12),
    later=st.lists(ROW, max_size=4),
    terms=st.lists(TERM, max_size=3, unique_by=lambda term: term[0]),
    size=st.integers(1, 5),
)
def test_pages_are_the_list_under_inserts(rows, later, terms, size):
    with transaction.atomic():
        owner = Person.objects.create(username="o")
        tenant = Tenant.objects.create(name="t")
        people = [Customer.objects.create(tenant=tenant, name=n, country="FR") for n in "bBa"]

        def insert(row):
            row = dict(row)
            who = row.pop("who")
            row["customer"] = None if who is None else people[who]
            return Order.objects.create(owner=owner, **row).pk

        before = {insert(row) for row in rows}
        waiting = list(later)
        call = {
            "order_by": [("-" if is_down else "") + name for name, is_down in terms],
            "fields": ["id"],
        }
        whole = [row["id"] for row in records(caller(), Order, **call, limit=200)]
        paged = [
            row["id"]
            for row in pages(
                caller(), Order, lambda: waiting and insert(waiting.pop()), **call, limit=size
            )
        ]

        assert len(paged) == len(set(paged)), "a row came twice"
        assert [pk for pk in paged if pk in before] == whole, "a row was lost or moved"
        transaction.set_rollback(True)


#: Values that a column can hold and its field cannot, and what records show.
BEYOND_THE_FIELD = {
    "postgresql": [
        ("total", ["NaN", "1.50", "NaN"], ["NaN", "1.50", "NaN"]),
        ("weight", ["NaN", "Infinity", "-Infinity", "1.5"], ["nan", "inf", "-inf", 1.5]),
    ],
    "sqlite": [
        ("total", ["x", 1.5, 9e999], ["<unreadable>", "1.50", "<unreadable>"]),
        ("weight", ["x", 9e999, 1.5], ["x", "inf", 1.5]),
        ("quantity", ["x", 5, 1.5, b"\xff"], ["x", 5, 1.5, "b'\\xff'"]),
        ("ref", ["x", "0" * 32], ["<unreadable>", "00000000-0000-0000-0000-000000000000"]),
        ("took", ["x", 5], ["<unreadable>", "P0DT00H00M00.000005S"]),
        ("number", [b"\xff", "a", 5], ["/w==", "a", "5"]),
    ],
}


@pytest.mark.parametrize("is_down", [False, True])
def test_pages_go_on_behind_values_that_their_field_cannot_hold(is_down):
    owner = Person.objects.create(username="o")
    for name, stored, shown in BEYOND_THE_FIELD.get(connection.vendor, ()):
        with transaction.atomic():
            made = [Order.objects.create(owner=owner).pk for _ in stored]
            with connection.cursor() as cursor:
                sql = f"UPDATE nasty_order SET {name} = %s WHERE id = %s"
                cursor.executemany(sql, list(zip(stored, made, strict=True)))
            call = {"fields": ["id", name], "order_by": [f"-{name}" if is_down else name]}

            paged = pages(caller(), Order, **call, limit=1)

            assert {row["id"]: row[name] for row in paged} == dict(zip(made, shown, strict=True))
            assert len(paged) == len(made)
            transaction.set_rollback(True)


@pytest.mark.parametrize("order", [["label"], ["-label"], ["-hall"], ["label", "-number"]])
def test_every_part_of_a_composite_key_breaks_ties(order):
    labels = [None, "a", "A", None, "b", "a"]
    Seat.objects.bulk_create(
        Seat(hall=at // 3, number=at % 3, label=label) for at, label in enumerate(labels)
    )
    call = {"order_by": order, "fields": ["hall", "number"]}

    assert pages(caller(), Seat, **call, limit=2) == records(caller(), Seat, **call, limit=200)


def first_cursor(who, **arguments):
    return page(who, Order, limit=1, **arguments).next_cursor


def test_a_cursor_belongs_to_one_caller_server_query_and_declaration(shop):
    cursor = first_cursor(caller())
    narrowed = caller(tables=registry({Order: {**ORDER, "exclude": "total"}}))
    strangers: list[tuple[Rights, dict[str, Any]]] = [
        (caller(pk=2), {}),
        (caller(client="other"), {}),
        (caller(server="other"), {}),
        (narrowed, {}),
        (caller(shown={Order: ["id", "number"]}), {}),
        (caller(narrow={Customer: lambda rows: rows.filter(country="FR")}), {}),
        (caller(), {"filters": {"status": "paid"}}),
        (caller(), {"exclude": {"status": "paid"}}),
        (caller(), {"search": "A"}),
        (caller(), {"any_of": [{"status": "paid"}]}),
        (caller(), {"order_by": ["number"]}),
    ]

    for who, arguments in strangers:
        with pytest.raises(QueryError, match="not valid"):
            page(who, Order, cursor=cursor, **arguments)
    # The size of a page and its fields may change on the way.
    assert len(records(caller(), Order, cursor=cursor, limit=3, fields=["number"])) == 3


def test_any_other_text_is_no_cursor_and_one_lives_for_an_hour(shop, monkeypatch):
    cursor = first_cursor(caller())
    forged = [
        cursor[:-1],
        cursor + "=",
        "x" + cursor,
        signing.TimestampSigner(salt="other").sign(cursor.rsplit(":", 2)[0]),
        seal("[1]", purpose="cursor", bound_to="other"),
        "e30",
        "/",
    ]

    for text in forged:
        assert refusal(page, caller(), Order, cursor=text) == pagination.STALE
    monkeypatch.setattr(pagination, "LIFETIME", timedelta(seconds=-1))
    with pytest.raises(QueryError, match="not valid"):
        page(caller(), Order, cursor=cursor)


def test_the_next_page_starts_in_the_index(shop, django_assert_num_queries):
    arguments = {"order_by": ["-number"], "fields": ["number"], "limit": 1}
    cursor = page(caller(), Order, **arguments).next_cursor

    with django_assert_num_queries(1) as seen:
        page(caller(), Order, **arguments, cursor=cursor)

    column = ".".join(map(connection.ops.quote_name, ("nasty_order", "number")))
    assert f"{column} <= " in seen.captured_queries[0]["sql"]


def test_values_of_the_sites_own_classes_order_pages_as_the_database_does(shop):
    for price, order in enumerate(Order.objects.order_by("-pk")):
        Order.objects.filter(pk=order.pk).update(price=price % 3)
    options = {**ORDER, "fields": "number price", "order_fields": "price"}
    who = caller(tables=registry({Order: options}))

    found = pages(who, Order, order_by=["price"], limit=1)

    assert [row["price"] for row in found] == ["EUR 0.00", "EUR 0.00", "EUR 0.01", "EUR 0.02"]
    assert len({row["number"] for row in found}) == 4


# What the caller may not see is in no cursor: then it counts records.


def inside(cursor):
    """What anybody can read in a cursor."""
    raw = cursor.partition(":")[0]
    return msgspec.json.decode(base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4)))


@pytest.mark.parametrize(
    ("options", "order_by"),
    [
        ({"fields": "number status"}, ["number"]),
        ({"fields": "number status"}, ["-pk"]),
        ({"fields": "id number", "filter_fields": "total", "order_fields": "total"}, ["total"]),
    ],
    ids=["no key", "ordered by the key", "a column for filters only"],
)
@pytest.mark.parametrize("base", [Narrowable, Judge])
def test_a_cursor_counts_records_where_the_order_has_a_hidden_column(db, options, order_by, base):
    many_orders(12)
    who = caller(tables=registry({Order: {**ORDER, **options, "bases": (base,)}}))

    found = pages(who, Order, order_by=order_by, fields=["number"], limit=2)
    cursor = page(who, Order, order_by=order_by, limit=2).next_cursor

    assert inside(cursor) == [2]
    assert found == records(who, Order, order_by=order_by, fields=["number"], limit=50)
    assert len(found) == (12 if base is Narrowable else 6)


def test_a_cursor_holds_nothing_of_a_row_that_is_judged_away_and_none_is_looked_for_too_far(
    db, monkeypatch, settings
):
    many_orders(40)
    Order.objects.exclude(number__in=["000", "038"]).update(number="1")
    who = caller(tables=registry({Order: {**ORDER, "bases": (Judge,)}}))
    shown = {row["id"] for row in records(who, Order, limit=200)}

    found = page(who, Order, limit=2)

    assert len(shown) == 2
    assert found.count == 1
    assert set(inside(found.next_cursor)) <= shown
    assert len(pages(who, Order, limit=2)) == 2

    Order.objects.exclude(number="038").update(number="1")
    monkeypatch.setattr(find, "FARTHEST", 20)
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "PAGE_SIZE": 5, "MAX_PAGE_SIZE": 5}
    with pytest.raises(QueryError, match="Narrow the search with filters"):
        page(who, Order, limit=1)
    assert records(who, Order, filters={"number": "038"}, limit=1) != []
