from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.views.debug import ExceptionReporter

from mcp_django import auth
from mcp_django.auth import PersonalTokens
from mcp_django.auth.authenticate import (
    PrincipalCache,
    authenticate,
    cache,
    cached_principal,
    challenge,
)
from mcp_django.exceptions import AuthenticationFailed, NotAuthenticated, TooManyRequests
from mcp_django.models import PersonalToken
from mcp_django.principal import Principal
from mcp_django.protocol.headers import Headers
from mcp_django.stores.cache_version import CacheVersion, cache_version
from tests.children import finished

VIEW_GROUP = "auth.view_group"


class Custom:
    """A site's own authenticator: knows `Custom <name>`."""

    def __init__(self, header="Custom"):
        self.header = header

    def authenticate(self, request):
        if request.META.get("HTTP_AUTHORIZATION", "").startswith("Custom "):
            return Principal(user=User(username="custom"), scopes=frozenset(), method="custom")
        return None

    def challenge(self):
        return self.header


def headers_of(secret, *more):
    return Headers([(b"Authorization", f"Bearer {secret}".encode()), *more])


# Who decides


@pytest.mark.django_db
@pytest.mark.parametrize("header", [None, "Bearer abc", "Basic YTpi", "Bearer", "", "x" * 300])
def test_no_credential_is_told_apart_from_one_that_nobody_knows(present, header):
    with pytest.raises(AuthenticationFailed) as failed:
        authenticate(present(header))

    assert type(failed.value) is (NotAuthenticated if header is None else AuthenticationFailed)


# A user who may not act


class BannedUsersBackend:
    def user_can_authenticate(self, user):
        return bool(user.last_name != "banned")

    def get_user(self, pk):
        return None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("backend", "changes", "may_act"),
    [
        (f"{__name__}.BannedUsersBackend", {"last_name": "banned"}, False),
        # One for inactive users does not open the door.
        ("django.contrib.auth.backends.AllowAllUsersModelBackend", {"is_active": False}, False),
        # One without an opinion refuses nobody.
        ("django.contrib.auth.backends.BaseBackend", {}, True),
    ],
)
def test_a_user_whom_the_sites_backend_refuses_may_not_act(
    settings, present, alice, secret, backend, changes, may_act
):
    settings.AUTHENTICATION_BACKENDS = [backend]
    User.objects.update(**{"first_name": "Alice", **changes})

    if may_act:
        assert authenticate(present(f"Bearer {secret}")).user == alice
    else:
        with pytest.raises(AuthenticationFailed):
            authenticate(present(f"Bearer {secret}"))


# What is remembered


@pytest.mark.django_db
def test_a_new_caller_costs_one_query_and_the_event_loop_asks_nothing_to_know_an_old_one(
    present, secret, clock, django_assert_num_queries
):
    PersonalToken.objects.update(last_used_at=timezone.now())
    cache_version()
    with django_assert_num_queries(1):
        principal = authenticate(present(f"Bearer {secret}"))
    assert principal.user.has_perm(VIEW_GROUP)
    clock.now += 0.9
    cache_version()

    with django_assert_num_queries(0):
        assert authenticate(present(f"Bearer {secret}")) is principal
        assert cached_principal(headers_of(secret)) is principal
        assert principal.user.has_perm(VIEW_GROUP)
        assert cached_principal(Headers([])) is None
        assert cached_principal(headers_of("mcp_other")) is None
        assert cached_principal(headers_of(secret, (b"authorization", b"Bearer x"))) is None
        clock.now += 0.2
        assert cached_principal(headers_of(secret)) is None
    again = authenticate(present(f"Bearer {secret}"))
    assert again is not principal
    # A token may expire within the second.
    assert cached_principal(headers_of(secret)) is again
    object.__setattr__(again, "expires_at", timezone.now() - timedelta(microseconds=1))
    assert cached_principal(headers_of(secret)) is None


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["Custom", "Bearer"])
def test_an_answer_that_may_depend_on_more_than_the_header_is_not_remembered(
    settings, present, secret, kind
):
    """Neither is that for a token behind such an authenticator."""
    settings.MCP_DJANGO = {"AUTHENTICATORS": [Custom(), "mcp_django.auth.PersonalTokens"]}

    authenticate(present(f"{kind} {secret}"))

    assert len(cache) == 0


def test_the_memory_is_bounded_and_drops_the_oldest(clock):
    small, mark = PrincipalCache(size=2, clock=clock), CacheVersion(0, 0, ())
    principals = [Principal(user=None, scopes=frozenset(), method=key) for key in "abc"]

    for principal in principals:
        small.keep(principal.method.encode(), principal, cache_version=mark)

    assert len(small) == 2
    assert small.known(b"a", cache_version=mark) is None
    assert small.known(b"c", cache_version=mark) is principals[2]


# Refusing


