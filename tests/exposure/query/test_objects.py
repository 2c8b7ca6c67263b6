"""Records as objects, for writes: those of the caller's rows and no others."""

from __future__ import annotations

import pytest

from mcp_django.exceptions import NotFound
from mcp_django.exposure.query.related import find_object, find_objects
from tests.nasty import models
from tests.nasty.site import caller


@pytest.mark.parametrize(
    "narrow",
    [
        lambda rows: rows.order_by("number")[:1],
        lambda rows: (
            rows.order_by().filter(status="paid").union(rows.order_by().filter(status="void"))
        ),
    ],
    ids=["sliced", "combined"],
)
def test_rows_that_are_cut_or_combined_are_not_widened(shop, narrow):
    models.Order.objects.exclude(pk=shop.a1.pk).update(status="new")
    who = caller(narrow={models.Order: narrow})
    exposure = who.exposure("nasty.order")

    found = find_objects(who, exposure, [shop.a1.pk, shop.a2.pk], using="default")

    assert found == [shop.a1]
    with pytest.raises(NotFound):
        find_object(who, exposure, shop.a2.pk, using="default")
