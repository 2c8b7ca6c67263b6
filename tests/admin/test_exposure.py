"""What staff decide about models in the admin, and what nobody may."""

from __future__ import annotations

import re

import pytest
from django.apps.registry import Apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from mcp_django.admin import make_all_rows
from mcp_django.admin.decisions.exposed_models import known_models
from mcp_django.exposure.decisions import read_decisions
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from mcp_django.models import ExposedModel, PersonalToken
from mcp_django.principal import SCOPES
from mcp_django.stores.cache_version import generations
from mcp_django.testing import Client
from tests.clients import browser_of
from tests.decisions import decide
from tests.exposure.races import together
from tests.shop.models import Customer, Ledger, Order

pytestmark = pytest.mark.django_db

LIST = reverse("admin:mcp_django_exposedmodel_changelist")
USES = ("fields", "write_fields", "filter_fields", "order_fields", "group_fields")
USES += ("label_fields", "untrusted_fields")


def page_of(label):
    return reverse("admin:mcp_django_exposedmodel_change", args=[label])


def decided():
    return read_decisions("default").models


def row_of(label):
    return ExposedModel.objects.get(label=label)


@pytest.fixture(autouse=True)
def _rows(db):
    make_all_rows(using="default")


@pytest.fixture
def make_staff(make_user):
    def make(name, *codenames):
        return make_user(name, *codenames, is_staff=True)

    return make


@pytest.fixture
def editor(make_staff):
    return make_staff("editor", "change_exposedmodel", "view_order", "view_customer")


@pytest.fixture
def browser(editor):
    return browser_of(editor)


def filled(browser, label, **changed):
    """The form of a model as a browser would send it back, and what somebody changed."""
    form = browser.get(page_of(label)).context["adminform"].form
    sent = {
        "level": "" if form.instance.level is None else form.instance.level,
        "notes": form.instance.notes,
        "groups": [group.pk for group in form.initial["groups"]],
        "based_on": form["based_on"].value(),
    }
    for use in USES:
        names = getattr(form.instance, use)
        sent[f"uses-{use}-code" if names is None else f"uses-{use}"] = names or "1"
    for name, value in changed.items():
        if name in USES:
            sent.pop(f"uses-{name}-code", None)
            sent[f"uses-{name}"] = value
        else:
            sent[name] = value
    return sent


def save(browser, label, **changed):
    return browser.post(page_of(label), filled(browser, label, **changed))


def lines(browser, **query):
    return {row.label: row.line for row in browser.get(LIST, query).context["cl"].result_list}


# The list


def test_every_model_that_there_can_be_is_listed_and_why(browser):
    row = decide("shop.order", level=Level.AGGREGATES, notes="7 is back", fields=["id", "number"])
    row.groups.add(Group.objects.create(name="clerks"))
    decide("old.thing", level=Level.READ)

    found = lines(browser)

    told = {label: (line.get("level"), line["decided by"]) for label, line in found.items()}
    assert told["shop.customer"] == ("act", "code")
    assert told["shop.order"] == ("aggregates", "staff")
    assert told["auth.group"] == ("hidden", "not opened")
    assert told["old.thing"] == (None, "no longer in code")
    assert found["shop.order"]["fields shown"] == "2 of 6"
    assert found["shop.order"]["groups"] == "clerks"
    assert found["auth.group"]["groups"] == "nobody"
    assert "mcp_django.personaltoken" not in found


@pytest.mark.parametrize(
    ("query", "labels"),
    [
        ({"q": "SHOP.ord"}, {"shop.order"}),
        ({"q": "refund"}, {"shop.order"}),
        ({"q": "nothing like it"}, set()),
        ({"level": "aggregates"}, {"shop.order"}),
        ({"decided": "staff"}, {"shop.order"}),
        ({"decided": "not opened", "q": "auth.gr"}, {"auth.group"}),
        ({"level": "x"}, set()),
        ({"q": "a" * 9000}, set()),
    ],
)
def test_the_list_is_searched_and_filtered(browser, query, labels):
    decide("shop.order", level=2, notes="Refund")

    assert set(lines(browser, **query)) == labels


# Deciding


def test_a_level_is_decided_and_counts_for_the_very_next_call(browser, editor):
    before = Client(user=editor).call_tool("find_records", model="shop.order")

    response = save(browser, "shop.order", level=Level.AGGREGATES)

    assert response.status_code == 302
    assert not before.is_error
    assert Client(user=editor).call_tool("find_records", model="shop.order").is_error