TOKENS, ANYBODY = ["mcp_django.auth.PersonalTokens"], ["mcp_django.auth.Anonymous"]
METADATA = 'Bearer resource_metadata="https://x"'
#: Each kind of credential is named once, and the fuller challenge stands.
SEVERAL = [PersonalTokens(), PersonalTokens(), Custom("Token\r\n"), Custom(METADATA)]
INVALID = 'error="invalid_token", error_description'


@pytest.mark.parametrize(
    ("entries", "error", "values"),
    [
        (TOKENS, NotAuthenticated(), ["Bearer"]),
        (TOKENS, AuthenticationFailed(), [f'Bearer {INVALID}="The credential is not valid."']),
        # A description cannot break out of its header.
        (
            TOKENS,
            AuthenticationFailed('a" b\\\r\nSet-Cookie: x=1 é'),
            [f'Bearer {INVALID}="a bSet-Cookie: x=1 "'],
        ),
        (ANYBODY, AuthenticationFailed("No."), [f'Bearer {INVALID}="No."']),
        (SEVERAL, NotAuthenticated(), ["Token", METADATA]),
        (SEVERAL, AuthenticationFailed("No."), ["Token", f'{METADATA}, {INVALID}="No."']),
    ],
)
def test_a_challenge_calls_a_bad_credential_invalid_and_names_no_error_without_one(
    configure, entries, error, values
):
    configure(AUTHENTICATORS=entries)

    assert challenge(error) == values


# Guessing


def fail(present, times, **extra):
    for number in range(times):
        with pytest.raises(AuthenticationFailed):
            authenticate(present(f"Bearer mcp_{number}", **extra))


@pytest.mark.django_db
def test_an_address_that_guesses_is_told_to_wait_and_people_with_a_good_token_go_on(
    settings, present, secret, clock
):
    authenticate(present(f"Bearer {secret}"))
    # The change of the setting forgets everybody, and to ask without a credential is no guess.
    settings.MCP_DJANGO = {"AUTHENTICATORS": [PersonalTokens(), Custom()]}
    assert cached_principal(headers_of(secret)) is None
    for _ in range(101):
        with pytest.raises(NotAuthenticated):
            authenticate(present())
    fail(present, 100)

    # A credential that can be guessed is not even looked at then.
    for wrong in ("Bearer mcp_x", "Custom ada"):
        with pytest.raises(TooManyRequests) as refused:
            authenticate(present(wrong))
        assert refused.value.retry_after == 60
    assert authenticate(present(f"Bearer {secret}")).user.username == "alice"
    fail(present, 1, REMOTE_ADDR="203.0.113.9")
    clock.now += 60
    fail(present, 1)


# Logs


@pytest.mark.django_db
def test_the_secret_is_in_no_log_at_debug(present, secret, caplog):
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="django.db.backends")

    with CaptureQueriesContext(connection):
        authenticate(present(f"Bearer {secret}"))
        with pytest.raises(AuthenticationFailed):
            authenticate(present(f"Bearer {secret}x"))

    assert "SELECT" in caplog.text
    assert "A credential from 127.0.0.1 was refused." in caplog.text
    assert secret not in caplog.text


@pytest.mark.django_db
def test_a_change_while_a_credential_is_looked_up_makes_the_answer_void(present, alice, secret):
    def change(execute, sql, *rest):
        """Another thread takes rights away between the look-up and the remembering."""
        answer = execute(sql, *rest)
        if sql.startswith("SELECT") and "personaltoken" in sql:
            alice.save(update_fields=["last_name"])
        return answer

    with connection.execute_wrapper(change):
        authenticate(present(f"Bearer {secret}"))

    assert len(cache) == 0


def test_a_credential_does_not_appear_in_error_reports(settings, present):
    class Broken(Custom):
        def authenticate(self, request):
            raise RuntimeError

    settings.MCP_DJANGO = {"AUTHENTICATORS": [Broken()]}
    with pytest.raises(RuntimeError) as broken:
        authenticate(present("Custom sesame"))

    reporter = ExceptionReporter(present(), broken.type, broken.value, broken.tb)
    ours = [one for one in reporter.get_traceback_frames() if "authenticate.py" in one["filename"]]
    variables = [frame["vars"] for frame in ours if not frame["filename"].startswith(__file__)]

    assert "configured" in repr(variables)
    assert "sesame" not in repr(variables)


# Names that settings may import

PROBE = """
from mcp_django.auth import DRF, Anonymous, Authenticator, DevUser, JWTBearer, PersonalTokens
DRF("rest_framework.authentication.TokenAuthentication"), DevUser("a"), Anonymous()
JWTBearer("https://login.example.com", jwks_url="https://login.example.com/keys", user="a.b")
import sys
late = {"mcp_django.models", "django.contrib.auth.models", "rest_framework", "jwt"}
print(sorted(late & set(sys.modules)))
"""


@pytest.mark.thorough
def test_settings_may_import_every_authenticator():
    done = finished("-W", "error", "-c", PROBE)

    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_every_public_name_is_there_and_no_other():
    assert all(getattr(auth, name) for name in auth.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        auth.Nothing  # noqa: B018
