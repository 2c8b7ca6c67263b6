"""Search by words and their forms, where the exposure asks for it and the database has it."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import modify_settings

from tests.nasty.models import Order
from tests.nasty.site import caller, numbers, registry

pytestmark = [pytest.mark.django_db, pytest.mark.database]

TABLES = registry({Order: {"fields": "number", "search_fields": "@remark number"}})


@pytest.fixture(autouse=True)
def _remarks(shop):
    for order, remark in ((shop.a1, "Two running horses"), (shop.a2, "A horse race")):
        order.remark = remark
        order.save()


def found(words):
    return numbers(caller(tables=TABLES), search=words)


def test_without_it_words_are_found_as_they_are_written():
    assert found("horse") == ["A1", "A2"]
    assert found("horse run") == ["A1"]
    assert found("ran") == []


@pytest.mark.skipif(connection.vendor != "postgresql", reason="only PostgreSQL has it")
def test_forms_of_a_word_are_found_on_postgresql():
    with modify_settings(INSTALLED_APPS={"append": "django.contrib.postgres"}):
        assert found("races") == ["A2"]
        assert found("run horse") == ["A1"]
        assert found("A2") == ["A2"]
        assert found("cars") == []


@pytest.mark.skipif(connection.vendor != "postgresql", reason="only PostgreSQL has it")
@pytest.mark.parametrize("words", ["' | 'x", "a & !b", ":*", "\\", "%", "(((", "-- x", "horse:*A"])
def test_the_signs_of_text_queries_are_only_characters(words):
    with modify_settings(INSTALLED_APPS={"append": "django.contrib.postgres"}):
        assert set(found(words)) <= {"A1", "A2"}
