from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType

from tests.emptying import empty_databases, written

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.database]
CASE = SimpleNamespace(
    available_apps=None, serialized_rollback=False, _databases_names=lambda **_: ["default"]
)


@pytest.fixture(autouse=True)
def written_anew(transactional_db):
    """As Django writes them now: other tests may have made models since."""
    written.clear()
    empty_databases(CASE)


def names_of_permissions():
    return set(Permission.objects.values_list("content_type__model", "codename"))


def test_no_row_stays_except_content_types_and_permissions():
    before = list(Permission.objects.values_list("pk", "codename"))
    User.objects.create_user("ada").user_permissions.add(Permission.objects.first())

    empty_databases(CASE)
    empty_databases(CASE)

    assert not User.objects.exists()
    assert not User.user_permissions.through.objects.exists()
    assert len(Permission.objects.all()) == len(before) > 0


@pytest.mark.parametrize(
    "change",
    [
        lambda: ContentType.objects.all().delete(),
        lambda: Permission.objects.filter(codename="view_user").delete(),
        lambda: Permission.objects.filter(codename="view_user").update(codename="see_user"),
        lambda: ContentType.objects.create(app_label="old", model="gone"),
    ],
    ids=["no content types", "a permission less", "another permission", "a content type more"],
)
def test_content_types_and_permissions_are_as_before_whatever_a_test_did(change):
    before = names_of_permissions()
    count = ContentType.objects.count()

    change()
    empty_databases(CASE)

    assert names_of_permissions() == before
    assert ContentType.objects.count() == count