#: What somebody changes on the page of a model, and what the log says of it.
CHANGES = [
    (
        "shop.order",
        {"fields": ["id", "number"], "filter_fields": ["status"]},
        "fields: as in code -> id, number; filter fields: as in code -> status",
    ),
    ("shop.order", {"group_fields": []}, "group fields: as in code -> none"),
    ("shop.order", {"notes": "State 7 means refunded."}, "notes: as in code -> State 7 means"),
    ("shop.customer", {"untrusted_fields": ["name"]}, "untrusted fields: as in code -> name"),
    ("shop.customer", {"write_fields": ["name"]}, "write fields: as in code -> name"),
    ("shop.customer", {"label_fields": ["country"]}, "label fields: as in code -> country"),
    # It waits for staff to open it.
    ("auth.group", {"level": Level.READ}, "level: as in code -> read: records"),
]


@pytest.mark.parametrize(("label", "changes", "words"), CHANGES)
def test_what_staff_choose_is_kept_and_logged(browser, label, changes, words):
    group = Group.objects.create(name="clerks")

    save(browser, label, groups=[group.pk], **changes)

    row = row_of(label)
    assert {name: getattr(row, name) for name in changes} == changes
    assert list(row.groups.all()) == [group]
    assert words in LogEntry.objects.get().get_change_message()


#: The model of the users of this site.
USER = get_user_model()._meta.label_lower
CAUTION = "These are accounts, or what decides rights"
LINK = f'href="{reverse("admin:mcp_django_inspect")}?model=shop.order"'
#: A model, and what its page says.
WORDS = [
    ("shop.order", r"<code>status</code><div [^>]*>status · text · How far it is</div>"),
    ("shop.order", r"<code>margin</code><div [^>]*>margin · integer</div>"),
    ("shop.order", r"<code>total</code><div [^>]*>total · decimal</div>"),
    ("shop.order", r"<code>customer__country</code><div [^>]*>customer country · text</div>"),
    ("shop.order", re.escape(LINK)),
    ("shop.customer", r'value="name" aria-label="Label: name"[^>]* data-mcp-standard checked>'),
    ("shop.customer", r'value="country" aria-label="Label: country" data-mcp-use="[a-z_]*">'),
    ("auth.group", CAUTION),
    (USER, CAUTION),
]


@pytest.mark.parametrize(("label", "words"), WORDS)
def test_the_page_of_a_model_says_what_there_is_to_decide(
    browser, make_staff, monkeypatch, label, words
):
    monkeypatch.setattr(Order._meta.get_field("status"), "help_text", "How far it is")
    inspector = browser_of(make_staff("inspector", "change_exposedmodel", "inspect_as"))

    page = inspector.get(page_of(label)).content.decode()

    assert re.search(words, page)
    assert LINK not in browser.get(page_of(label)).content.decode()
    assert (CAUTION in page) == ('class="mcp-warning"' in page) == (words == CAUTION)
    # A form in which all is as in code decides nothing.
    assert save(browser, label).status_code == 302
    assert not decided()


def test_only_a_superuser_opens_a_column_whose_name_may_mean_a_secret(browser, make_user):
    boss = make_user("boss", is_staff=True, is_superuser=True)
    ledger = Ledger.objects.create(amount=1, pin="4711")
    opened = {"level": Level.READ, "fields": ["id", "pin"]}

    refused = save(browser, "shop.ledger", **opened)
    closed = browser.get(page_of("shop.ledger")).content.decode()
    saved = save(browser_of(boss), "shop.ledger", **opened)

    assert "code does not allow pin" in refused.content.decode()
    assert 'value="pin"' not in closed
    assert saved.status_code == 302
    record = Client(user=boss).call_tool("get_record", model="shop.ledger", pk=ledger.pk).data
    assert record["pin"] == "4711"
    # Who saves the rest of the page keeps what is open.
    assert save(browser, "shop.ledger", notes="Four digits").status_code == 302
    assert row_of("shop.ledger").fields == ["id", "pin"]
    assert "Only a superuser" in browser.get(page_of("shop.ledger")).content.decode()


def test_what_code_marks_stays_marked_whatever_staff_tick(browser, monkeypatch):
    monkeypatch.setattr(registry.candidates[Customer], "untrusted_fields", ("name",))

    save(browser, "shop.customer", untrusted_fields=["country"])

    assert row_of("shop.customer").untrusted_fields == ["name", "country"]
    page = browser.get(page_of("shop.customer")).content.decode()
    assert re.search(r'aria-label="Untrusted: name"[^>]* data-mcp-standard checked>', page)


