"""Actions do to nobody more than the admin would let the same person do, and nothing by halves."""

from __future__ import annotations

import pytest
from django.contrib.admin.options import ModelAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, HttpResponseRedirect

import mcp_django as mcp
from mcp_django.testing import Client
from tests.clients import CheckedClient, call_with_token
from tests.depot.admin import ParcelAdmin
from tests.depot.admin import site as depot_site
from tests.depot.models import Parcel, Van
from tests.exposure.races import together

# Of packages that were written for Django 6.0.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:Overriding get_action"),
]


@pytest.fixture
def parcels(db):
    make = Parcel.objects.create
    return {
        "ours": make(number="n1", tenant="acme"),
        "theirs": make(number="n2", tenant="other"),
        "archived": make(number="n3", tenant="acme", is_archived=True),
    }


@pytest.fixture
def acme(depot, make_user):
    """May change parcels, and sees those of one tenant."""
    user = make_user("ada", "view_parcel", "change_parcel", is_staff=True)
    user.groups.add(Group.objects.create(name="acme"))
    return CheckedClient(user=user)


def statuses():
    return set(Parcel.objects.values_list("status", flat=True))


def test_a_site_that_closes_while_the_call_begins_is_told_without_a_word_about_it(
    boss, parcels, monkeypatch
):
    answers = iter([True, True])
    monkeypatch.setattr(depot_site, "has_permission", lambda request: next(answers, False))

    boss.refusal("depot_parcel_mark_shipped", pks=[parcels["ours"].pk])

    assert statuses() == {"waiting"}


@pytest.mark.parametrize("which", ["theirs", "archived", "missing"])
def test_a_record_that_the_admin_would_leave_out_is_named_and_nothing_is_done(
    acme, parcels, which
):
    pk = 10**6 if which == "missing" else parcels[which].pk

    text = acme.refusal("depot_parcel_mark_shipped", pks=[parcels["ours"].pk, pk])

    assert text.replace(str(pk), "PK") == (
        "Not found: PK. Nothing was done. Leave them out, or look with find_records which "
        "records there are."
    )
    assert statuses() == {"waiting"}


@pytest.mark.parametrize(
    "pk", ["x", "1; DROP TABLE", 10**30, -1, "\x00", "\uff11x", 2**63, "a" * 5000]
)
def test_a_key_that_cannot_be_one_is_not_found(boss, parcels, pk):
    text = boss.refusal("depot_parcel_mark_shipped", pks=[pk])

    assert text.startswith("Not found: ")
    assert len(text) < 300
    assert statuses() == {"waiting"}


def test_many_that_are_not_found_are_not_all_named(boss):
    assert "and 980 more" in boss.refusal("depot_parcel_mark_shipped", pks=list(range(1000)))


def swallow_refusals(self, request, extra_context=None):
    try:
        return ModelAdmin.changelist_view(self, request, extra_context)
    except Exception:
        return HttpResponseRedirect(request.path)


def deny(self, request, extra_context=None):
    raise PermissionDenied("secret reason")


@pytest.mark.parametrize(
    ("view", "which", "words"),
    [
        (swallow_refusals, "archived", "Not found: "),
        (deny, "ours", "The admin does not let you do this."),
        # A changelist that never reaches the action is no success.
        (lambda *args, **options: HttpResponse("<p>Closed</p>"), "ours", ""),
    ],
)
def test_a_changelist_that_does_not_act_is_no_success(
    boss, parcels, monkeypatch, view, which, words
):
    monkeypatch.setattr(ParcelAdmin, "changelist_view", view)

    text = boss.refusal("depot_parcel_mark_shipped", pks=[parcels[which].pk])

    assert text.startswith(words)
    assert "secret" not in text
    assert statuses() == {"waiting"}


# Pages


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("widen", "The page would act on other records than you named."),
        ("widen_across", "The page would act on more records than you named."),
        ("lead_away", "The page leads out of this admin."),
        ("lead_nowhere", "The page leads out of this admin."),
        ("lead_aside", "The page leads out of this admin."),
    ],
)
def test_a_page_that_goes_beyond_what_was_named_is_not_answered(boss, parcels, name, sentence):
    answer = call_with_token(boss, f"depot_parcel_{name}", pks=[parcels["ours"].pk])

    assert answer.is_error
    assert sentence in answer.text
    assert statuses() == {"waiting"}


def test_a_stream_of_nothing_ends_when_nobody_waits(boss, parcels):
    text = boss.refusal("depot_parcel_endless_nothing", pks=[parcels["ours"].pk])

    assert text.startswith("The tool was not done within ")


# Buttons of django-object-actions, whose views ask for no more than to be staff


class EveryVan(mcp.ModelExposure):
    fields = ["id", "plate"]
    actions = ["drive"]

    def get_queryset(self, request):
        return Van.objects.all()


@pytest.mark.parametrize("is_shown", [False, True], ids=["hidden", "shown by its exposure"])
def test_a_button_reaches_no_record_that_the_admin_hides(depot, make_client, expose, is_shown):
    client = make_client("view_van", "change_van")
    van = Van.objects.create(plate="SECRET")
    if is_shown:
        expose(Van, EveryVan)

    text = client.refusal("depot_van_drive", pk=van.pk)

    van.refresh_from_db()
    assert text.startswith(f"Not found: {van.pk}. Nothing was done.")
    assert van.kilometres == 0


def test_a_button_that_the_page_of_a_record_hides_is_refused(boss):
    van = Van.objects.create(plate="A", is_hired=False)

    text = boss.refusal("depot_van_return_it", pk=van.pk)

    assert text == f"The admin does not offer this for {van.pk}. Nothing was done."


# Many at once


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
def test_twenty_users_at_once_leave_no_mark_on_the_admin_that_they_share(depot, make_user):
    parcel = Parcel.objects.create(number="n1")
    rights = ("view_parcel", "change_parcel")
    users = [make_user(f"user{n}", *rights, is_staff=True) for n in range(20)]
    clients = [Client(user=user, inline=False) for user in users]
    admin = depot_site._registry[Parcel]
    before, call = dict(vars(admin)), {"pks": [parcel.pk]}

    answers = together(
        lambda n: clients[n].call_tool("depot_parcel_leave_a_mark", **call).data, count=20
    )

    said = [answer["messages"] for answer in answers]
    names = [user.get_username() for user in users]
    assert said == [[{"level": "info", "text": name}] for name in names]
    assert vars(admin) == before
