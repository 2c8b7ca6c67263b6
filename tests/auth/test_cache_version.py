from __future__ import annotations

import pytest
from django.contrib.auth.models import AbstractBaseUser, Group, Permission, User
from django.db import DatabaseError, connection, models, transaction
from django.test.utils import CaptureQueriesContext, isolate_apps

from mcp_django.models import ExposureGeneration, PersonalToken
from mcp_django.stores import cache_version as module
from mcp_django.stores.cache_version import (
    CacheVersions,
    cache_version,
    invalidate,
    known_cache_version,
)
from tests.exposure.races import together
from tests.tables import without_table

pytestmark = pytest.mark.django_db


def stored(server="default"):
    return ExposureGeneration.objects.filter(server=server).values_list("number", flat=True).get()


def current(server="default"):
    return cache_version(server).number


@pytest.fixture
def decisions_are_known():
    """These tests are about how they come to be known."""


@pytest.fixture
def committed(django_capture_on_commit_callbacks):
    return lambda: django_capture_on_commit_callbacks(execute=True)


# Reading


def test_the_row_is_read_once_a_second_and_on_no_event_loop(clock, django_assert_num_queries):
    version = cache_version()
    # By another process.
    ExposureGeneration.objects.create(number=7)

    clock.now += 0.99
    with django_assert_num_queries(0):
        assert cache_version() == known_cache_version() == version
        clock.now += 0.01
        assert known_cache_version() is None
        assert known_cache_version("other") is None
    with CaptureQueriesContext(connection) as queries:
        assert current() == 7

    assert sum("SELECT" in query["sql"] for query in queries) == 1


def test_what_was_read_before_a_change_is_not_believed_after_it(clock):
    found = CacheVersions(clock=clock)

    def change(execute, sql, *rest):
        """Another thread announces a change while the row is being read."""
        answer = execute(sql, *rest)
        if "exposuregeneration" in sql:
            found.forget()
        return answer

    with connection.execute_wrapper(change):
        before = found.cache_version()

    assert found.known_cache_version() is None
    assert found.cache_version() != before


@pytest.mark.django_db(transaction=True)
def test_threads_that_ask_together_read_once(clock):
    found = CacheVersions(clock=clock)
    reads = []

    def count(execute, sql, *rest):
        reads.append(sql)
        return execute(sql, *rest)

    def ask(number):
        with connection.execute_wrapper(count):
            return found.cache_version()

    assert len(set(together(ask, count=4))) == 1
    assert len(reads) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("inside_transaction", [True, False])
def test_without_its_table_the_number_is_zero_and_nothing_else_breaks(inside_transaction):
    with without_table(ExposureGeneration):
        if inside_transaction:
            with transaction.atomic():
                assert current() == 0
                User.objects.create_user("alice")
        else:
            assert current() == 0
            User.objects.create_user("alice")

    assert User.objects.filter(username="alice").exists()


def test_a_database_that_cannot_say_leaves_the_last_number(clock):
    ExposureGeneration.objects.create(number=7)
    current()
    clock.now += 1

    def refuse(execute, sql, *rest):
        if "exposuregeneration" in sql:
            raise DatabaseError("down")
        return execute(sql, *rest)

    with connection.execute_wrapper(refuse):
        assert current() == 7


# Raising


def test_a_change_for_all_raises_every_number(committed):
    ExposureGeneration.objects.create(server="other", number=5)
    with committed():
        invalidate("third")

    with committed():
        invalidate(None)

    assert [stored(server) for server in ("default", "other", "third")] == [1, 6, 2]


def test_the_changes_of_one_transaction_raise_it_once(committed):
    for _ in range(3):
        with committed():
            for _ in range(100):
                invalidate()

    assert stored() == 3


@pytest.mark.django_db(transaction=True)
def test_what_is_rolled_back_raises_nothing_and_takes_no_other_with_it():
    with transaction.atomic():
        invalidate()
        transaction.set_rollback(True)
    before = current()

    with transaction.atomic():
        with transaction.atomic():
            invalidate()
            transaction.set_rollback(True)
        invalidate()

    assert (before, current()) == (0, 1)


@pytest.mark.django_db(transaction=True)
def test_a_site_that_commits_by_hand_is_served_too():
    transaction.set_autocommit(False)
    try:
        invalidate()
        transaction.commit()
    finally:
        transaction.set_autocommit(True)

    assert current() == 1


def test_this_process_forgets_before_the_commit_and_again_after_it(committed):
    before = cache_version()

    with committed():
        invalidate()
        within = cache_version()
    after = cache_version()

    assert before.own < within.own < after.own
    assert after.number == 1


# What raises it


CHANGES = {
    "a user saved": lambda user, group, token: user.save(),
    "a user deleted": lambda user, group, token: user.delete(),
    "a group deleted": lambda user, group, token: group.delete(),
    "a permission deleted": lambda user, group, token: Permission.objects.earliest("pk").delete(),
    "a user's groups": lambda user, group, token: user.groups.add(group),
    "a group's users": lambda user, group, token: group.user_set.add(user),
    "a user's permissions": lambda user, group, token: user.user_permissions.clear(),
    "a group's permissions": lambda user, group, token: group.permissions.clear(),
    "a token saved": lambda user, group, token: token.save(),
    "a token deleted": lambda user, group, token: token.delete(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_rights_raises_the_number(committed, token, alice, change):
    group = Group.objects.create(name="Editors")
    before = cache_version()

    with committed():
        alice.save(update_fields=["last_login"])
        PersonalToken.objects.update(last_used_at=None)
    is_quiet = cache_version() == before
    with committed():
        change(alice, group, PersonalToken.objects.get())

    assert is_quiet
    assert stored() >= 1


def test_connecting_again_doubles_nothing(committed, alice):
    module.connect()

    with committed() as callbacks:
        alice.save()

    raised = [one for one in callbacks if one.__module__ == invalidate.__module__]
    assert len(raised) == 1


@isolate_apps("tests.nasty")
def test_roles_of_the_site_are_groups_whatever_they_are_called():
    class Role(models.Model):
        __module__ = "tests.nasty"
        rights = models.ManyToManyField(Permission)

    class Hat(models.Model):
        """A hat gives no rights."""

        __module__ = "tests.nasty"

    class Member(AbstractBaseUser):
        __module__ = "tests.nasty"
        roles = models.ManyToManyField(Role, through="Assignment")
        hats = models.ManyToManyField(Hat)

    class Lonely(AbstractBaseUser):
        __module__ = "tests.nasty"

    class Visitor(Lonely):
        __module__ = "tests.nasty"

        class Meta:
            proxy = True

    class Assignment(models.Model):
        __module__ = "tests.nasty"
        member = models.ForeignKey(Member, models.CASCADE)
        role = models.ForeignKey(Role, models.CASCADE)

    assert set(module.models_of_rights(Member)) == {Member, Role, Assignment, Permission}
    names = [field.name for field in module.fields_of_rights(Member)]
    assert names == ["roles", "rights"]
    # A user without groups is watched all the same.
    assert list(module.models_of_rights(Lonely)) == [Lonely, Visitor]
    assert list(module.fields_of_rights(Lonely)) == []


class BrokenRouter:
    """A router of the site that fails for our table."""

    def db_for_write(self, model, **hints):
        if model is ExposureGeneration:
            raise RuntimeError("No such shard.")


@pytest.mark.django_db(transaction=True)
def test_a_router_that_fails_does_not_fail_whoever_saves(settings, caplog):
    settings.DATABASE_ROUTERS = [BrokenRouter()]

    with transaction.atomic():
        invalidate(using="default")

    assert "No such shard." in caplog.text