@pytest.mark.parametrize(
    ("names", "openable"),
    [
        (None, {"auth.group", USER, "shop.ledger"}),
        ([], set()),
        (["shop", "auth.Group"], {"auth.group", "shop.ledger"}),
    ],
)
def test_the_settings_say_which_models_staff_may_open(browser, configure, names, openable):
    configure(STAFF_MAY_OPEN=names)

    page = browser.get(LIST, {"all": ""}).content.decode()

    waiting = {"auth.group", USER, "shop.ledger"}
    assert {label for label in waiting if f">{label}<" in page} == openable
    # Code opened these.
    assert ">shop.order<" in page
    assert ">shop.memo<" in page


def test_what_code_has_no_more_can_be_deleted_and_not_changed(browser):
    row = decide("old.thing", level=Level.READ)
    delete = reverse("admin:mcp_django_exposedmodel_delete", args=[row.pk])

    page = browser.get(page_of(row.pk)).content.decode()
    refused = browser.post(page_of(row.pk), {"level": 5})
    asked = choose(browser, "reset", "old.thing").content.decode()
    browser.post(delete, {"post": "yes"})

    assert "Code no longer has it" in page
    assert f'href="{delete}"' in page
    assert refused.status_code == 403
    assert "Nothing would change." in asked
    assert not decided()


# Rows that decide nothing


def test_migrations_make_a_row_for_all_that_there_can_be_and_the_list_what_came_since(browser):
    ExposedModel.objects.all().delete()
    emit_post_migrate_signal(verbosity=0, interactive=False, db="default")
    there = set(ExposedModel.objects.values_list("label", flat=True))
    ExposedModel.objects.filter(label="shop.order").delete()
    ExposedModel.objects.create(label="old.thing")

    listed = lines(browser)

    assert there == set(known_models()) == set(listed)
    assert not ExposedModel.objects.filter(label="old.thing").exists()


def test_rows_that_decide_nothing_are_no_news_and_are_made_once(browser):
    ExposedModel.objects.all().delete()
    ExposedModel.objects.create(label="old.thing")
    before = generations.own, read_decisions("default")

    with CaptureQueriesContext(connection) as first:
        browser.get(LIST)
    with CaptureQueriesContext(connection) as second:
        browser.get(LIST)
        # A database may have no such tables.
        make_all_rows(using="default", apps=Apps())

    assert (generations.own, read_decisions("default")) == before
    writes = [[one["sql"][:6] for one in queries].count("INSERT") for queries in (first, second)]
    assert writes == [1, 0]


def test_a_row_of_a_label_in_other_letters_is_of_the_same_model(browser):
    ExposedModel.objects.filter(label="shop.order").update(label="Shop.Order", level=2)

    found = lines(browser)

    assert found["Shop.Order"]["level"] == "aggregates"
    assert "shop.order" not in found


def test_names_that_code_has_no_more_are_shown_and_go_with_the_next_save(browser):
    decide("shop.order", fields=["id", "gone"], order_fields=["customer__country"])

    page = browser.get(page_of("shop.order")).content.decode()
    save(browser, "shop.order", fields=["id", "number"], order_fields=["id"])

    words = r"have no effect.*<code>customer__country</code>, <code>gone</code>"
    assert re.search(words, page, re.DOTALL)
    assert row_of("shop.order").fields == ["id", "number"]


def test_the_log_says_what_it_was_and_what_it_is(browser, editor):
    group = Group.objects.create(name="clerks")
    save(browser, "shop.order", level=2, fields=["id"])
    save(browser, "shop.order", level="", notes="Seven", groups=[group.pk])
    choose_and_confirm(browser, "reset", "shop.order")

    assert not decided()
    told = list(LogEntry.objects.order_by("pk"))

    key = row_of("shop.order").pk
    assert [(one.user, one.object_id, one.object_repr) for one in told] == [
        (editor, str(key), "shop.order")
    ] * 3
    assert told[0].get_change_message() == (
        "level: as in code -> aggregates: numbers about groups of records; "
        "fields: as in code -> id"
    )
    assert "notes: as in code -> Seven" in told[1].get_change_message()
    for words in ("fields: id -> as in code", "notes: Seven ->", "groups: clerks -> everybody"):
        assert words in str(told[2])
    history = reverse("admin:mcp_django_exposedmodel_history", args=[key])
    assert "notes: as in code -&gt; Seven" in browser.get(history).content.decode()


# What nobody may


@pytest.mark.parametrize("verb", ["add", "delete"])
def test_nobody_adds_or_deletes_rows_by_hand(make_user, verb):
    boss = browser_of(make_user("boss", is_staff=True, is_superuser=True))
    row = decide("shop.order")
    args = [] if verb == "add" else [row.pk]

    url = reverse(f"admin:mcp_django_exposedmodel_{verb}", args=args)

    assert boss.post(url, {"post": "yes", "label": "x.y"}).status_code == 403
    assert row_of("shop.order") == row


