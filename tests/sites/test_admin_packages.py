"""Reads and writes through the admin of packages do what they do in a browser."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from mcp_django.levels import Level
from mcp_django.models import ExposedModel, ExposedTool
from tests.clients import CheckedClient, browser_of, call_with_token
from tests.same_as_admin import compare
from tests.sites.browsing import rows_after, save_in_browser
from tests.sites.festival.models import (
    Act,
    Area,
    Article,
    Banner,
    Caption,
    Concert,
    Extra,
    HouseRules,
    Song,
    Stage,
    Ticket,
)

# The same form with the nested rows of django-unfold.
from tests.sites.test_nested import *
from tests.writes.calls import update

FESTIVAL = (Ticket, Extra, Area, Stage, Concert, Article, Caption, Act, Song)
#: Their pages make their one row.
ONLY_ONE = (HouseRules, Banner)
#: The tables of django-parler.
TEXTS = tuple(one._parler_meta.root_model for one in (Act, Song))
#: Rights of somebody who sells tickets and draws the map.
FEW = [
    *("view_ticket", "change_ticket", "view_extra", "add_extra"),
    *("view_area", "add_area", "change_area"),
    *("view_stage", "view_article", "change_article"),
    *("view_act", "change_act", "change_houserules", "change_banner"),
]


@pytest.fixture
def festival(kitchen, menu):
    """Rows of each model, opened for writing."""
    for model in (*FESTIVAL, *ONLY_ONE):
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
    choir = Act.objects.language("en").create(title="Choir", blurb="They sing.", fee=3)
    choir.create_translation("de", title="Chor", blurb="Sie singen.")
    Act.objects.language("de").create(title="Kapelle")
    Song.objects.language("en").create(act=choir, name="Ave")


@pytest.fixture
def clerk(make_user):
    return make_user("clerk", *FEW, is_staff=True)


@pytest.fixture
def clients(festival, boss, clerk):
    return {"boss": boss, "clerk": CheckedClient(user=clerk)}


@pytest.fixture
def client(clients):
    return clients["boss"]


def row(model, name):
    """The record whose first text is this."""
    title = {Ticket: "holder", Article: "title_en", Concert: "band"}.get(model, "name")
    title = {Act: "translations__title", Song: "translations__name"}.get(model, title)
    return model.objects.get(**{title: name})


def saved(client, superuser, model, obj, changes, *, values, inlines=None):
    """The rows after a person and after an assistant changed or created something."""
    models = (*FESTIVAL, *TEXTS, Menu)
    label = model._meta.model_name
    url = f"/admin/festival/{label}/{f'{obj.pk}/change' if obj else 'add'}/"
    call = {"model": f"festival.{label}", "values": values, "inlines": inlines or {}}
    tool = "update_record" if obj else "create_record"
    key = {"pk": obj.pk} if obj else {}
    by_person = rows_after(lambda: save_in_browser(browser_of(superuser), url, changes), *models)
    by_tool = rows_after(lambda: client.data(tool, **key, **call), *models)
    return by_person, by_tool


# The same questions to the pages of the admin


@pytest.mark.parametrize("name", ["superuser", "clerk", "staff without rights", "not staff"])
def test_the_pages_of_the_admin_and_the_tools_answer_the_same(festival, make_user, name):
    rights = [] if name == "staff without rights" else [*FEW, "view_menu", "view_course"]
    user = make_user(name, *rights, is_staff=name != "not staff", is_superuser=name == "superuser")
    models = (*FESTIVAL, *MODELS)

    by_design = {
        "festival.act songs.name": "rows with a record have columns, and no texts of others"
    }

    found = compare(browser_of(user), CheckedClient(user=user), models, by_design=by_design)

    assert found["differences"] == []
    assert found["left_out"] == ([*by_design] if name == "superuser" else [])
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
    act = ["fee", "title"]
    assert compared["festival.act"] == [2, act, ["songs"] if sees_all else []]
    assert compared["kitchen.menu"] == [1, ["dishes", "name"], ["courses"]]
    hidden = {"festival.concert", "festival.caption", "festival.song", "kitchen.dish"}
    assert hidden & compared.keys() == (hidden if sees_all else set())


# The same changes in a browser and by a tool


def keyed(value, keys):
    """The same with the keys of records in place of their names."""
    if isinstance(value, dict):
        return {name: keyed(part, keys) for name, part in value.items()}
    if isinstance(value, list):
        return [keyed(part, keys) for part in value]
    return keys.get(value, value) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("model", "name", "changes", "values", "inlines", "stored"),
    [
        (
            Ticket,
            "Ada",
            {
                "price": "4.25",
                "is_invited": "on",
                "valid_from_0": "2026-06-01",
                "valid_from_1": "18:30:00",
                "extras-0-count": "3",
            },
            {"price": "4.25", "is_invited": True, "valid_from": "2026-06-01T18:30:00Z"},
            {"extras": [{"pk": "<tent>", "count": 3}]},
            ("Ticket", 0, {"price": Decimal("4.25"), "is_invited": True}),
        ),
        (
            Area,
            None,
            {"name": "Dock", "parent": "<lake>"},
            {"name": "Dock", "parent": "<lake>"},
            {},
            ("Area", -1, {"name": "Dock", "level": 2}),
        ),
        (Area, "Lake", {"name": "Bay"}, {"name": "Bay"}, {}, ("Area", 1, {"name": "Bay"})),
        (
            Area,
            "Lake",
            {"parent": ""},
            {"parent": None},
            {},
            ("Area", 1, {"parent_id": None, "level": 0}),
        ),
        (
            Stage,
            None,
            {
                "name": "Roof",
                "concerts-TOTAL_FORMS": "2",
                "concerts-0-band": "One",
                "concerts-1-band": "Two",
            },
            {"name": "Roof"},
            {"concerts": [{"band": "One"}, {"band": "Two"}]},
            ("Stage", -1, {"rank": 5}),
        ),
        (
            Act,
            "Choir",
            {"title": "Big choir", "songs-0-name": "Ave Maria"},
            {"title": "Big choir"},
            {"songs": [{"pk": "<ave>", "name": "Ave Maria"}]},
            ("ActTranslation", 0, {"title": "Big choir", "blurb": "They sing."}),
        ),
        # Its page has the first language, in which there is no title yet.
        (
            Act,
            "Kapelle",
            {"title": "Band"},
            {"title": "Band"},
            {},
            ("ActTranslation", -1, {"title": "Band", "language_code": "en"}),
        ),
        (
            Act,
            None,
            {
                "title": "Duo",
                "fee": "5",
                "songs-TOTAL_FORMS": "1",
                "songs-0-name": "Two",
                "songs-0-minutes": "3",
            },
            {"title": "Duo", "fee": 5},
            {"songs": [{"name": "Two"}]},
            ("SongTranslation", -1, {"name": "Two", "language_code": "en"}),
        ),
    ],
    ids=[
        *("unfold", "mptt new", "mptt renamed", "mptt moved", "sortable2"),
        *("parler", "parler without a text", "parler new"),
    ],
)
def test_the_form_of_a_package_saves_as_in_a_browser(
    client, superuser, model, name, changes, values, inlines, stored
):
    obj = row(model, name) if name else None
    keys = {"<tent>": row(Extra, "Tent").pk, "<lake>": row(Area, "Lake").pk}
    keys |= {"<ave>": row(Song, "Ave").pk}

    by_person, by_tool = saved(
        client,
        superuser,
        model,
        obj,
        keyed(changes, keys),
        values=keyed(values, keys),
        inlines=keyed(inlines, keys),
    )

    assert by_tool == by_person
    table, at, facts = stored
    assert by_tool[table][at].items() >= facts.items()


def test_translations_are_written_as_in_a_browser(client, superuser):
    rain = row(Article, "Rain")
    caption = rain.captions.get()

    by_person, by_tool = saved(
        client,
        superuser,
        Article,
        rain,
        {"title_de": "Niesel", "captions-0-text_de": "Grau"},
        values={"title_de": "Niesel"},
        inlines={"captions": [{"pk": caption.pk, "text_de": "Grau"}]},
    )

    assert by_tool["Caption"] == by_person["Caption"]
    assert by_tool["Article"][0]["title_de"] == "Niesel"
    assert by_tool["Article"][0]["title"] == by_person["Article"][0]["title"] == "Rain"


@pytest.mark.parametrize("model", ONLY_ONE)
@pytest.mark.parametrize("name", ["boss", "clerk"])
def test_the_only_record_of_a_model_is_made_by_a_write_as_by_opening_its_page(
    clients, superuser, clerk, model, name
):
    client, label = clients[name], model._meta.label_lower
    url = f"/admin/festival/{model._meta.model_name}/1/change/"
    browser = browser_of({"boss": superuser, "clerk": clerk}[name])
    write = {"model": label, "pk": 1, "values": {"text": "New"}}

    described = client.data("describe_model", model=label)["writing"]["update_record"]
    records = client.call_tool("find_records", model=label).records
    refusal = client.refusal("get_record", model=label, pk=1)
    trial = client.data("update_record", **write, dry_run=True)
    is_made_by_reading = model.objects.exists()
    by_person = rows_after(lambda: save_in_browser(browser, url, {"text": "New"}), model)
    by_tool = rows_after(lambda: client.data("update_record", **write), model)

    assert described["no_record_yet"].startswith("update_record with the key 1 makes the record")
    assert "text" in described["values"]["properties"]
    assert records == []
    assert "If there is none yet because its page in the admin makes it, update" in refusal
    assert trial["changed"] == {"text": [model().text, "New"]}
    assert not is_made_by_reading
    assert by_tool == by_person
    assert by_tool[model.__name__][0].items() >= {"id": 1, "text": "New"}.items()


@pytest.mark.parametrize("model", ONLY_ONE)
def test_the_only_record_of_a_model_is_an_ordinary_one_once_it_is_there(client, model):
    label = model._meta.label_lower
    model.objects.create(pk=1)

    described = client.data("describe_model", model=label)["writing"]
    read = client.data("get_record", model=label, pk=1)
    refusals = [
        client.refusal(tool, model=label, pk=2, **more)
        for tool, more in (("get_record", {}), ("update_record", {"values": {"text": "New"}}))
    ]

    assert {*described} == {"update_record"}
    assert {*described["update_record"]} == {"values"}
    assert read["text"] == model().text
    assert all(f"There is no {label} with the key 2." in refusal for refusal in refusals)
    assert list(model.objects.values_list("pk", flat=True)) == [1]


@pytest.mark.parametrize("model", ONLY_ONE)
def test_a_person_is_asked_about_the_only_record_before_it_is_made(festival, superuser, model):
    label = model._meta.label_lower
    ExposedTool.objects.create(name="update_record", needs_confirmation=True)
    refuser = CheckedClient(user=superuser, answers={"confirmation": {"confirm": False}})
    asker = CheckedClient(user=superuser, answers={"confirmation": {"confirm": True}})
    write = {"model": label, "pk": 1, "values": {"text": "New"}}

    refused = refuser.call_tool("update_record", **write)

    assert refused.is_error
    assert "Text: New" in refuser.questions["confirmation"]["params"]["message"]
    assert not model.objects.exists()
    asker.data("update_record", **write)
    assert model.objects.get().text == "New"


def test_nobody_who_may_not_change_it_makes_the_only_record_of_a_model(festival, make_user):
    viewer = CheckedClient(user=make_user("viewer", "view_banner", is_staff=True))

    refusal = viewer.refusal("get_record", model="festival.banner", pk=1)

    assert refusal.endswith("to see which there are.")
    assert "writing" not in viewer.data("describe_model", model="festival.banner")
    assert not Banner.objects.exists()


def test_an_update_keeps_every_rank_and_a_new_row_comes_last(client):
    tent = row(Stage, "Tent")
    concerts = [{"pk": tent.concerts.first().pk, "band": "Changed"}, {"band": "Late"}]

    answer = update(client, tent, name="Big tent", inlines={"concerts": concerts})

    assert not answer.is_error, answer.text
    stages = list(Stage.objects.values_list("name", flat=True))
    assert stages == ["Main", "Big tent", "Barn", "Garden"]
    assert list(tent.concerts.values_list("band", "rank")) == [
        ("Changed", 1),
        ("Tent 2", 2),
        ("Late", 3),
    ]


@pytest.mark.parametrize(
    ("model", "name", "values", "words"),
    [
        (Ticket, "Ada", {"seats": -1, "status": "paid"}, "\nseats: "),
        (Area, "Park", {"parent": "<shore>"}, "\nparent: "),
        (Stage, "Barn", {"rank": 9}, "'rank' is not a field that you can set."),
        (Article, "Rain", {"title_en": ""}, "\ntitle_en: This field is required."),
        (Article, "Rain", {"title": "Wind"}, "'title' is not a field that you can set."),
    ],
)
def test_a_change_that_the_form_of_a_package_refuses_changes_nothing(
    client, model, name, values, words
):
    before = rows_after(lambda: None, *FESTIVAL)
    values = keyed(values, {"<shore>": row(Area, "Shore").pk})

    answer = update(client, row(model, name), **values)

    assert answer.text.startswith("Nothing was saved.\n")
    assert words in answer.text
    assert rows_after(lambda: None, *FESTIVAL) == before


@pytest.mark.parametrize("name", ["boss", "clerk"])
def test_actions_on_the_lists_of_packages_run(clients, name):
    tickets = list(Ticket.objects.values_list("pk", flat=True))

    voided = clients[name].call_tool("festival_ticket_void", pks=tickets)
    published = clients[name].call_tool("festival_article_publish", pks=[row(Article, "Rain").pk])

    assert "1 tickets are void." in voided.text
    assert list(Ticket.objects.values_list("status", flat=True)) == ["void", "paid"]
    assert "Published 1." in published.text
    assert row(Article, "Rain").is_published
    # An action of unfold on one record is none on a list.
    names = clients[name].tools().keys()
    assert not {tool for tool in names if tool.startswith("festival_ticket_pay")}


def tree():
    """Each area with the areas below it, and whether the numbers that say so are right."""
    numbers = [Area._mptt_meta.left_attr, Area._mptt_meta.right_attr, "level", "tree_id"]
    before = list(Area.objects.order_by("pk").values_list("pk", *numbers))
    names = {one.name: [below.name for below in one.get_children()] for one in Area.objects.all()}
    Area.objects.rebuild()
    assert before == list(Area.objects.order_by("pk").values_list("pk", *numbers))
    return names


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (["Lake"], {"Park": ["Wood"], "Wood": []}),
        (["Shore", "Island"], {"Park": ["Lake", "Wood"], "Lake": [], "Wood": []}),
    ],
)
def test_areas_are_deleted_with_what_is_below_and_the_numbers_stay_right(client, names, left):
    Area.objects.create(name="Wood", parent=row(Area, "Park"))
    pks = [row(Area, name).pk for name in names]

    done = call_with_token(
        client, "delete_record", model="festival.area", pk=pks if len(pks) > 1 else pks[0]
    )

    assert not done.is_error, done.text
    assert done.data["deleted"] == {"festival.area": 5 - len(left)}
    assert tree() == left


# How it is read and described


def test_a_form_is_described_with_fields_in_tabs_columns_and_languages(client):
    described = client.data("describe_model", model="festival.ticket")
    article = client.data("describe_model", model="festival.article")["writing"]

    values = described["writing"]["create_record"]["values"]
    assert set(values["properties"]) == {
        *("holder", "price", "seats", "status", "is_invited", "valid_from", "notes")
    }
    assert values["required"] == ["holder"]
    assert described["computed"] == [
        {"name": "colored_status", "label": "Status", "order": True},
        {"name": "total", "label": "Total"},
    ]
    values = article["create_record"]["values"]
    languages = {f"{name}_{code}" for name in ("title", "body") for code in ("en", "de")}
    assert set(values["properties"]) == {"is_published", *languages}
    assert values["required"] == ["title_en"]


@pytest.mark.parametrize("title", ["Choir", "Kapelle"])
def test_texts_in_a_table_of_their_own_are_read_as_the_page_of_the_record_has_them(
    client, superuser, title
):
    act, german = row(Act, title), GermanClient(user=superuser)
    asked = {"model": "festival.act", "pk": act.pk}
    page = browser_of(superuser).get(f"/admin/festival/act/{act.pk}/change/")

    texts = page.context["adminform"].form.initial
    for reader in (client, german):
        read = reader.data("get_record", **asked)
        assert {name: read[name] for name in ("title", "blurb")} == {
            name: texts.get(name, "") for name in ("title", "blurb")
        }
    described = client.data("describe_model", model="festival.act")
    assert [one["name"] for one in described["computed"]] == ["title", "blurb"]
    # The list is in the language of the person.
    listed = {"model": "festival.act", "fields": ["title"], "filters": {"id": act.pk}}
    shown = [reader.call_tool("find_records", **listed).records for reader in (client, german)]
    assert shown == (
        [[{"title": "Choir"}], [{"title": "Chor"}]]
        if title == "Choir"
        else [[{"title": None}], [{"title": "Kapelle"}]]
    )


def test_a_text_in_a_table_of_its_own_counts_as_a_field_of_the_record(client):
    act = row(Act, "Choir")
    asked = {"model": "festival.act", "pk": act.pk}
    read = client.data("get_record", **asked)

    trial = client.data("update_record", **asked, values={"title": "Band"}, dry_run=True)
    after_trying = client.data("get_record", **asked)
    changed = client.data("update_record", **asked, values={"title": "Band"})
    late = client.refusal(
        "update_record", **asked, values={"title": "Duo"}, version=read["_version"]
    )

    assert trial["changed"] == changed["changed"] == {"title": ["Choir", "Band"]}
    # Neither does the cache of the package keep what was tried.
    assert after_trying == read
    assert "This record was changed after you read it." in late
    (entry,) = client.data("get_history", **asked)["history"]
    assert entry["change"].startswith("Changed Title.")


class GermanClient(CheckedClient):
    def session_headers(self):
        return {**super().session_headers(), "Accept-Language": "de"}


def test_an_article_is_read_in_each_language_whatever_the_language_of_the_client(
    client, superuser
):
    german = GermanClient(user=superuser)
    asked = {"fields": ["title", "title_en", "title_de"], "order_by": ["title_en"]}
    article = {"model": "festival.article"}

    english, same = (
        one.call_tool("find_records", **article, **asked).records for one in (client, german)
    )
    found = german.call_tool("find_records", **article, filters={"title_de__contains": "Reg"})
    refused = update(german, row(Article, "Rain"), title_de="x" * 51)

    # The column without a language is that of the first language. In the admin it is another
    # column for each visitor.
    rain, sun = english
    assert rain == {"title": "Rain", "title_en": "Rain", "title_de": "Regen"}
    assert sun == {"title": "Sun", "title_en": "Sun", "title_de": None}
    assert same == english
    assert [record["title_en"] for record in found.records] == ["Rain"]
    assert "höchstens 50 Zeichen" in refused.text
