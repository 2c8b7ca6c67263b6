"""What exposures hide stays hidden, and one that fails leaves the others alone."""

from __future__ import annotations

import base64

import pytest
from django.contrib.admin import AdminSite, ModelAdmin
from django.db import OperationalError, connection
from django.db import models as m

from mcp_django.exceptions import QueryError
from mcp_django.exposure.admin_sites import exposure_of, model_admins
from mcp_django.exposure.decisions import has_table
from mcp_django.exposure.paths import Declaration
from mcp_django.exposure.registry import Registry
from mcp_django.exposure.resources import models as resources
from tests.nasty import models
from tests.nasty.site import Narrowable, caller, numbers, page, record, records, registry
from tests.shop.models import Customer

pytestmark = pytest.mark.django_db


def inside(cursor):
    raw = cursor.rsplit(":", 2)[0]
    return base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4))


def test_the_same_condition_written_twice_runs_again_with_other_values(shop):
    who = caller()
    assert numbers(who, filters={"number": "A1", "number__exact": "A1"}) == ["A1"]
    assert numbers(who, filters={"number": "A1", "number__exact": "A1"}) == ["A1"]
    assert numbers(who, filters={"number": "A1", "number__exact": "A2"}) == []


def test_a_cursor_holds_no_key_that_records_do_not_show(db):
    for word in ("secret-1", "secret-2", "secret-3"):
        models.Tricky.objects.create(
            key=word,
            year=1,
            contains="x",
            order=models.Order.objects.create(number=word, owner=models.Person.objects.create()),
        )
    tables = registry({models.Tricky: {"fields": "year contains"}})
    found = page(caller(tables=tables), models.Tricky, limit=1)
    assert b"secret" not in found.encoded
    assert "secret" not in str(inside(found.next_cursor))


class Judge(Narrowable):
    def get_queryset(self, request):
        return models.PaidOrder._default_manager.all()

    def has_view_permission(self, request, obj=None):
        return obj is None or obj.number == "A1"


def test_objects_of_a_proxy_are_judged_by_the_exposure_that_was_asked(shop):
    tables = registry({models.Order: {"fields": "number", "bases": (Judge,)}})
    assert numbers(caller(tables=tables)) == ["A1"]


class Broken(Narrowable):
    def has_view_permission(self, request, obj=None):
        raise RuntimeError("broken")


class BrokenRows(Narrowable):
    def get_queryset(self, request):
        raise RuntimeError("broken")


@pytest.mark.parametrize("base", [Broken, BrokenRows])
def test_one_exposure_that_raises_does_not_empty_the_overview(shop, base):
    tables = registry({models.Seat: {"fields": "hall number", "bases": (base,)}})
    found = resources.overview(caller(tables=tables))
    assert "nasty.order" in [one["model"] for one in found["models"]]


class Ghost(m.Model):
    name = m.CharField(max_length=5)

    class Meta:
        managed = False
        app_label = "nasty"


def test_a_table_of_a_database_that_does_not_answer_is_taken_for_granted(shop):
    """Reading it is an error then, and no shorter list."""

    def refuse(execute, sql, params, many, context):
        raise OperationalError("The database is gone.")

    assert not has_table(Ghost)
    with connection.execute_wrapper(refuse):
        assert has_table(Ghost)


def test_a_model_without_a_table_does_not_empty_the_overview(shop):
    tables = registry({Ghost: {"fields": "name"}})
    found = resources.overview(caller(tables=tables))
    assert "nasty.order" in [one["model"] for one in found["models"]]


def test_excluding_a_path_takes_it_from_filters_and_search(db):
    class OrderAdmin(ModelAdmin):
        list_filter = ["customer__credit_rating"]
        search_fields = ["customer__name"]
        mcp_expose = True
        mcp_fields = ["number"]
        mcp_exclude_fields = ["customer__credit_rating", "customer__name"]

    made = exposure_of(OrderAdmin(models.Order, AdminSite(name="x")))
    paths = Declaration(made(models.Order)).paths
    assert "customer__credit_rating" not in [path.text for path in paths["filter"]]
    assert "customer__name" not in [path.text for path in paths["search"]]


def test_excluding_the_column_of_a_key_takes_the_key(db):
    class OrderAdmin(ModelAdmin):
        list_display = ["number", "customer"]
        mcp_expose = True
        mcp_exclude_fields = ["customer_id"]

    made = exposure_of(OrderAdmin(models.Order, AdminSite(name="x")))
    assert "customer" not in [
        path.text for path in Declaration(made(models.Order)).paths["return"]
    ]


def test_a_second_admin_site_of_the_same_name_hides_no_rules(db):
    others = [AdminSite() for _ in range(20)]
    assert model_admins(Customer)
    assert len(others) == 20


def test_get_record_keeps_the_limit_of_answers(shop, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "MAX_RESPONSE": 100_000}
    shop.a1.remark = "x" * 3_000_000
    shop.a1.save()
    with pytest.raises(QueryError, match="too long for one answer"):
        record(caller(), models.Order, shop.a1.pk)


def test_a_key_that_looks_secret_is_in_no_cursor_of_an_admin_that_exposes_itself(db):
    class TrickyAdmin(ModelAdmin):
        mcp_expose = True

    owner = models.Person.objects.create()
    for word in ("s3cret-1", "s3cret-2", "s3cret-3"):
        order = models.Order.objects.create(number=word, owner=owner)
        models.Tricky.objects.create(key=word, year=1, contains="x", order=order)
    tables = Registry()
    tables.register(models.Tricky, exposure_of(TrickyAdmin(models.Tricky, AdminSite(name="x"))))
    who = caller(tables=tables)
    assert "key" not in records(who, models.Tricky)[0]
    found = page(who, models.Tricky, limit=1, order_by=["-pk"])
    assert "s3cret" not in str(inside(found.next_cursor))