@pytest.mark.parametrize(
    "wrong",
    [
        *({"level": level} for level in (99, -1, "write")),
        {"fields": ["password"]},
        {"fields": ["id", "customer__user__password"]},
        {"filter_fields": ["margin"]},
        {"order_fields": ["customer__country"]},
        {"group_fields": [""]},
        *({"label_fields": [name]} for name in ("margin", "customer__country", "__str__")),
        *({"write_fields": [name]} for name in ("id", "nowhere")),
        *({"untrusted_fields": [name]} for name in ("total", "status", "customer__country")),
        *({"groups": [key]} for key in (4711, "x")),
        {"notes": "x" * 1001},
        *({"based_on": text} for text in ("forged", "")),
        {"fields": [f"name{number}" for number in range(900)]},
    ],
    ids=lambda wrong: str(wrong)[:40],
)
def test_a_forged_form_saves_nothing(browser, wrong):
    answer = save(browser, "shop.order", **wrong)

    assert answer.status_code == 200
    assert answer.context["errors"]
    assert not decided()


def test_nobody_goes_beyond_the_level_of_code_with_one_model_or_with_many(browser, monkeypatch):
    code = next(one for one in registry.candidates.values() if one.label == "shop.order")
    monkeypatch.setattr(code, "level", Level.READ, raising=False)

    assert save(browser, "shop.order", level=Level.WRITE).status_code == 200
    assert not decided()

    monkeypatch.setattr(type(known_models()["auth.group"]), "highest_level", Level.AGGREGATES)
    asked = choose(browser, "open_for_reading", "auth.group")

    assert "Nothing would change." in asked.content.decode()


@pytest.mark.parametrize(
    "label", ["no.model", "shop.nothing", "mcp_django.personaltoken", "0", "9" * 30, "a\x00b", "%"]
)
def test_a_label_of_no_model_has_no_page(browser, label):
    answer = browser.get(page_of(label))

    assert answer.status_code in (302, 404)
    assert browser.post(page_of(label), {"level": 3}).status_code in (302, 404)
    assert not decided()


def test_whoever_saves_second_is_told_instead_of_overwriting(browser, make_staff):
    second = browser_of(make_staff("second", "change_exposedmodel"))
    theirs = filled(second, "shop.order", notes="Mine")
    save(browser, "shop.order", level=2)

    answer = second.post(page_of("shop.order"), theirs)

    page = answer.content.decode()
    assert "Somebody else changed this after you opened it" in page
    assert "level: aggregates" in page
    row = row_of("shop.order")
    assert (row.level, row.notes) == (2, "")


# Models that are opened for writing, and no token that writes


NOBODY = "Nobody can change anything: all tokens have only mcp:read."


@pytest.fixture
def opened():
    return decide("shop.order", level=Level.WRITE)


#: The options of tokens, whether there are other credentials, and whether the list warns. Another
#: token is revoked.
TOKENS = [
    ([], False, False),
    ([{}, {"scopes": ["mcp:write"], "read_only": True}], False, True),
    *(([{}, {"scopes": ["mcp:read", scope]}], False, False) for scope in SCOPES[1:]),
    ([{}], True, False),
]


@pytest.mark.parametrize(("tokens", "has_others", "is_warned"), TOKENS)
def test_staff_are_warned_where_tokens_can_change_nothing_of_what_is_opened(
    browser, editor, opened, configure, tokens, has_others, is_warned
):
    others = ["mcp_django.auth.Anonymous"] if has_others else []
    configure(AUTHENTICATORS=["mcp_django.auth.PersonalTokens", *others])
    for options in tokens:
        PersonalToken.create(user=editor, name="laptop", **options)
    gone, _ = PersonalToken.create(user=editor, name="gone", scopes=["mcp:write"])
    gone.revoke()

    pages = [browser.get(address).content.decode() for address in (LIST, page_of("shop.order"))]

    assert [NOBODY in page for page in pages] == [is_warned] * 2
    assert NOBODY not in browser.get(LIST, {"q": "memo"}).content.decode()


def test_the_page_of_a_model_warns_of_ones_own_tokens(
    browser, editor, make_staff, opened, only_tokens
):
    PersonalToken.create(user=editor, name="laptop")
    PersonalToken.create(user=make_staff("bob"), name="x", scopes=["mcp:write"])

    assert "Your own tokens have only" in browser.get(page_of("shop.order")).content.decode()
    assert "Your own tokens" not in browser.get(page_of("shop.memo")).content.decode()


