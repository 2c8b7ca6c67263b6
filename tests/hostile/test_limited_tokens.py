"""Tokens that are held to some models, and code of the site that could lead beyond them."""

from __future__ import annotations

import pytest

from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient, WSGIClient
from tests.depot.models import Parcel

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(depot, make_user):
    return make_user("root", is_staff=True, is_superuser=True)


def names(client):
    return {one["name"] for one in client.list_tools()}


def test_actions_exist_whose_permissions_are_those_of_the_model(root):
    free, held = CheckedClient(user=root), CheckedClient(user=root, models=["depot.parcel"])

    gone = names(free) - names(held)

    assert {"depot_parcel_mark_shipped", "depot_parcel_labels"} <= names(held)
    # Without permissions, and with one that code of the site answers.
    assert {"depot_parcel_list_numbers", "depot_parcel_lose"} <= gone
    assert not any(name.startswith(("depot_van", "depot_driver")) for name in names(held))


def test_an_action_that_does_not_exist_for_a_token_is_an_unknown_tool(root):
    held = CheckedClient(user=root, models=["depot.parcel"])
    parcel = Parcel.objects.create(number="P1")

    with pytest.raises(ProtocolFailure) as refused:
        held.call_tool("depot_parcel_list_numbers", pks=[parcel.pk])

    assert refused.value.message == "Unknown tool: depot_parcel_list_numbers"


@pytest.mark.parametrize("kind", [CheckedClient, WSGIClient])
def test_functions_get_a_user_with_the_permissions_on_the_models(root, add_tool, kind):
    def what_may_i(request) -> dict[str, bool]:
        """Say what the user may do."""
        user = request.user
        return {
            "parcels": user.has_perm("depot.view_parcel"),
            "vans": user.has_perm("depot.view_van"),
            "everything": user.is_superuser,
        }

    add_tool(what_may_i, permission="depot.view_parcel")
    held = kind(user=root, models=["depot.parcel"])

    answer = held.call_tool("what_may_i").data

    assert answer["parcels"]
    assert not answer["vans"]
    assert not answer["everything"]
