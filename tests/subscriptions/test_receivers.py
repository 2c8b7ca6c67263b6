"""From a save, or `mcp.touch`, to what is announced."""

from __future__ import annotations

import gc

import pytest
from django.core import serializers
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.db.migrations.state import ModelState, ProjectState
from django.db.models import Case, F, Q, When
from django.db.models.signals import m2m_changed, post_save

import mcp_django as mcp
from mcp_django.cached import Cached
from mcp_django.exposure.registry import registry
from mcp_django.exposure.uris import SITE
from mcp_django.models import ExposedModel
from mcp_django.subscriptions import receivers
from mcp_django.subscriptions.outbox import outbox
from mcp_django.subscriptions.topics import Change
from tests.nasty import models as nasty
from tests.shop.models import Customer, Ledger, Memo, Order
from tests.waiting import PATIENCE

pytestmark = pytest.mark.django_db

ORDERS, MEMOS = "django://objects/shop.order", "django://objects/shop.memo"
NASTY = "django://objects/nasty."


@pytest.fixture
def nasty_order(heard):
    return nasty.Order.objects.create(
        owner=nasty.Person.objects.create(username="boss"), number="N1"
    )


def test_a_record_that_comes_or_goes_changes_itself_its_collection_and_the_overview(announced):
    # A key that code assigned as a text is spelled as the number.
    memo = Memo(pk="0007", text="x", code="x")

    for change in (memo.save, memo.delete):
        assert announced(change).changes == {
            Change(topic=f"{MEMOS}/7"),
            Change(topic=MEMOS),
            Change(topic=SITE, model="shop.memo"),
        }


@pytest.mark.parametrize(
    ("fields", "is_seen"),
    [
        (None, True),
        (["status"], True),
        # A declared field by the name of its column.
        (["margin", "customer_id"], True),
        (["margin"], False),
        # Staff took it out.
        (["total"], False),
    ],
)
def test_what_a_save_hides_is_told_to_nobody_but_who_no_longer_sees_it(announced, fields, is_seen):
    ExposedModel.objects.create(label="shop.order", fields=["id", "number", "status", "customer"])
    order = Order.objects.create(number="A1", customer=Customer.objects.create(name="Ada"))

    topic = f"{ORDERS}/{order.pk}"
    assert announced(lambda: order.save(update_fields=fields)).changes == (
        {Change(topic=topic), Change(topic=ORDERS)}
        if is_seen
        else {Change(topic=topic, is_hidden=True)}
    )


@pytest.mark.parametrize("level", [3, 0])
def test_a_model_is_announced_while_staff_have_it_open(heard, announced, committed, level):
    assert not announced(lambda: Ledger.objects.create(amount=1)).changes

    ExposedModel.objects.create(label="shop.ledger", level=level)
    with committed():
        ledger = Ledger.objects.create(amount=1)

    assert (f"django://objects/shop.ledger/{ledger.pk}" in heard.topics) is (level == 3)


def a_seat(order):
    nasty.Seat.objects.create(hall=1, number=1)


def a_tag_of_an_order(order):
    order.tags.create(slug="red")


def a_memo_of_the_past(order):
    state = ProjectState()
    state.add_model(ModelState.from_model(Memo))
    state.apps.get_model("shop", "Memo").objects.create(text="x", code="x")


def memos_in_bulk(order):
    Memo.objects.bulk_create([Memo(text="x", code="x")])
    Memo.objects.update(text="y")


@pytest.mark.parametrize("change", [a_seat, a_tag_of_an_order, a_memo_of_the_past, memos_in_bulk])
def test_of_what_nobody_exposes_or_sends_no_signal_nothing_is_told(
    heard, committed, nasty_order, change
):
    with committed():
        change(nasty_order)
        # It costs no more than a look.
        assert not connection.run_on_commit

    assert not heard.changes


