"""Who may hear of a change: the rights of a read, without reading."""

from __future__ import annotations

import pytest
from django.db import DataError, OperationalError

from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure.uris import object_uri
from mcp_django.principal import WRITE
from mcp_django.subscriptions.admission import Existence, Verdict, admit_all, may_subscribe
from tests.changed import admit
from tests.exposure.test_permissions import rights_of
from tests.nasty import models as nasty
from tests.nasty.site import caller
from tests.nasty.site import registry as nasty_registry
from tests.shop.models import Memo, Order

pytestmark = pytest.mark.django_db

VISIBLE, GONE, SILENT = Verdict.VISIBLE, Verdict.GONE, Verdict.SILENT


def uri_of(obj):
    return object_uri(obj._meta.label_lower, obj.pk)


#: URIs of things that are there, with or without a model.
THERE = [
    "django://models/shop.memo",
    "django://objects/shop.memo?code=x",
    "django://objects/shop.memo/1",
    "django://files/shop.memo/1/scan",
]


@pytest.mark.parametrize("uri", ["django://site", *THERE])
def test_what_is_there_is_so_for_whoever_has_the_model_and_the_scope(staff, make_user, uri):
    Memo.objects.create(pk=1, text="x", code="x", scan="a.txt")
    nobody = make_user("nobody", "view_order", is_staff=True)

    assert admit(rights_of(staff), uri) is VISIBLE
    may_subscribe(rights_of(staff), uri)
    assert admit(rights_of(staff, scopes=frozenset()), uri) is SILENT
    assert admit(rights_of(staff, scopes=frozenset({WRITE})), uri) is VISIBLE
    assert admit(rights_of(staff, models=frozenset({"shop.memo"})), uri) is VISIBLE
    if uri in THERE:
        assert admit(rights_of(staff, models=frozenset({"shop.order"})), uri) is SILENT
        assert admit(rights_of(nobody), uri) is SILENT


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_record_that_left_the_rows_of_the_caller_is_gone(staff, change_admin, is_deleted):
    order = Order.objects.create(number="A1")
    uri = uri_of(order)
    change_admin(Order, get_queryset=lambda self, request: Order.objects.filter(status="new"))
    assert admit(rights_of(staff), uri) is VISIBLE
    may_subscribe(rights_of(staff), uri)

    if is_deleted:
        order.delete()
    else:
        Order.objects.update(status=Order.Status.PAID)

    assert admit(rights_of(staff), uri) is GONE


#: What a site may write so that of two orders the first alone is there.
NARROWED = {
    "sliced": {"get_queryset": lambda self, request: Order.objects.order_by("pk")[:1]},
    "combined": {
        "get_queryset": lambda self, request: Order.objects.filter(number="A1").union(
            Order.objects.filter(number="none")
        )
    },
    "judged one by one": {
        "has_view_permission": lambda self, request, obj=None: obj is None or obj.number == "A1"
    },
    "for some": {
        "get_queryset": lambda self, request: Order.objects.filter(
            **{} if request.user.username == "boss" else {"number": "A1"}
        )
    },
}


@pytest.mark.parametrize("methods", NARROWED.values(), ids=NARROWED)
def test_rows_that_the_site_narrows_are_not_widened_by_what_others_have(
    staff, make_user, change_admin, methods
):
    orders = [Order.objects.create(number=number) for number in ("A1", "A2")]
    uris = [uri_of(order) for order in orders]
    change_admin(Order, **methods)
    existence = Existence()
    boss = rights_of(make_user("boss", is_superuser=True, is_staff=True))
    admit_all(boss, uris, existence=existence)

    verdicts = admit_all(rights_of(staff), uris, existence=existence)

    assert list(verdicts.values()) == [VISIBLE, GONE]


@pytest.mark.parametrize(
    "error",
    [RuntimeError("secret"), DataError("a rule of the site"), OperationalError("interrupted")],
)
def test_code_of_the_site_that_fails_tells_nothing_and_stops_nothing(
    staff, change_admin, caplog, error
):
    def fail(self, request, obj=None):
        if obj is not None:
            raise error
        return True

    order, memo = Order.objects.create(number="A"), Memo.objects.create(text="x", code="x")
    change_admin(Order, has_view_permission=fail)

    verdicts = admit_all(rights_of(staff), [uri_of(order), uri_of(memo)])

    assert list(verdicts.values()) == [SILENT, VISIBLE]
    assert "cannot be told" in caplog.text


