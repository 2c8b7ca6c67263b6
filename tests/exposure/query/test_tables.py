"""Pages as tables: each label once, and only of rows that the page has and the caller may see."""

from __future__ import annotations

import msgspec
import pytest
from django.test import override_settings

from tests.exposure.query.test_find import judged
from tests.exposure.query.test_paths_by_rule import who
from tests.nasty.models import Customer, Order, Tenant
from tests.nasty.site import caller, page

pytestmark = pytest.mark.django_db


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


def test_rows_that_are_judged_away_leave_no_label(shop):
    hidden = Customer.objects.create(tenant=Tenant.objects.first(), name="Zoe", country="FR")
    Order.objects.filter(pk=shop.a1.pk).update(customer=hidden)

    found = table(judged())

    assert found["rows"] == [["A2", shop.bert.pk]]
    assert found["labels"] == {"nasty.customer": {str(shop.bert.pk): "Bert"}}


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
    found = msgspec.json.decode(page(who(), Customer, **asked).answer)

    name, orders = found["columns"]
    assert name == "name"
    assert "number" in orders["orders"]
    [[_, cell]] = found["rows"]
    assert cell.keys() == {"count", "rows"}
    assert len(cell["rows"][0]) == len(orders["orders"])


def test_a_cursor_over_keys_is_short(shop):
    assert len(table(order_by=["id"], fields=["id"], limit=1)["next"]) <= 80