@pytest.mark.parametrize(
    "expression",
    [F("quantity") * 2, Case(When(Q(quantity=1) | Q(quantity=F("id")), then=2), default=3)],
    ids=["arithmetic", "condition"],
)
def test_a_generated_column_changes_with_what_it_is_made_of(
    announced, expose, nasty_order, monkeypatch, expression
):
    monkeypatch.setattr(nasty.Order._meta.get_field("double"), "expression", expression)
    expose(nasty.Order, fields=["number", "double"])

    assert f"{NASTY}order" in announced(lambda: nasty_order.save(update_fields=["quantity"])).seen

    assert not announced(lambda: nasty_order.save(update_fields=["weight"])).seen


# Tables that several models share.


def test_a_child_is_a_record_of_its_parents_and_of_their_proxies(
    heard, announced, committed, expose
):
    for model in (nasty.Order, nasty.RushOrder, nasty.PaidOrder):
        expose(model, fields=["number"])
    boss = nasty.Person.objects.create(username="boss")

    with committed():
        rush = nasty.RushOrder.objects.create(owner=boss, number="R", courier="zed")

    collections = {f"{NASTY}{name}" for name in ("order", "rushorder", "paidorder")}
    shared = collections.union(f"{collection}/{rush.pk}" for collection in collections)
    assert heard.topics == {SITE, *shared}
    assert announced(nasty.PaidOrder.objects.get(pk=rush.pk).save).topics == shared


def test_a_parent_that_is_saved_changes_its_child(announced, expose):
    expose(nasty.RushOrder, fields=["number", "courier"])
    boss = nasty.Person.objects.create(username="boss")
    rush = nasty.RushOrder.objects.create(owner=boss, number="R", courier="zed")

    parent = nasty.Order.objects.get(pk=rush.pk)

    assert announced(lambda: parent.save(update_fields=["number"])).seen == {
        f"{NASTY}rushorder",
        f"{NASTY}rushorder/{rush.pk}",
    }
    assert not announced(lambda: parent.save(update_fields=["margin"])).seen


# Models that paths pass through.


def new_line(order):
    return nasty.Line.objects.create(order=order, sku="x", amount=1)


def new_note(order):
    return nasty.Note.objects.create(target=order, text="x")


def new_customer(order):
    return nasty.Customer.objects.create(
        name="A", country="NO", tenant=nasty.Tenant.objects.create(name="t")
    )


@pytest.mark.parametrize(
    ("make", "field", "is_heard"),
    [
        (new_customer, "country", True),
        (new_customer, "name", False),
        (new_line, "sku", True),
        (new_line, "order", True),
        (new_line, "cost", False),
        (new_note, "text", True),
        (new_note, "content_type", True),
        (new_note, "author", False),
    ],
)
def test_a_related_record_changes_the_collection_by_what_paths_look_at(
    heard, announced, committed, expose, nasty_order, make, field, is_heard
):
    paths = ["number", "customer__country", "lines__sku", "notes__text", "tags__slug"]
    expose(nasty.Order, fields=["number"], filter_fields=paths)
    with committed():
        row = make(nasty_order)
    assert heard.changes == {Change(topic=f"{NASTY}order", model=row._meta.label_lower)}

    assert announced(lambda: row.save(update_fields=[field])).topics == (
        {f"{NASTY}order"} if is_heard else set()
    )


def test_the_label_of_a_related_record_counts_where_records_show_it(
    announced, expose, nasty_order
):
    expose(nasty.Order, fields=["number", "customer"])
    expose(nasty.Customer, fields=["country"], label_fields=["name"])
    customer = nasty.Customer.objects.create(
        name="A", tenant=nasty.Tenant.objects.create(name="t")
    )

    assert f"{NASTY}order" in announced(lambda: customer.save(update_fields=["name"])).seen


# Many-to-many relations.


@pytest.fixture
def tagged(expose, nasty_order):
    expose(nasty.Order, fields=["number"], filter_fields=["tags__slug", "watchers__username"])
    expose(nasty.Person, fields=["username"], filter_fields=["watched__number"])
    expose(nasty.Tag, fields=["slug"])
    expose(nasty.Watch, fields=["person"])
    return nasty_order


