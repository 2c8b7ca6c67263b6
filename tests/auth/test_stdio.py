from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured
from django.test import RequestFactory

from mcp_django.auth.authenticate import NamedUser
from mcp_django.exceptions import AuthenticationFailed
from mcp_django.principal import SCOPES

pytestmark = pytest.mark.django_db
REQUEST = RequestFactory().post("/mcp")


def test_the_user_acts_with_every_scope_or_with_those_that_are_named(staff):
    everything = NamedUser("staff").authenticate(REQUEST)
    reading = NamedUser("staff", scopes=["mcp:read"]).authenticate(REQUEST)

    assert everything.scopes == set(SCOPES)
    assert reading.scopes == {"mcp:read"}
    assert (everything.user, everything.method, everything.client) == (staff, "stdio", "stdio")
    with pytest.raises(ImproperlyConfigured, match="unknown scope 'mcp:reed'"):
        NamedUser("staff", scopes=["mcp:reed"])


def test_the_user_is_read_once_a_second_and_not_for_each_call(
    staff, django_assert_num_queries, clock
):
    with pytest.raises(AuthenticationFailed):
        NamedUser("nobody").authenticate(REQUEST)
    named = NamedUser("staff")
    named._cache.clock = clock
    named.authenticate(REQUEST)

    with django_assert_num_queries(0):
        named.authenticate(REQUEST)
    get_user_model().objects.filter(pk=staff.pk).update(is_active=False)
    clock.now += 1

    with pytest.raises(AuthenticationFailed):
        named.authenticate(REQUEST)
