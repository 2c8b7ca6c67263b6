"""The calls that the page about actions shows for a wizard do what it says."""

from __future__ import annotations

import json

import pytest

from tests.depot.models import Parcel
from tests.docs.pages import ROOT, blocks_of

# Of packages that were written for Django 6.0.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:Overriding get_action"),
]


def test_the_calls_of_the_page_go_through_the_wizard_that_it_shows(boss):
    parcel = Parcel.objects.create(number="n1")
    page = ROOT / "docs" / "topics" / "actions.md"
    calls = [json.loads(one.text) for one in blocks_of(page) if one.language == "json"]
    answers, token = [], None

    for arguments in calls:
        shown = {"confirmation": token} if "confirmation" in arguments else {}
        sent = {**arguments, **shown, "pks": [parcel.pk]}
        answers.append(boss.call_tool("depot_parcel_send_hidden", **sent).data)
        token = answers[-1].get("confirmation")

    first, second, last = answers
    parcel.refresh_from_db()
    assert first["outcome"] == "asks"
    assert second["page"]["number"] == 2
    assert second["kept"] == ["carrier"]
    assert last["outcome"] == "done"
    assert parcel.carrier == "dhl express"