@pytest.mark.parametrize("is_reverse", [False, True], ids=["this side", "the other side"])
@pytest.mark.parametrize("verb", ["add", "clear", "set", "remove"])
def test_what_is_linked_or_taken_away_is_heard_on_both_sides(announced, tagged, verb, is_reverse):
    boss = tagged.owner
    links, other = (boss.watched, tagged) if is_reverse else (tagged.watchers, boss)
    if verb != "add":
        links.add(other)
    arguments = {"clear": (), "set": ([],)}.get(verb, (other,))
    taken = [*nasty.Watch.objects.values_list("pk", flat=True)]

    assert announced(lambda: getattr(links, verb)(*arguments)).seen == {
        SITE,
        f"{NASTY}watch",
        *(f"{NASTY}watch/{key}" for key in taken),
        *(f"{NASTY}order", f"{NASTY}order/{tagged.pk}"),
        *(f"{NASTY}person", f"{NASTY}person/{boss.pk}"),
    }


def test_a_relation_that_no_path_names_is_hidden_and_what_is_linked_already_changes_nothing(
    announced, tagged
):
    tag = nasty.Tag.objects.create(slug="red")

    changes = announced(lambda: tagged.tags.add(tag)).changes

    assert Change(topic=f"{NASTY}order/{tagged.pk}") in changes
    assert Change(topic=f"{NASTY}tag/{tag.pk}", is_hidden=True) in changes
    assert not announced(lambda: tagged.tags.add(tag)).changes


def test_too_many_at_once_are_any_of_the_model(announced, tagged, monkeypatch):
    monkeypatch.setattr("mcp_django.subscriptions.receivers.MOST_RECORDS", 2)
    tags = [nasty.Tag.objects.create(slug=f"t{number}") for number in range(3)]

    any_tag = Change(topic=f"{NASTY}tag", is_whole=True, is_hidden=True)
    for change in (lambda: tagged.tags.add(*tags), tagged.tags.clear):
        assert any_tag in announced(change).changes


def test_a_relation_that_is_not_djangos_is_announced_without_names(heard, committed, tagged):
    with committed():
        m2m_changed.send(
            nasty.Line,
            instance=tagged,
            action="pre_clear",
            reverse=False,
            model=nasty.Tag,
            pk_set=None,
            using="default",
        )

    changes = heard.changes
    assert Change(topic=f"{NASTY}order/{tagged.pk}") in changes
    assert Change(topic=f"{NASTY}tag", is_whole=True) in changes


# Transactions.


def undone(*codes):
    """Memos in a savepoint that is rolled back."""
    with transaction.atomic():
        memos = [Memo.objects.create(text="x", code=code) for code in codes]
        transaction.set_rollback(True)
    return memos


@pytest.mark.django_db(transaction=True)
def test_a_savepoint_that_is_rolled_back_takes_its_own_changes_only(heard):
    with transaction.atomic():
        kept = Memo.objects.create(text="x", code="kept")
        with transaction.atomic():
            order = Order.objects.create(number="kept, too")
            (lost,) = undone("lost")
        assert not heard.changes

    topics = heard.topics
    assert {f"{MEMOS}/{kept.pk}", f"{ORDERS}/{order.pk}"} <= topics
    assert kept.pk == lost.pk or f"{MEMOS}/{lost.pk}" not in topics


@pytest.mark.django_db(transaction=True)
def test_a_long_transaction_keeps_few_functions_and_shares_none_with_what_is_rolled_back(
    heard, monkeypatch
):
    monkeypatch.setattr("mcp_django.subscriptions.receivers.MOST_FACTS", 2)

    with transaction.atomic():
        orders = [Order.objects.create(number=f"kept{number}") for number in range(5)]
        undone("lost", "lost too")
        assert len(connection.run_on_commit) == 3

    changes = heard.changes
    assert all(any(one.touches(f"{ORDERS}/{order.pk}") for one in changes) for order in orders)
    assert MEMOS not in {change.topic for change in changes}


