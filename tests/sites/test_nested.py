"""Rows within rows stay as they are when the record or the rows above them change.

`test_admin_packages` runs the same with the nested rows of django-unfold.
"""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.core.exceptions import ValidationError

from mcp_django.levels import Level
from mcp_django.models import ExposedModel
from tests.clients import CheckedClient, browser_of, call_with_token
from tests.sites.browsing import rows_after, save_in_browser
from tests.sites.kitchen.admin import DishInline
from tests.sites.kitchen.models import Course, Dish, Menu
from tests.writes.calls import update

pytestmark = pytest.mark.django_db

VERBS = ("view", "add", "change", "delete")
RIGHTS = [f"{verb}_{name}" for verb in VERBS for name in ("menu", "course")]
MODELS = (Menu, Course, Dish)


@pytest.fixture
def kitchen(make_user):
    """Opened for writing, with a client for somebody who may write menus and courses alone."""
    for model in MODELS:
        ExposedModel.objects.create(label=model._meta.label_lower, level=Level.WRITE)
    return CheckedClient(user=make_user("cook", "view_dish", *RIGHTS, is_staff=True))


@pytest.fixture
def waiter(kitchen, make_user):
    """May write menus and courses, and knows of no dishes."""
    return CheckedClient(user=make_user("waiter", *RIGHTS, is_staff=True))


@pytest.fixture
def chef(kitchen, boss):
    """May do everything."""
    return boss


@pytest.fixture
def menu():
    made = Menu.objects.create(name="Lunch")
    for position, name in enumerate(["Soup", "Main"]):
        course = Course.objects.create(menu=made, name=name, position=position)
        for number in (1, 2):
            # A browser would strip the name, and save the row.
            Dish.objects.create(course=course, name=f" {name} {number}", price=number)
    return made


def update_menu(client, menu, *courses, **values):
    return update(client, menu, inlines={"courses": list(courses)}, **values)


def test_the_description_offers_the_rows_and_not_those_within_them(chef, menu):
    writing = chef.data("describe_model", model="kitchen.menu")["writing"]

    inlines = writing["create_record"]["inlines"]
    assert list(inlines) == ["courses"]
    assert set(inlines["courses"]["items"]["properties"]) == {"pk", "delete", "name", "position"}


@pytest.mark.parametrize("who", ["kitchen", "waiter", "chef"])
def test_a_record_with_rows_within_rows_is_changed_and_they_stay(who, request, menu):
    client = request.getfixturevalue(who)
    before = list(Dish.objects.order_by("pk").values())
    _, main = menu.courses.all()
    rows = [{"pk": main.pk, "name": "Roast"}, {"name": "Cheese", "position": 2}]

    answer = update_menu(client, menu, *rows, name="Dinner")

    assert not answer.is_error, answer.text
    assert list(answer.data["changed"]) == ["name", "courses"]
    assert Menu.objects.get().name == "Dinner"
    assert [one.name for one in menu.courses.all()] == ["Soup", "Roast", "Cheese"]
    assert list(Dish.objects.order_by("pk").values()) == before


def test_a_row_is_deleted_with_the_rows_within_it(chef, menu):
    soup, main = menu.courses.all()

    answer = call_with_token(
        chef,
        "update_record",
        model="kitchen.menu",
        pk=menu.pk,
        inlines={"courses": [{"pk": soup.pk, "delete": True}]},
    )

    assert not answer.is_error, answer.text
    assert list(menu.courses.all()) == [main]
    assert {one.course_id for one in Dish.objects.all()} == {main.pk}


def test_the_same_rows_are_there_after_a_person_did_it_in_the_admin(chef, superuser, menu):
    _, main = menu.courses.all()
    for dish in Dish.objects.all():
        dish.name = dish.name.strip()
        dish.save()
    url = f"/admin/kitchen/menu/{menu.pk}/change/"
    browser = browser_of(superuser)

    by_person = rows_after(
        lambda: save_in_browser(browser, url, {"name": "Dinner", "courses-1-name": "Roast"}),
        *MODELS,
    )
    by_tool = rows_after(
        lambda: update_menu(chef, menu, {"pk": main.pk, "name": "Roast"}, name="Dinner"),
        *MODELS,
    )

    assert by_tool == by_person
    assert by_tool["Menu"][0]["name"] == "Dinner"


def test_a_row_within_a_row_is_no_field_of_the_row(chef, menu):
    soup, _ = menu.courses.all()

    inside = update_menu(chef, menu, {"pk": soup.pk, "dishes": [{"name": "Stew"}]})
    beside = update(chef, menu, inlines={"courses-0-dishes": [{"name": "Stew"}]})

    row = f"courses, your row 1 (key {soup.pk})"
    assert f"{row}: 'dishes' is not a field that you can set." in inside.text
    assert "'courses-0-dishes' is not an inline that you can set." in beside.text
    assert Dish.objects.count() == 4


def admin_of(model):
    return admin.site.get_model_admin(model)


def test_a_row_that_the_caller_does_not_see_takes_no_place_in_the_form(chef, menu, monkeypatch):
    row_admin = type(admin_of(Course))
    rows = row_admin.get_queryset
    # A course, and a dish of another one.
    hidden = ["Soup", " Main 1"]
    monkeypatch.setattr(
        row_admin,
        "get_queryset",
        lambda self, request: rows(self, request).exclude(name__in=hidden),
    )
    soup, main = menu.courses.all()
    before = list(Dish.objects.order_by("pk").values())

    refused = update_menu(chef, menu, {"pk": soup.pk, "name": "Stew"})
    changed = update_menu(chef, menu, {"pk": main.pk, "name": "Roast"})

    assert f"courses: There is no row with the key {soup.pk}." in refused.text
    assert not changed.is_error, changed.text
    assert [one.name for one in menu.courses.all()] == ["Soup", "Roast"]
    assert list(Dish.objects.order_by("pk").values()) == before


def test_a_rule_over_the_rows_within_a_row_sees_them_all_and_says_what_it_refuses(
    chef, menu, monkeypatch
):
    seen = []

    class Closed(DishInline.formset):
        def clean(self):
            seen.append(len(self.initial_forms))
            if "Main" in str(self.instance):
                raise ValidationError("The kitchen is closed.")

    monkeypatch.setattr(DishInline, "formset", Closed)

    answer = update_menu(chef, menu, name="Dinner")

    assert seen == [2, 2]
    assert answer.text == "Nothing was saved.\ncourses-1-dishes: The kitchen is closed."
    assert Menu.objects.get().name == "Lunch"
