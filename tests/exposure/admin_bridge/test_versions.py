from __future__ import annotations

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models import QuerySet
from django.test import override_settings

from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_bridge.rights import check_version, lock, version_of
from mcp_django.exposure.limits import contended
from tests.exposure.races import elsewhere, together
from tests.library.models import Author, Book
from tests.nasty.models import Order, Person, RushOrder

DONE, REFUSED = "done", "refused"


def read(obj):
    return type(obj)._base_manager.get(pk=obj.pk)


@pytest.fixture
def book(db):
    return read(Book.objects.create(title="Emma", author=Author.objects.create(name="Ann")))


@pytest.mark.parametrize(
    "change",
    [
        {"title": "emma"},
        {"secret_note": "x"},
        {"details": {"a": 1}},
        {"price": "1.50"},
        {"is_rare": False},
        {"bought_at": "2026-01-31T12:00:00.000001Z"},
    ],
)
def test_a_change_to_any_column_is_another_version(book, change):
    before = version_of(book)

    Book.objects.update(**change)

    assert version_of(read(book)) != before


def test_the_same_row_has_the_same_version_each_time_it_is_read(book):
    assert version_of(book) == version_of(read(book))
    assert len(version_of(book)) == 18


def test_two_rows_with_the_same_columns_have_different_versions(book):
    twin = Author.objects.create(name="Ann")

    assert version_of(twin) != version_of(book.author)


def test_without_the_key_of_the_site_nobody_can_compute_a_version(book):
    with override_settings(SECRET_KEY=b"another"):
        other = version_of(book)

    assert version_of(book) != other


@pytest.mark.django_db
def test_columns_of_a_parent_count():
    boss = Person.objects.create(username="boss")
    rush = read(RushOrder.objects.create(owner=boss, number="R1", courier="zed"))

    Order.objects.update(margin="1.00")

    assert version_of(read(rush)) != version_of(rush)


@pytest.mark.django_db
def test_a_row_with_values_that_cannot_be_written_has_a_version():
    boss = Person.objects.create(username="boss")
    order = Order.objects.create(owner=boss, number="A1", blob=b"\xff\x00", payload={"a": [None]})
    Order.objects.update(price=-5)  # whose str() raises
    first = version_of(read(order))

    Order.objects.update(payload={"a": [0]})

    assert version_of(read(order)) != first


# Checked behind a lock


def update(pk, version, **change):
    with transaction.atomic():
        check_version(version_of(lock(QuerySet(Book), pk)), version)
        Book.objects.filter(pk=pk).update(**change)
    return DONE


def test_a_change_meanwhile_is_refused_with_the_version_that_there_is_now(book):
    old = version_of(book)
    update(book.pk, old, title="first")
    now = version_of(read(book))

    with pytest.raises(ToolError, match=f"Read the record again; its version is now {now}"):
        update(book.pk, old, title="second")

    assert read(book).title == "first"


@pytest.mark.parametrize("version", ["", "x", "0" * 18, "\N{SNOWMAN}", "x" * 10_000])
def test_any_other_text_is_no_version(book, version):
    with pytest.raises(ToolError, match="was changed after you read it"):
        check_version(version_of(book), version)


@pytest.mark.django_db
def test_a_row_with_a_parent_is_locked_whole():
    boss = Person.objects.create(username="boss")
    rush = RushOrder.objects.create(owner=boss, number="R1", courier="zed")

    with transaction.atomic():
        held = lock(QuerySet(RushOrder), rush.pk)

    assert held.number == "R1"


@pytest.mark.django_db(transaction=True)
def test_of_two_who_write_at_once_exactly_one_is_told():
    author = Author.objects.create(name="Ann")
    for _ in range(10):
        book = read(Book.objects.create(title="Emma", author=author))
        version = version_of(book)

        found = together(lambda n, pk=book.pk, seen=version: update(pk, seen, title=f"by {n}"))

        (refusal,) = [one for one in found if one != DONE]
        assert isinstance(refusal, ToolError)
        assert read(book).title == f"by {found.index(DONE)}"


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


@pytest.mark.django_db
def test_other_faults_of_a_database_stay_what_they_are():
    with pytest.raises(OperationalError, match="disk"), contended():
        raise OperationalError("disk full")
    with pytest.raises(OperationalError), contended():
        raise OperationalError
    assert connection.is_usable()