@pytest.mark.django_db(transaction=True)
def test_a_site_that_commits_by_hand_is_heard_early(heard):
    transaction.set_autocommit(False)
    try:
        memo = Memo.objects.create(text="x", code="x")
        assert f"{MEMOS}/{memo.pk}" in heard.topics
        transaction.commit()
    finally:
        transaction.set_autocommit(True)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("function", "sentence"),
    [("exposed_by", "were not announced"), ("records_of", "was not announced")],
    ids=["after the commit", "inside a receiver"],
)
def test_what_fails_never_breaks_the_save(heard, monkeypatch, caplog, function, sentence):
    def fail(*arguments):
        raise RuntimeError("broken")

    monkeypatch.setattr(receivers, function, fail)

    with transaction.atomic():
        memo = Memo.objects.create(text="x", code="x")

    assert Memo.objects.filter(pk=memo.pk).exists()
    assert sentence in caplog.text


# Storms, and what is silent.


@pytest.mark.django_db(transaction=True)
def test_a_fixture_marks_the_collection_once(heard):
    data = [Memo(pk=number, text="x", code=f"c{number}") for number in range(1, 300)]
    lines = serializers.serialize("json", data)

    with transaction.atomic():
        for one in serializers.deserialize("json", lines):
            one.save()

    assert heard.changes == {
        Change(topic=MEMOS, is_whole=True),
        Change(topic=SITE, model="shop.memo"),
    }


def test_before_all_apps_are_ready_nothing_is_looked_up(announced, monkeypatch):
    memo = Memo(pk=1, text="x", code="x")
    monkeypatch.setattr("mcp_django.subscriptions.receivers.apps.ready", False)

    assert not announced(
        lambda: post_save.send(Memo, instance=memo, created=True, using="default")
    ).changes


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
def test_without_anybody_to_tell_a_save_asks_nothing(django_assert_num_queries):
    # The hubs of earlier tests are gone with their loops.
    gc.collect()
    # Whether there is anybody in other processes is known after the first change.
    outbox.publish([Change(topic="x")])
    assert outbox.flush(PATIENCE)
    assert not outbox.is_wanted

    with django_assert_num_queries(1):
        Memo.objects.create(text="x", code="x")


def test_an_exposure_that_cannot_be_used_takes_nothing_from_the_others(
    announced, expose, nasty_order
):
    expose(nasty.Seat, fields=["hall", "nothing"])
    expose(nasty.Order, fields=["number"])

    assert f"{NASTY}order" in announced(nasty_order.save).topics


@pytest.mark.django_db(transaction=True)
def test_where_our_tables_are_out_of_reach_what_was_in_force_is(heard, monkeypatch):
    def fail(*arguments):
        raise receivers.Error

    monkeypatch.setattr(receivers, "exposed_by", fail)
    Memo.objects.create(text="x", code="x")
    assert MEMOS in heard.topics

    monkeypatch.setattr(receivers.registry, "in_force", Cached())
    Memo.objects.create(text="x", code="y")
    assert MEMOS in heard.topics


# `mcp.touch`, where Django sends no signal.


def memos(count):
    return Memo.objects.bulk_create(Memo(text="x", code=f"c{number}") for number in range(count))


