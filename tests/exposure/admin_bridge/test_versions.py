from __future__ import annotations

import pytest
from django.db import transaction
from django.db.models import QuerySet
from django.test import override_settings

from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_bridge.rights import lock, version_of
from mcp_django.exposure.limits import contended
from tests.exposure.races import elsewhere
from tests.library.models import Author, Book
from tests.nasty.models import Order, Person, RushOrder


def read(obj):
    return type(obj)._base_manager.get(pk=obj.pk)


@pytest.fixture
def book(db):
    return read(Book.objects.create(title="Emma", author=Author.objects.create(name="Ann")))


def test_only_the_same_row_has_the_same_version_and_only_this_site_can_tell_it(book):
    version, twin = version_of(book), Author.objects.create(name="Ann")

    assert version == version_of(read(book))
    assert len(version) == 18
    assert version_of(twin) != version_of(book.author)
    with override_settings(SECRET_KEY=b"another"):
        assert version_of(book) != version


@pytest.mark.django_db
def test_a_row_with_values_that_cannot_be_written_has_a_version():
    boss = Person.objects.create(username="boss")
    order = Order.objects.create(owner=boss, number="A1", blob=b"\xff\x00", payload={"a": [None]})
    Order.objects.update(price=-5)  # whose str() raises
    first = version_of(read(order))

    Order.objects.update(payload={"a": [0]})

    assert version_of(read(order)) != first


# Checked behind a lock


@pytest.mark.django_db
def test_columns_of_a_parent_count_and_are_locked():
    boss = Person.objects.create(username="boss")
    rush = read(RushOrder.objects.create(owner=boss, number="R1", courier="zed"))

    Order.objects.update(margin="1.00")
    with transaction.atomic():
        held = lock(QuerySet(RushOrder), rush.pk)

    assert held.number == "R1"
    assert version_of(held) != version_of(rush)


@pytest.mark.django_db(transaction=True)
def test_who_waits_too_long_for_a_row_is_told_to_send_the_call_again():
    book = Book.objects.create(title="Emma", author=Author.objects.create(name="Ann"))

    def try_to_lock():
        # SQLite, as it is set up here, waits where the transaction begins.
        again = pytest.raises(ToolError, match="Send the same call again")
        with again, contended(), transaction.atomic():
            lock(QuerySet(Book), book.pk)

    with transaction.atomic():
        lock(QuerySet(Book), book.pk)
        elsewhere(try_to_lock)
