"""Reads and writes through the admin of packages do what they do in a browser."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mcp_django.levels import Level
from mcp_django.models import ExposedModel
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient, browser_of
from tests.same_as_admin import compare
from tests.sites.browsing import rows_after, save_in_browser
from tests.sites.festival.models import Area, Article, Caption, Concert, Extra, Stage, Ticket

# The same form with the nested rows of django-unfold.
from tests.sites.test_nested import *

FESTIVAL = (Ticket, Extra, Area, Stage, Concert, Article, Caption)
#: Rights of somebody who sells tickets and draws the map.
FEW = [
    *("view_ticket", "change_ticket", "view_extra", "add_extra"),
    *("view_area", "add_area", "change_area"),
    *("view_stage", "view_article", "change_article"),
]


@pytest.fixture
def festival(kitchen, menu):
    """Rows of each model, opened for writing."""
    for model in FESTIVAL:
        ExposedModel.objects.create(label=model._meta.label_lower, level=Level.WRITE)
    ada = Ticket.objects.create(
        holder="Ada", price="3.50", seats=2, valid_from=datetime(2026, 5, 4, 12, tzinfo=UTC)
    )
    Ticket.objects.create(holder="Ben", status="paid", is_invited=True, notes="By the gate")
    Extra.objects.create(ticket=ada, name="Tent")
    park = Area.objects.create(name="Park")
    lake = Area.objects.create(name="Lake", parent=park)
    for name in ("Shore", "Island"):
        Area.objects.create(name=name, parent=lake)
    for rank, name in enumerate(["Main", "Tent", "Barn", "Garden"], start=1):
        stage = Stage.objects.create(name=name, rank=rank)
        for number in (1, 2):
            Concert.objects.create(stage=stage, band=f"{name} {number}", rank=number)
    rain = Article.objects.create(title_en="Rain", title_de="Regen", body_en="Bring boots.")
    Article.objects.create(title_en="Sun")
    Caption.objects.create(article=rain, text_en="A cloud", text_de="Eine Wolke")


@pytest.fixture
def clerk(make_user):
    return make_user("clerk", *FEW, is_staff=True)


@pytest.fixture
def clients(festival, boss, clerk):
    return {"boss": CheckedClient(user=boss), "clerk": CheckedClient(user=clerk)}


@pytest.fixture
def client(clients):
    return clients["boss"]


def call(client, tool, model, **arguments):
    return client.call_tool(tool, model=f"festival.{model}", **arguments)


def done(client, tool, model, **arguments):
    answer = call(client, tool, model, **arguments)
    assert not answer.is_error, answer.text
    return answer.data


def delete(client, model, pk):
    token = done(client, "delete_record", model, pk=pk)["confirmation"]
    return done(client, "delete_record", model, pk=pk, confirmation=token)


def saved(client, boss, model, obj, changes, **arguments):
    """The rows after a person and after an assistant changed or created something."""
    models = (*FESTIVAL, Menu)
    place = f"{obj.pk}/change" if obj else "add"
    url = f"/admin/festival/{model}/{place}/"
    tool = "update_record" if obj else "create_record"
    key = {"pk": obj.pk} if obj else {}
    by_person = rows_after(lambda: save_in_browser(browser_of(boss), url, changes), *models)
    by_tool = rows_after(lambda: done(client, tool, model, **key, **arguments), *models)
    return by_person, by_tool


# The same questions to the pages of the admin


@pytest.mark.parametrize("name", ["superuser", "clerk", "staff without rights", "not staff"])
def test_the_pages_of_the_admin_and_the_tools_answer_the_same(festival, make_user, name):
    rights = [] if name == "staff without rights" else [*FEW, "view_menu", "view_course"]
    user = make_user(name, *rights, is_staff=name != "not staff", is_superuser=name == "superuser")
    models = (*FESTIVAL, *MODELS)

    found = compare(browser_of(user), CheckedClient(user=user), models)

    assert found["differences"] == []
    compared = found["compared"]
    if name not in ("superuser", "clerk"):
        assert compared == {}
        return
    ticket = ["colored_status", "holder", "is_invited", "price", "total"]
    assert compared["festival.ticket"] == [2, ticket, ["extras"]]
    area = ["indented_title", "name", "parent", "size", "tree_actions"]
    assert compared["festival.area"] == [4, area, []]
    sees_all = name == "superuser"
    stage = ["_reorder_", "concert_count", "name"]
    assert compared["festival.stage"] == [4, stage, ["concerts"] if sees_all else []]
    article = ["is_published", "languages", "title"]
    assert compared["festival.article"] == [2, article, ["captions"] if sees_all else []]
    assert compared["kitchen.menu"] == [1, ["dishes", "name"], ["courses"]]
    hidden = {"festival.concert", "festival.caption", "kitchen.dish"}
    assert hidden & compared.keys() == (hidden if sees_all else set())


# django-unfold


def test_a_ticket_is_described_with_its_fields_in_tabs_and_its_computed_columns(client):
    described = done(client, "describe_model", "ticket")

    values = described["writing"]["create_record"]["values"]
    assert set(values["properties"]) == {
        *("holder", "price", "seats", "status", "is_invited", "valid_from", "notes")
    }
    assert values["required"] == ["holder"]
    assert described["computed"] == [
        {"name": "colored_status", "label": "Status", "order": True},
        {"name": "total", "label": "Total"},
    ]


def test_tickets_are_found_with_computed_columns(client):
    found = call(
        client,
        "find_records",
        "ticket",
        fields=["holder", "colored_status", "total"],
        order_by=["colored_status"],
    )

    assert found.records == [
        {"holder": "Ada", "colored_status": "new", "total": "7.00"},
        {"holder": "Ben", "colored_status": "paid", "total": "0.00"},
    ]


def test_the_form_of_unfold_saves_what_it_saves_in_a_browser(client, boss):
    ada = Ticket.objects.get(holder="Ada")
    extra = ada.extras.get()
    changes = {
        "price": "4.25",
        "is_invited": "on",
        "valid_from_0": "2026-06-01",
        "valid_from_1": "18:30:00",
        "extras-0-count": "3",
    }

    by_person, by_tool = saved(
        client,
        boss,
        "ticket",
        ada,
        changes,
        values={"price": "4.25", "is_invited": True, "valid_from": "2026-06-01T18:30:00Z"},
        inlines={"extras": [{"pk": extra.pk, "count": 3}]},
    )

    assert by_tool == by_person
    assert str(by_tool["Ticket"][0]["price"]) == "4.25"
    assert by_tool["Extra"][0]["count"] == 3


def test_somebody_with_few_rights_changes_a_ticket_and_adds_rows_to_it(clients):
    ada = Ticket.objects.get(holder="Ada")
    extra = ada.extras.get()

    added = done(
        clients["clerk"],
        "update_record",
        "ticket",
        pk=ada.pk,
        values={"seats": 4},
        inlines={"extras": [{"name": "Parking"}]},
    )
    refused = call(
        clients["clerk"],
        "update_record",
        "ticket",
        pk=ada.pk,
        values={"seats": 5},
        inlines={"extras": [{"pk": extra.pk, "count": 9}]},
    )

    assert list(added["changed"]) == ["seats", "extras"]
    assert "extras: The rows here are read-only for you." in refused.text
    ada.refresh_from_db()
    assert ada.seats == 4
    assert [(one.name, one.count) for one in ada.extras.order_by("pk")] == [
        ("Tent", 1),
        ("Parking", 1),
    ]
    assert call(clients["clerk"], "create_record", "ticket", values={"holder": "Eve"}).is_error
    with pytest.raises(ProtocolFailure, match="Unknown tool: delete_record"):
        call(clients["clerk"], "delete_record", "ticket", pk=ada.pk)
    assert Ticket.objects.count() == 2


def test_a_refused_ticket_and_a_tried_one_change_nothing(client):
    ada = Ticket.objects.get(holder="Ada")

    refused = call(
        client, "update_record", "ticket", pk=ada.pk, values={"seats": -1, "status": "paid"}
    )
    tried = done(client, "update_record", "ticket", pk=ada.pk, values={"seats": 9}, dry_run=True)
    deleted = done(client, "delete_record", "ticket", pk=ada.pk, dry_run=True)

    assert refused.text.startswith("Nothing was saved.\nseats: ")
    assert list(tried["changed"]) == ["seats"]
    assert deleted["dry_run"] is True
    assert deleted["deleted"] == {"festival.ticket": 1, "festival.extra": 1}
    ada.refresh_from_db()
    assert (ada.seats, ada.status) == (2, "new")


@pytest.mark.parametrize("name", ["boss", "clerk"])
def test_an_action_on_the_list_of_unfold_runs(clients, name):
    pks = list(Ticket.objects.values_list("pk", flat=True))

    answer = clients[name].call_tool("festival_ticket_void", pks=pks)

    assert "1 tickets are void." in answer.text
    assert list(Ticket.objects.values_list("status", flat=True)) == ["void", "paid"]


def test_an_action_of_unfold_on_one_record_is_no_tool(client):
    names = {tool["name"] for tool in client.list_tools()}

    assert "festival_ticket_void" in names
    assert not {name for name in names if name.startswith("festival_ticket_pay")}


# django-mptt


def tree():
    """Each area with the areas below it, and whether the numbers that say so are right."""
    numbers = [Area._mptt_meta.left_attr, Area._mptt_meta.right_attr, "level", "tree_id"]
    before = list(Area.objects.order_by("pk").values_list("pk", *numbers))
    names = {one.name: [below.name for below in one.get_children()] for one in Area.objects.all()}
    counts = {one.name: one.get_descendant_count() for one in Area.objects.all()}
    Area.objects.rebuild()
    after = list(Area.objects.order_by("pk").values_list("pk", *numbers))
    assert counts == {one.name: one.get_descendant_count() for one in Area.objects.all()}
    assert before == after
    return names


@pytest.mark.parametrize("name", ["boss", "clerk"])
def test_an_area_is_created_below_another_and_moves_with_what_is_below_it(clients, name):
    lake = Area.objects.get(name="Lake")

    made = done(clients[name], "create_record", "area", values={"name": "Camp", "parent": None})
    done(clients[name], "update_record", "area", pk=lake.pk, values={"parent": made["pk"]})
    done(clients[name], "update_record", "area", pk=lake.pk, values={"name": "Pond"})

    assert tree() == {
        "Camp": ["Pond"],
        "Pond": ["Island", "Shore"],
        "Island": [],
        "Shore": [],
        "Park": [],
    }


def test_a_tree_has_the_same_places_as_after_a_person_wrote_it(client, boss):
    lake, park = Area.objects.get(name="Lake"), Area.objects.get(name="Park")

    created = saved(
        client,
        boss,
        "area",
        None,
        {"name": "Dock", "parent": lake.pk},
        values={"name": "Dock", "parent": lake.pk},
    )
    renamed = saved(client, boss, "area", lake, {"name": "Bay"}, values={"name": "Bay"})
    lifted = saved(client, boss, "area", lake, {"parent": ""}, values={"parent": None})

    for by_person, by_tool in (created, renamed, lifted):
        assert by_tool == by_person
    assert len(created[1]["Area"]) == 5
    assert {one["parent_id"] for one in lifted[1]["Area"]} == {None, lake.pk}
    assert park.get_descendant_count() == 3


def test_an_area_cannot_be_put_below_itself(client):
    before = tree()
    park, shore = Area.objects.get(name="Park"), Area.objects.get(name="Shore")

    answer = call(client, "update_record", "area", pk=park.pk, values={"parent": shore.pk})

    assert answer.text.startswith("Nothing was saved.\nparent: ")
    assert tree() == before


def test_a_subtree_is_deleted_and_the_numbers_stay_right(client):
    lake = Area.objects.get(name="Lake")
    Area.objects.create(name="Wood", parent=Area.objects.get(name="Park"))

    deleted = delete(client, "area", lake.pk)

    assert deleted["deleted"] == {"festival.area": 3}
    assert tree() == {"Park": ["Wood"], "Wood": []}


def test_several_areas_are_deleted_and_the_numbers_stay_right(client):
    pks = [one.pk for one in Area.objects.filter(name__in=["Shore", "Island"])]
    Area.objects.create(name="Wood", parent=Area.objects.get(name="Park"))

    delete(client, "area", pks)

    assert tree() == {"Park": ["Lake", "Wood"], "Lake": [], "Wood": []}


# django-admin-sortable2


def test_a_stage_and_its_rows_number_themselves_as_in_a_browser(client, boss):
    by_person, by_tool = saved(
        client,
        boss,
        "stage",
        None,
        {
            "name": "Roof",
            "concerts-TOTAL_FORMS": "2",
            "concerts-0-band": "One",
            "concerts-1-band": "Two",
        },
        values={"name": "Roof"},
        inlines={"concerts": [{"band": "One"}, {"band": "Two"}]},
    )

    assert by_tool == by_person
    assert by_tool["Stage"][-1]["rank"] == 5
    assert [one["rank"] for one in by_tool["Concert"][-2:]] == [1, 2]


def test_an_update_keeps_every_rank_and_a_new_row_comes_last(client):
    tent = Stage.objects.get(name="Tent")
    first = tent.concerts.first()

    done(
        client,
        "update_record",
        "stage",
        pk=tent.pk,
        values={"name": "Big tent"},
        inlines={"concerts": [{"pk": first.pk, "band": "Changed"}, {"band": "Late"}]},
    )

    assert list(Stage.objects.values_list("name", flat=True)) == [
        *("Main", "Big tent", "Barn", "Garden")
    ]
    assert list(tent.concerts.values_list("band", "rank")) == [
        ("Changed", 1),
        ("Tent 2", 2),
        ("Late", 3),
    ]


def test_a_rank_is_no_field_and_orders_nothing(client):
    barn = Stage.objects.get(name="Barn")
    Stage.objects.filter(pk=barn.pk).update(rank=0)

    found = call(client, "find_records", "stage", fields=["name", "concert_count"])
    refused = call(client, "update_record", "stage", pk=barn.pk, values={"rank": 9})
    ordered = call(client, "find_records", "stage", order_by=["rank"])
    read = done(client, "get_record", "stage", pk=barn.pk, include=["concerts"])

    # The admin shows a handle in place of the rank: nobody sees it, so nothing is ordered by it.
    assert [one["name"] for one in found.records] == ["Main", "Tent", "Barn", "Garden"]
    assert {one["concert_count"] for one in found.records} == {2}
    assert "'rank' is not a field that you can set." in refused.text
    assert ordered.text.startswith("'rank' cannot be used in order_by.")
    assert read["concerts"]["count"] == 2


def test_a_stage_is_deleted_with_its_concerts(client):
    delete(client, "stage", Stage.objects.get(name="Tent").pk)

    assert list(Stage.objects.values_list("name", flat=True)) == ["Main", "Barn", "Garden"]
    assert Concert.objects.count() == 6


# django-modeltranslation


class GermanClient(CheckedClient):
    def session_headers(self):
        return {**super().session_headers(), "Accept-Language": "de"}


def test_an_article_is_read_in_each_language_whatever_the_language_of_the_client(client, boss):
    german = GermanClient(user=boss)
    asked = {"fields": ["title", "title_en", "title_de"], "order_by": ["title_en"]}

    found = [call(one, "find_records", "article", **asked).records for one in (client, german)]
    in_german = call(german, "find_records", "article", filters={"title_de__contains": "Reg"})
    refused = call(german, "update_record", "article", pk=1, values={"title_de": "x" * 51})

    # The column without a language is that of the first language. In the admin it is another
    # column for each visitor.
    rain, sun = found[0]
    assert rain == {"title": "Rain", "title_en": "Rain", "title_de": "Regen"}
    assert sun == {"title": "Sun", "title_en": "Sun", "title_de": None}
    assert found[1] == found[0]
    assert [one["title_en"] for one in in_german.records] == ["Rain"]
    assert "höchstens 50 Zeichen" in refused.text


def test_an_article_has_a_field_for_each_language_and_none_for_all(client):
    described = done(client, "describe_model", "article")["writing"]["create_record"]

    refused = call(client, "create_record", "article", values={"title": "Wind"})

    assert set(described["values"]["properties"]) == {
        *("title_en", "title_de", "body_en", "body_de", "is_published")
    }
    assert described["values"]["required"] == ["title_en"]
    assert "'title' is not a field that you can set." in refused.text
    assert Article.objects.count() == 2


def test_translations_are_written_as_in_a_browser(client, boss):
    rain = Article.objects.get(title_en="Rain")
    caption = rain.captions.get()

    by_person, by_tool = saved(
        client,
        boss,
        "article",
        rain,
        {"title_de": "Niesel", "captions-0-text_de": "Grau"},
        values={"title_de": "Niesel"},
        inlines={"captions": [{"pk": caption.pk, "text_de": "Grau"}]},
    )

    assert by_tool["Caption"] == by_person["Caption"]
    assert by_tool["Article"][0]["title_de"] == "Niesel"
    assert by_tool["Article"][0]["title"] == by_person["Article"][0]["title"] == "Rain"


@pytest.mark.parametrize("name", ["boss", "clerk"])
def test_an_article_is_written_by_whoever_may(clients, name):
    rain = Article.objects.get(title_en="Rain")

    changed = done(
        clients[name], "update_record", "article", pk=rain.pk, values={"body_de": "Stiefel!"}
    )
    tried = done(
        clients[name],
        "update_record",
        "article",
        pk=rain.pk,
        values={"title_en": "Hail"},
        dry_run=True,
    )
    refused = call(clients[name], "update_record", "article", pk=rain.pk, values={"title_en": ""})
    published = clients[name].call_tool("festival_article_publish", pks=[rain.pk])

    assert list(changed["changed"]) == ["body_de"]
    assert list(tried["changed"]) == ["title_en"]
    assert refused.text == "Nothing was saved.\ntitle_en: This field is required."
    assert "Published 1." in published.text
    rain.refresh_from_db()
    assert (rain.title_en, rain.body_de, rain.is_published) == ("Rain", "Stiefel!", True)


def test_an_article_is_created_and_deleted_in_both_languages(client):
    made = done(
        client,
        "create_record",
        "article",
        values={"title_en": "Wind", "title_de": "Sturm"},
        inlines={"captions": [{"text_en": "A kite", "text_de": "Ein Drachen"}]},
    )

    wind = Article.objects.get(pk=made["pk"])
    assert (wind.title_en, wind.title_de) == ("Wind", "Sturm")
    assert wind.captions.values_list("text_en", "text_de").get() == ("A kite", "Ein Drachen")
    delete(client, "article", wind.pk)
    assert Article.objects.count() == 2
    assert Caption.objects.count() == 1