WHOLE = Change(topic=MEMOS, is_whole=True)
NO_MODEL = "django://objects/no.model"
#: What is touched, and what is announced.
TOUCHED = {
    "an object": (
        lambda: Memo.objects.create(pk=7, text="x", code="x"),
        {Change(topic=f"{MEMOS}/7"), Change(topic=MEMOS)},
    ),
    "an object without a key": (lambda: Memo(text="x"), {Change(topic=MEMOS)}),
    "more records than can be named": (lambda: memos(3) and Memo.objects.all(), {WHOLE}),
    "a model": (lambda: Memo, {WHOLE, Change(topic=SITE, model="shop.memo")}),
    "an object that nobody exposes": (lambda: Ledger.objects.create(amount=1), set()),
    "a model that nobody exposes": (lambda: Ledger, set()),
    "the URI of a record": (
        lambda: f"{MEMOS}/007",
        {Change(topic=f"{MEMOS}/7"), Change(topic=MEMOS)},
    ),
    "the URI of a collection": (lambda: MEMOS, {Change(topic=MEMOS)}),
    "the URI of no model": (
        lambda: f"{NO_MODEL}/1",
        {Change(topic=f"{NO_MODEL}/1"), Change(topic=NO_MODEL)},
    ),
    "no label": (lambda: "django://objects/nodot", {Change(topic="django://objects/nodot")}),
    "the overview": (lambda: SITE, {Change(topic=SITE)}),
    "a resource": (lambda: "shop://reports/2026", {Change(topic="shop://reports/2026")}),
}


@pytest.mark.parametrize(("make", "changes"), TOUCHED.values(), ids=TOUCHED)
def test_what_is_touched_is_announced_as_a_save_would_when_that_commits(
    heard, committed, monkeypatch, make, changes
):
    monkeypatch.setattr("mcp_django.subscriptions.receivers.MOST_RECORDS", 2)
    thing = make()

    with committed():
        mcp.touch(thing)
        assert not heard.changes

    assert heard.changes == changes


def test_flush_returns_when_what_was_announced_is_handed_over(committed, request):
    batches = []
    outbox.add_sink(batches.append)
    request.addfinalizer(lambda: outbox.remove_sink(batches.append))
    with committed():
        mcp.touch("django://objects/shop.memo")

    is_done = mcp.flush(timeout=PATIENCE)

    assert is_done
    assert Change(topic=MEMOS) in frozenset().union(*batches)


@pytest.mark.parametrize(
    "rows",
    [
        Memo.objects.filter,
        lambda: Memo.objects,
        lambda: Memo.objects.order_by("pk")[:3],
        lambda: Memo.objects.values("text"),
        lambda: Memo.objects.filter(code="c0").union(Memo.objects.exclude(code="c0")),
    ],
    ids=["queryset", "manager", "sliced", "values", "combined"],
)
def test_a_queryset_is_announced_by_the_keys_that_it_has_now(heard, committed, rows):
    keys = [memo.pk for memo in memos(3)]

    with committed():
        mcp.touch(rows())
        Memo.objects.all().delete()

    assert {f"{MEMOS}/{key}" for key in keys} | {MEMOS} <= heard.topics


def test_composite_keys_and_children_are_named_whole(heard, committed, expose):
    expose(nasty.Seat, fields=["hall", "number"])
    expose(nasty.RushOrder, fields=["number"])
    expose(nasty.Order, fields=["number"])
    nasty.Seat.objects.create(hall=1, number=2)
    rush = nasty.RushOrder.objects.create(
        owner=nasty.Person.objects.create(username="x"), number="R", courier="z"
    )

    with committed():
        mcp.touch(nasty.Seat.objects.all(), rush)

    assert {
        "django://objects/nasty.seat/1/2",
        f"django://objects/nasty.rushorder/{rush.pk}",
        f"django://objects/nasty.order/{rush.pk}",
    } <= heard.topics


@pytest.mark.parametrize("thing", [None, 5, "", object(), Memo._meta, [Memo], b"django://site"])
def test_anything_else_is_a_type_error_before_anything_is_announced(heard, committed, thing):
    with committed(), pytest.raises(TypeError, match="touch"):
        mcp.touch(Order, thing)

    assert not heard.changes


def test_with_a_mistake_in_the_code_of_the_site_nothing_is_announced_and_all_is_saved(
    heard, monkeypatch, caplog
):
    monkeypatch.setattr(registry, "mistake", ImproperlyConfigured("shop/mcp.py, line 1"))

    memo = Memo.objects.create(text="x", code="x")

    assert Memo.objects.filter(pk=memo.pk).exists()
    assert (heard.topics, caplog.text) == (set(), "")