def test_an_exposure_that_cannot_be_used_tells_nothing_and_stops_nothing(caplog):
    tables = nasty_registry({nasty.Order: {"fields": "number attachment nothing"}})
    nasty.Seat.objects.create(hall=1, number=2)
    broken, sound = "django://files/nasty.order/1/attachment", "django://objects/nasty.seat/1/2"

    verdicts = admit_all(caller(tables=tables), [broken, sound])

    assert verdicts == {broken: SILENT, sound: VISIBLE}
    assert "nothing" in caplog.text


@pytest.mark.parametrize(
    ("uri", "verdict"),
    [
        ("django://objects/shop.order/x", GONE),
        ("django://objects/shop.order/1/2", GONE),
        ("django://objects/no.model/1", SILENT),
        ("django://objects/shop.ledger/1", SILENT),
        ("django://nothing/x", SILENT),
        ("django://files/shop.memo/scan", SILENT),
        ("django://files/shop.memo/1/text", SILENT),
        ("django://files/shop.memo/1/draft", SILENT),
        ("django://files/shop.memo/1/nothing", SILENT),
        ("django://files/shop.memo/1/scan", GONE),
        ("django://objects/shop.order/%zz", SILENT),
        ("shop://nothing", SILENT),
        ("shop://" + "x" * 5000, SILENT),
    ],
)
def test_what_was_never_there_is_no_subscription(staff, uri, verdict):
    assert admit(rights_of(staff), uri) is verdict
    with pytest.raises(NotFound):
        may_subscribe(rights_of(staff), uri)


def test_a_model_with_numbers_only_has_no_records_to_hear_of():
    tables = nasty_registry({nasty.Seat: {"fields": "hall number", "aggregates_only": True}})
    nasty.Seat.objects.create(hall=1, number=2)
    who = caller(tables=tables)

    assert admit(who, "django://objects/nasty.seat/1/2") is SILENT
    assert admit(who, "django://objects/nasty.seat") is SILENT
    assert admit(who, "django://models/nasty.seat") is VISIBLE
    with pytest.raises(QueryError):
        may_subscribe(who, "django://objects/nasty.seat/1/2")


@pytest.mark.parametrize(("count", "queries"), [(3, 1), (201, 2)])
def test_records_of_a_model_cost_one_query_for_two_hundred(
    django_assert_num_queries, count, queries
):
    nasty.Seat.objects.bulk_create(nasty.Seat(hall=1, number=n) for n in range(count - 1))
    who = caller()
    uris = [object_uri("nasty.seat", (1, n)) for n in range(count)]
    admit(who, uris[0])

    with django_assert_num_queries(queries):
        verdicts = admit_all(who, uris)

    assert list(verdicts.values()) == [*[VISIBLE] * (count - 1), GONE]


def test_one_query_serves_all_who_have_every_row(make_user, django_assert_num_queries):
    memo = Memo.objects.create(text="x", code="x")
    users = [make_user(f"u{n}", "view_memo", is_staff=True) for n in range(5)]
    everybody = [rights_of(user) for user in users]
    for rights in everybody:
        assert rights.may_view(Memo)
    existence = Existence()

    with django_assert_num_queries(1):
        there = [admit(one, uri_of(memo), existence=existence) for one in everybody]
        missing = [admit(one, uri_of(memo), existence=existence) for one in everybody]

    assert set(there) == {VISIBLE}
    assert missing == there
    assert admit(everybody[0], "django://objects/shop.memo/0", existence=existence) is GONE


def test_resources_of_code_are_there_for_whom_their_permission_lets_in(
    staff, make_user, add_resource
):
    ran = []

    def report(year: int) -> str:
        """What was sold in a year."""
        ran.append(year)
        return "much"

    add_resource("shop://reports/{year}", report, permission="shop.view_order")

    assert admit(rights_of(staff), "shop://reports/2026") is VISIBLE
    may_subscribe(rights_of(staff), "shop://reports/2026")
    assert admit(rights_of(staff), "shop://reports/x") is SILENT
    assert admit(rights_of(make_user("nobody")), "shop://reports/2026") is SILENT
    assert not ran
