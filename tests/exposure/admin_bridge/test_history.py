"""Who changed a record: as much as the admin's own page says, and nothing of what is hidden."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import sync_to_async
from django import forms
from django.contrib import admin
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType

from mcp_django.exposure.query.serializers import utc
from mcp_django.levels import Level
from mcp_django.models import CallRecord, ExposedModel
from tests.clients import browser_of
from tests.shop.admin import OrderAdmin
from tests.shop.mcp import OrderExposure
from tests.shop.models import Customer, Ledger, Memo, Order

pytestmark = pytest.mark.django_db

#: The day of the first entry. Each is a day later than the one before.
DAY = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


@pytest.fixture
def order():
    return Order.objects.create(number="A1")


@pytest.fixture
def log(staff, order):
    def write(message, *, obj=order, flag=CHANGE, user=staff, model=Order):
        return LogEntry.objects.create(
            user=user,
            content_type=ContentType.objects.get_for_model(model, for_concrete_model=False),
            object_id=str(obj.pk),
            object_repr=f"secret {obj}",
            action_flag=flag,
            change_message=message if isinstance(message, str) else json.dumps(message),
            action_time=DAY + timedelta(days=LogEntry.objects.count()),
        )

    return write


def changes(client, obj):
    return [entry["change"] for entry in client.history(obj)]


def refusal(client, pk, *, tool="get_history", model="shop.order"):
    return client.refusal(tool, model=model, pk=pk).partition(" A valid call:")[0]


def fields(*names):
    return [{"changed": {"fields": list(names)}}]


NOTE = {"added": {"name": "note", "object": "through an assistant: x"}}
UNKNOWN = (-32602, "Unknown tool: get_history")


# What it says


def test_the_newest_entry_comes_first(client, order, log):
    log([{"added": {}}], flag=ADDITION)
    log(fields("Number", "Total"))
    log("", flag=DELETION)

    entries = client.history(order)

    assert [list(entry.values()) for entry in entries] == [
        ["2026-03-03T09:30Z", "staff", "deleted", ""],
        ["2026-03-02T09:30Z", "staff", "changed", "Changed Number and Total."],
        ["2026-03-01T09:30Z", "staff", "added", "Added."],
    ]
    assert list(entries[0]) == ["at", "user", "action", "change"]


def test_what_the_admin_writes_is_read(superuser, client, order):
    page = f"/admin/shop/order/{order.pk}/change/"
    customer = Customer.objects.create(name="Anne")
    sent = {"number": "A2", "customer": customer.pk, "status": "paid", "total": "5", "margin": 7}
    sent |= {"placed_at_0": "2026-01-02", "placed_at_1": "03:04:05"}
    assert browser_of(superuser).post(page, sent).status_code == 302

    [entry] = client.history(order)

    assert (entry["user"], entry["action"]) == ("boss", "changed")
    assert entry["change"] == "Changed Number, Customer, Status, Total and Placed at."


def test_the_log_of_another_record_or_model_is_not_there(client, order, log):
    other = Order.objects.create(number="A2")
    log([{"added": {}}], obj=other)
    log([{"added": {}}], model=Customer)

    assert client.history(order) == []


@pytest.mark.parametrize(("limit", "count"), [(None, 20), (1, 1), (50, 50), (1000, 50)])
def test_no_more_entries_come_than_were_asked_for(client, order, log, limit, count):
    for _ in range(60):
        log([{"added": {}}])

    found = client.history(order, **({} if limit is None else {"limit": limit}))

    assert len(found) == count
    assert found[0]["at"] == utc(DAY + timedelta(days=59))


@pytest.mark.parametrize("limit", [0, -1, 1.5, "many"])
def test_a_limit_that_is_none_is_refused(client, order, limit):
    assert "limit" in client.refusal("get_history", model="shop.order", pk=order.pk, limit=limit)


def test_the_number_of_queries_does_not_grow_with_entries(
    client, order, log, django_assert_max_num_queries
):
    for _ in range(30):
        log(fields("Number"))
    client.history(order, limit=1)

    with django_assert_max_num_queries(3):
        client.history(order, limit=50)


def test_the_note_of_an_assistant_is_shown(make_client, client, order):
    ExposedModel.objects.create(label="shop.order", level=Level.WRITE)
    make_client(is_superuser=True).data(
        "update_record", model="shop.order", pk=order.pk, values={"number": "A2"}
    )

    [change] = changes(client, order)

    assert change == "Changed Number. Through an assistant: mcp_django.testing."


# What it does not say


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ([NOTE], ["Through an assistant: x."]),
        ([], [""]),
        (fields("Number", "Margin"), ["Changed Number."]),
        (fields("margin", "number"), ["Changed number."]),
        *(
            (message, [])
            for message in [
                fields("Margin"),
                fields("Customer name", ["Number"], {"a": 1}, None, 5),
                fields(),
                [{"changed": {}}],
                [{"changed": {"fields": "Number"}}],
                [*fields("Margin"), NOTE],
                [{"added": {"name": "line", "object": "secret row"}}],
                [{"deleted": {"name": "customer", "object": "Anne (7)"}}],
                [{"changed": {"name": "memo", "object": "secret row", "fields": ["Number"]}}],
            ]
        ),
    ],
    ids=json.dumps,
)
def test_an_entry_says_nothing_of_hidden_things_and_is_not_there_if_nothing_is_left(
    client, order, log, message, told
):
    log(message)

    assert changes(client, order) == told


def test_entries_about_hidden_things_do_not_fill_the_answer(client, order, log):
    log(fields("Number"))
    for _ in range(60):
        log(fields("Margin"))

    assert changes(client, order) == ["Changed Number."]


TEXTS = [
    "Margin was 7",
    "[not JSON",
    '["Margin"]',
    '{"margin": 7}',
    '[{"changed": {"fields": ["Number"]}, "margin": 7}]',
    '[{"Margin": {}}]',
    '[{"changed": "Margin"}]',
    "[" * 5000,
    "5",
]


@pytest.mark.parametrize("message", TEXTS, ids=lambda text: text[:20])
def test_a_text_of_the_site_is_for_those_who_read_the_whole_page(
    client, order, log, message, monkeypatch
):
    log(message)
    assert changes(client, order) == [""]

    monkeypatch.setattr(OrderAdmin, "fields", ["number", "total"])
    assert changes(client, order) == [message]


def fails_for_one(self, request, obj=None):
    return [1 / 0] if obj.number == "A1" else []


@pytest.mark.parametrize(
    "attributes",
    [
        {"fields": ["number", "margin"]},
        {"fields": ["number"], "readonly_fields": ["margin"]},
        {"fields": ["number"], "readonly_fields": [lambda obj: obj.margin]},
        {"fieldsets": [(None, {"fields": [("number", "margin")]})]},
        {"fields": ["number"], "get_readonly_fields": fails_for_one},
        {"fields": ["number"], "get_inlines": lambda self, request, obj: [LedgerInline]},
    ],
    ids=["fields", "read-only", "computed", "fieldsets", "failing", "inlines"],
)
def test_a_page_that_shows_more_keeps_its_texts(client, order, log, monkeypatch, attributes):
    # The first record, by which the fields of the model are known.
    Order.objects.create(pk=order.pk - 1, number="A0")
    log("Margin was 7")
    for name, value in attributes.items():
        monkeypatch.setattr(OrderAdmin, name, value)

    assert changes(client, order) == [""]


class LedgerInline(admin.TabularInline):
    """Of a model that nobody exposes."""

    model = Ledger


def share_a_label(monkeypatch):
    monkeypatch.setattr(Order._meta.get_field("margin"), "verbose_name", "number")


def label_the_form(monkeypatch):
    class Form(forms.ModelForm):
        note = forms.CharField(label="Total")

        class Meta:
            model = Order
            fields = ["number", "margin"]
            labels = {"number": "Order no.", "margin": "Profit"}

    monkeypatch.setattr(OrderAdmin, "form", Form)


def break_the_form(monkeypatch):
    monkeypatch.setattr(OrderAdmin, "formfield_for_dbfield", lambda *args, **options: 1 / 0)


def take_fields_away(monkeypatch):
    ExposedModel.objects.create(label="shop.order", fields=["id", "number"])


@pytest.mark.parametrize(
    ("arrange", "words", "change"),
    [
        (share_a_label, ["Number", "Total"], "Changed Total."),
        (label_the_form, ["Order no.", "Profit", "Status", "Total"],
         "Changed Order no. and Status."),
        (break_the_form, ["Order no.", "Number"], "Changed Number."),
        (take_fields_away, ["Number", "Total"], "Changed Number."),
    ],
)  # fmt: skip
def test_only_labels_of_fields_that_the_caller_reads_are_shown(
    client, order, log, monkeypatch, arrange, words, change
):
    arrange(monkeypatch)
    log(fields(*words))

    assert changes(client, order) == [change]


class OrderInline(admin.TabularInline):
    model = Order


@pytest.fixture
def customer(monkeypatch):
    """Orders are rows of the form of a customer."""
    from tests.shop.admin import CustomerAdmin

    monkeypatch.setattr(CustomerAdmin, "inlines", [OrderInline])
    return Customer.objects.create(name="Anne", country="FR")


ROWS = [
    {"added": {"name": "order", "object": "secret A1"}},
    {"changed": {"name": "order", "object": "secret A2", "fields": ["Number", "Margin"]}},
    {"changed": {"name": "order", "object": "secret A3", "fields": ["Margin"]}},
    {"deleted": {"name": "order", "object": "secret A4"}},
]


def test_rows_of_the_form_are_named_by_their_model(client, customer, log):
    log([*fields("Name", "Credit rating"), *ROWS], obj=customer, model=Customer)

    [entry] = client.history(customer)

    assert entry["change"] == (
        "Changed Name. Added order. Changed Number of order. Deleted order."
    )


@pytest.mark.parametrize("is_narrowed", [True, False])
def test_rows_of_a_model_that_is_not_read_as_a_whole_are_not_hinted_at(
    make_client, customer, log, monkeypatch, is_narrowed
):
    log(ROWS, obj=customer, model=Customer)
    names = ["view_customer", "view_order"] if is_narrowed else ["view_customer"]
    reader = make_client(*names)
    if is_narrowed:
        rows = Order.objects.exclude(number="A1")
        monkeypatch.setattr(OrderAdmin, "get_queryset", lambda self, request: rows.all())

    assert reader.data("get_history", model="shop.customer", pk=customer.pk) == {
        "history": [],
        "note": "Changes of fields that you cannot read are not listed.",
    }


# Whom it answers


@pytest.mark.thorough
def test_a_record_that_is_not_there_is_refused_as_by_get_record(client, order, log, monkeypatch):
    hidden = Order.objects.create(number="A2")
    log(fields("Number"), obj=hidden)
    rows = Order.objects.filter(pk=order.pk)
    monkeypatch.setattr(OrderAdmin, "get_queryset", lambda self, request: rows.all())

    for pk in (hidden.pk, 4711, "x", [1, 2], -(10**30)):
        assert refusal(client, pk) == refusal(client, pk, tool="get_record")


def test_a_model_that_is_not_there_is_refused_as_by_get_record(make_client, log, order):
    log(fields("Number"))
    clerk = make_client("view_customer")

    answer = refusal(clerk, order.pk)

    assert answer == refusal(clerk, order.pk, tool="get_record")
    assert "There is no model" in answer


@pytest.mark.parametrize(
    ("method", "rule"),
    [
        ("has_view_or_change_permission", lambda self, request, obj=None: False),
        ("has_view_permission", lambda self, request, obj=None: obj is None),
        ("get_queryset", lambda self, request: Order.objects.none()),
    ],
    ids=["neither", "not this one", "not among the rows"],
)
def test_who_cannot_open_the_page_of_the_admin_sees_no_history(
    client, order, log, monkeypatch, method, rule
):
    monkeypatch.setattr(
        OrderExposure, "get_queryset", lambda self, request: Order.objects.all(), raising=False
    )
    log(fields("Number"))
    assert changes(client, order) == ["Changed Number."]

    monkeypatch.setattr(OrderAdmin, method, rule, raising=False)

    assert refusal(client, order.pk) == "There is no history of this shop.order that you may see."


def test_a_model_without_an_admin_and_one_of_numbers_alone_have_no_history(client, order, log):
    log(fields("Number"))
    memo = Memo.objects.create(text="a", code="a")

    assert "no history of this shop.memo" in refusal(client, memo.pk, model="shop.memo")

    ExposedModel.objects.create(label="shop.order", level=Level.AGGREGATES)
    assert "Records of shop.order are not shown" in refusal(client, order.pk)


@pytest.mark.parametrize(
    ("permissions", "options", "level"),
    [
        ([], {}, None),
        (["view_memo"], {}, None),
        (["view_order"], {"is_staff": False}, None),
        (["view_order"], {}, Level.AGGREGATES),
    ],
)
def test_the_tool_exists_where_an_admin_shows_records_and_for_nobody_else(
    make_client, order, permissions, options, level
):
    ExposedModel.objects.create(label="shop.order", level=level)
    other, boss = make_client(*permissions, **options), make_client(is_superuser=True)

    assert "get_history" not in other.tools()
    arguments = {"model": "shop.order", "pk": order.pk}
    assert other.failure("tools/call", name="get_history", arguments=arguments) == UNKNOWN
    assert "get_history" in boss.tools()


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("flag", "message", "change"),
    [
        (CHANGE, "Late.", "Late. (through an assistant: mcp_django.testing)"),
        (
            CHANGE,
            [{"changed": {"fields": ["Status"]}}],
            "Changed Status. Added note “through an assistant: mcp_django.testing”.",
        ),
        (DELETION, "", "Through an assistant: mcp_django.testing"),
        (CHANGE, "Through an assistant: x", "Through an assistant: x"),
    ],
)
def test_an_entry_that_a_function_writes_names_the_assistant_and_its_call_names_the_record(
    client, add_tool, log, order, flag, message, change, is_async
):
    client.record = True

    def write_entry() -> None:
        """Write an entry."""
        log(message, flag=flag)

    async def write_later() -> None:
        """Write an entry in a coroutine."""
        await sync_to_async(log)(message, flag=flag)

    add_tool(write_later if is_async else write_entry)
    called = client.call_tool("write_later" if is_async else "write_entry")
    log("In the admin.")

    assert not called.is_error, called.text
    entries = LogEntry.objects.order_by("pk")
    assert [entry.get_change_message() for entry in entries] == [change, "In the admin."]
    assert [*CallRecord.objects.values_list("model", "keys")] == [
        ("shop.order", f'["{order.pk}"]')
    ]