# One decision about many models


def choose(browser, action, *labels, **sent):
    rows = ExposedModel.objects.filter(label__in=labels).values_list("pk", flat=True)
    return browser.post(LIST, {"action": action, "_selected_action": list(rows), **sent})


def choose_and_confirm(browser, action, *labels):
    asked = choose(browser, action, *labels)
    return choose(browser, action, *labels, based_on=asked.context["based_on"])


def test_models_are_opened_together_once_that_is_confirmed(browser, editor):
    asked = choose(browser, "open_for_reading", "auth.group", "shop.customer", "shop.order")

    page = asked.content.decode()
    assert "level: as in code -&gt; read: records" in page
    assert "These are accounts, or what decides rights" in page
    assert "2 of those that you selected stay as they are." in page  # code opened these
    assert not decided()

    answer = choose_and_confirm(browser, "open_for_reading", "auth.group", "shop.customer")

    assert answer.status_code == 302
    assert {label: row.level for label, row in decided().items()} == {"auth.group": Level.READ}
    logged = LogEntry.objects.get(user=editor)
    assert str(logged.get_edited_object()) == "auth.group"
    assert logged.get_change_message() == "level: as in code -> read: records"


def test_all_that_a_filter_leaves_are_closed_together(browser):
    asked = choose(browser, "close", "shop.order", select_across=1, index=0)

    labels = [row.label for row, _, _ in asked.context["changes"]]

    assert {"shop.order", "shop.customer"} <= set(labels)
    assert "auth.group" not in labels


def test_opening_narrows_nothing_and_closing_keeps_groups_and_fields(browser):
    support = Group.objects.create(name="Support")
    row = decide("shop.order", level=Level.WRITE, fields=["id"])
    row.groups.add(support)

    nothing = choose(browser, "open_for_reading", "shop.order")
    choose_and_confirm(browser, "close", "shop.order")

    row.refresh_from_db()
    assert "Nothing would change." in nothing.content.decode()
    assert (row.level, row.fields, list(row.groups.all())) == (Level.HIDDEN, ["id"], [support])


def test_what_changed_since_the_question_is_asked_again(browser):
    asked = choose(browser, "close", "shop.order")
    decide("shop.order", level=Level.WRITE)

    answer = choose(browser, "close", "shop.order", based_on=asked.context["based_on"])

    assert answer.status_code == 200
    assert "Somebody else changed one of them." in answer.content.decode()
    assert row_of("shop.order").level == Level.WRITE


@pytest.mark.parametrize(
    ("action", "labels"),
    [
        ("open_for_reading", []),
        *((name, ["auth.group"]) for name in ("", "delete_selected", "decide")),
    ],
)
def test_a_forged_choice_decides_nothing(browser, action, labels):
    answer = choose(browser, action, *labels, based_on="")

    assert "based_on" not in (answer.context or {})
    assert not decided()


def test_rows_of_another_server_are_not_there(browser):
    row = ExposedModel.objects.create(server="second", label="shop.order", level=0)

    asked = browser.post(LIST, {"action": "reset", "_selected_action": [row.pk], "index": 0})

    assert not asked.context["changes"]
    assert browser.get(page_of(row.pk)).status_code == 302


def test_those_who_only_look_decide_nothing_in_bulk(make_staff):
    browser = browser_of(make_staff("looker", "view_exposedmodel"))

    assert "_selected_action" not in browser.get(LIST).content.decode()
    answer = choose(browser, "open_for_reading", "auth.group", based_on="")
    assert "based_on" not in (answer.context or {})
    assert not decided()


# Two people who decide about one thing in the same moment


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("notes", ["", "Seven"])
def test_one_of_them_decides_and_the_other_is_told(make_user, notes):
    row = decide("shop.order", notes=notes)
    browsers, forms = [], []
    for number in range(2):
        browsers.append(browser_of(make_user(f"boss{number}", is_staff=True, is_superuser=True)))
        forms.append(filled(browsers[-1], "shop.order", level=number + 1))

    pages = together(
        lambda number: (
            browsers[number]
            .post(page_of("shop.order"), forms[number], follow=True)
            .content.decode()
        )
    )

    told = [page for page in pages if "was changed successfully" in page]
    refused = [page for page in pages if "Somebody else" in page]
    assert (len(told), len(refused)) == (1, 1)
    row.refresh_from_db()
    assert row.level == pages.index(told[0]) + 1
    assert LogEntry.objects.count() == 1
