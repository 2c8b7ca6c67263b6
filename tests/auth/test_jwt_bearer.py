"""Tokens of an authorization server that runs elsewhere, as a site accepts them."""

from __future__ import annotations

import base64
import json
import time
from contextlib import nullcontext
from itertools import repeat
from threading import Event

import pytest
from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured

from mcp_django.auth import JWTBearer, jwt_bearer, resource
from mcp_django.auth.authenticate import authenticate, challenge
from mcp_django.auth.authenticators import prepared
from mcp_django.auth.jwt_bearer import KEYS_LIFETIME, KEYS_RENEWAL, LEEWAY, PAUSE
from mcp_django.exceptions import AuthenticationFailed, IssuerUnavailable, NotAuthenticated
from mcp_django.models import PersonalToken
from mcp_django.protocol.revisions import Revision
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient, WSGIClient
from tests.services import is_there
from tests.spec import requirement
from tests.waiting import PATIENCE, wait_until
from tests.workshop.exposed import exposed

if is_there("jwt"):
    import jwt

    from tests.auth.issuer import Issuer, Key

pytestmark = [pytest.mark.needs("jwt"), pytest.mark.django_db]

SAME = r"^The credential is not valid\.$"
USER = "tests.auth.issuer.user_of"


@pytest.fixture(scope="module")
def running():
    issuer = Issuer()
    issuer.start()
    yield issuer
    issuer.stop()


@pytest.fixture
def issuer(running):
    """It answers again, with its first key alone."""
    running.says, running.keys = None, running.keys[:1]
    return running


@pytest.fixture(autouse=True)
def use(settings, issuer, monkeypatch, clock):
    """The site's setting, perhaps with other options; returns what was made."""
    monkeypatch.setattr(jwt_bearer, "PATIENCE", PATIENCE)

    def configure(**options):
        found = JWTBearer(issuer.url, **{"jwks_url": issuer.jwks_url, "user": USER, **options})
        found.signing_keys.clock = clock
        settings.MCP_DJANGO = {
            "PUBLIC_URL": "https://shop.example.com",
            "AUTHENTICATORS": ["mcp_django.auth.PersonalTokens", found],
        }
        return found

    resource.routed_to("/mcp")
    configure()
    return configure


@pytest.fixture
def enter(present):
    """The principal of somebody with this token."""
    return lambda token: authenticate(present(f"Bearer {token}"))


@pytest.fixture
def refuse(enter):
    """In the same words, whatever the reason."""

    def refuse(token, *, match=SAME):
        with pytest.raises(AuthenticationFailed, match=match):
            enter(token)

    return refuse


def test_a_token_of_the_issuer_stands_for_a_user_of_the_site(issuer, alice, enter):
    ends = int(time.time()) + 100

    principal = enter(issuer.token(exp=ends))

    assert principal.user == alice
    assert principal.scopes == {"mcp:read"}
    assert principal.method == "jwt"
    assert principal.client == "jwt:claude"
    assert principal.expires_at.timestamp() == ends + LEEWAY


READ, HERE = {"mcp:read"}, "https://shop.example.com/mcp"
API = {"audience": "api://5b1f"}
#: Options of the setting, changes of claims and of the header `typ`, and the scopes that the token
#: is good for, or the end of the refusal, which else is the same for all.
TOKENS = [
    ({}, {"scope": "mcp:read mcp:write"}, {"mcp:read", "mcp:write"}),
    ({}, {"scope": None, "scp": "mcp:delete other"}, {"mcp:delete"}),
    ({}, {"scope": None, "scp": ["mcp:action", 5]}, {"mcp:action"}),
    # A site may say what every token is good for.
    ({"scopes": ["mcp:read", "mcp:write"]}, {"scope": None}, {"mcp:read", "mcp:write"}),
    *(
        ({}, {"scope": scope}, r"Ask for mcp:read\.$")
        for scope in ("", "openid", None, 5, {"mcp:read": True})
    ),
    (API, {"aud": ["account", "api://5b1f"]}, READ),
    (API, {}, SAME),
    *(
        ({}, changes, SAME)
        for changes in (
            *({"aud": audience} for audience in (None, [], {HERE: 1}, "https://shop.example.com")),
            *({"aud": audience} for audience in (f"{HERE}/", f"{HERE}/internal")),
            {"aud": ["https://other.example.com/mcp"]},
            *({"exp": end} for end in (None, 1, "soon", 1e300, float("inf"))),
            {"nbf": 4_000_000_000},
            *({"preferred_username": name} for name in ("nobody", None)),
            *({"typ": kind} for kind in ("ID", "Refresh")),
            {"at_hash": "x"},
        )
    ),
    # An ID token is no access token, however it is dressed.
    *(
        ({"scopes": ["mcp:read"]}, {"headers": {"typ": kind}, **changes}, found)
        for kind, changes, found in (
            *((kind, {}, SAME) for kind in ("logout+jwt", "dpop+jwt", "id+jwt")),
            ("at+jwt", {"scope": None, "nonce": "n"}, READ),
            ("JWT", {}, READ),
            ("JWT", {"scope": None, "scp": "mcp:read"}, READ),
            *(("JWT", changes, SAME) for changes in ({"scope": None}, {"nonce": "n"})),
            ("JWT", {"nonce": "n", "typ": "Bearer"}, READ),
            ("JWT", {"scope": None, "token_use": "access"}, READ),
            *(("JWT", changes, SAME) for changes in ({"token_use": "id"}, {"typ": "ID"})),
        )
    ),
]


@pytest.mark.parametrize(
    ("options", "changes", "found"),
    TOKENS,
    ids=lambda value: " ".join(sorted(value)) if isinstance(value, set) else str(value),
)
def test_a_token_is_good_for_its_scopes_if_it_lets_programs_in_here_and_now(
    use, issuer, alice, enter, refuse, options, changes, found
):
    use(**options)
    token = issuer.token(**changes)

    if isinstance(found, str):
        refuse(token, match=found)
    else:
        assert enter(token).scopes == found


def part(value):
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def by_nobody(issuer):
    header = json.dumps({"alg": "none", "kid": "one"}).encode()
    return f"{part(header)}.{part(json.dumps(issuer.claims()).encode())}."


def by_what_everybody_knows(issuer):
    modulus, headers = issuer.keys[0].public["n"], {"kid": "one", "typ": "at+jwt"}
    return jwt.encode(issuer.claims(), modulus, algorithm="HS256", headers=headers)


FORGERIES = {
    "of a known name": lambda issuer: issuer.token(key=Key("one")),
    "of an unknown name": lambda issuer: issuer.token(key=Key("two")),
    "by nobody": by_nobody,
    "by what everybody knows": by_what_everybody_knows,
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_a_token_that_somebody_else_signed_is_refused(issuer, alice, refuse, forge):
    refuse(forge(issuer))


HEAD, HUGE = part(b'{"alg":"RS256"}'), b'{"iss":' + b"9" * 1400 + b"}"


@pytest.mark.parametrize(
    "text",
    [
        *("opaque", "..", "a.b.c", "mcp_x.y.z", "..\x00", "of another issuer"),
        *(f"{HEAD}.{part(body)}.x" for body in (b"[" * 1500, HUGE)),
    ],
)
def test_what_is_no_token_of_the_issuer_is_refused_without_asking_it(issuer, refuse, text):
    before = issuer.asked

    refuse(issuer.token(iss="https://evil.example.com") if " " in text else text)

    assert issuer.asked == before


def test_a_user_who_may_not_log_in_is_refused_and_none_is_created(issuer, alice, refuse):
    get_user_model().objects.update(is_active=False)

    for name in ("alice", "mallory"):
        refuse(issuer.token(preferred_username=name))

    assert get_user_model().objects.count() == 1


# Keys, and an authorization server that is unwell


UNWELL = [500, 404, 302, b"{", b"[]", b"{}", b'{"keys": []}', b'{"keys": [{}]}', b"\xff"]
UNWELL += [b'{"keys": 5}', b'{"keys": [{"kty": 5}]}', b'{"keys": ' + b"[" * 100_000]


def unknown(issuer, number=0):
    """A token whose key nobody has."""
    return issuer.token(headers={"kid": f"made up {number}"})


def test_a_new_key_is_found_and_unknown_ones_do_not_flood_the_issuer(
    issuer, alice, enter, refuse, clock
):
    enter(issuer.token())
    issuer.keys = [*issuer.keys, Key("new")]
    clock.now += PAUSE

    assert enter(issuer.token()).user == alice

    clock.now += PAUSE
    before = issuer.asked
    for number in range(20):
        refuse(unknown(issuer, number))
    assert issuer.asked - before == 1


@pytest.mark.parametrize("says", UNWELL)
def test_an_issuer_that_does_not_answer_with_keys_is_asked_once_in_a_while_and_a_key_stays_good(
    issuer, alice, enter, clock, says
):
    issuer.says, before = says, issuer.asked

    for number in range(5):
        token = issuer.token(jti=str(number))
        with pytest.raises(IssuerUnavailable, match="did not answer"):
            enter(token)
    assert issuer.asked - before == 1

    issuer.says = None
    clock.now += PAUSE
    assert enter(issuer.token()).user == alice
    # A key that is there is good for an hour, whatever becomes of others.
    issuer.says = says
    clock.now += KEYS_LIFETIME - 1
    with pytest.raises(IssuerUnavailable):
        enter(unknown(issuer))
    assert enter(issuer.token(jti="a")).user == alice
    clock.now += PAUSE
    with pytest.raises(IssuerUnavailable):
        enter(issuer.token(jti="b"))


def test_nobody_waits_for_an_issuer_that_hangs_but_for_a_moment_nor_for_new_keys(
    issuer, alice, enter, clock, monkeypatch
):
    enter(issuer.token())
    before = issuer.asked
    monkeypatch.setattr(jwt_bearer, "PATIENCE", 0)

    # Keys are asked for again before they expire.
    clock.now += KEYS_RENEWAL
    assert enter(issuer.token(jti="renewed")).user == alice
    wait_until(lambda: issuer.asked == before + 1)

    clock.now += PAUSE
    goes_on, before = Event(), issuer.asked
    issuer.says = iter(lambda: b"" if goes_on.wait(PATIENCE) else b" ", b"")
    try:
        for number in range(3):
            with pytest.raises(IssuerUnavailable):
                enter(unknown(issuer, number))
            assert enter(issuer.token(jti=str(number))).user == alice
            clock.now += PAUSE
        wait_until(lambda: issuer.asked == before + 1)
    finally:
        goes_on.set()


@pytest.mark.parametrize("is_slow", [False, True])
def test_an_answer_without_end_is_left(issuer, alice, enter, monkeypatch, is_slow):
    """Also one that comes byte by byte, each of them in time."""
    monkeypatch.setattr(jwt_bearer, "FETCH_TIMEOUT", 0.5 if is_slow else PATIENCE)
    tick = Event()
    slowly = (b" " for _ in repeat(0) if not tick.wait(0.1))
    issuer.says = slowly if is_slow else repeat(b" " * 4096)

    with pytest.raises(IssuerUnavailable, match="too long"):
        enter(issuer.token())


# What a site may not configure.


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        *(({"algorithms": [name]}, f"cannot use .'{name}'.") for name in ("HS256", "none")),
        ({"algorithms": []}, "cannot use no algorithm"),
        *(
            ({"jwks_url": url}, "Use an https address")
            for url in ("http://login.example.com/keys", "file:///etc/keys", "https://[login")
        ),
        ({"scopes": ["mcp:everything"]}, "unknown scope 'mcp:everything'"),
        ({"user": "tests.auth.issuer.nobody"}, "cannot be imported"),
        ({"user": 5}, "so it is a function"),
        ({}, "Set PUBLIC_URL, or say audience"),
        # Keys may come from the same machine.
        *(
            ({"jwks_url": f"http://{host}:8080/keys"}, None)
            for host in ("localhost", "127.0.0.1", "[::1]")
        ),
    ],
)
def test_a_setting_that_would_let_strangers_in_is_refused(use, settings, options, sentence):
    authenticator = use(**options)
    if not options:
        settings.MCP_DJANGO = {}

    refuses = pytest.raises(ImproperlyConfigured, match=sentence)
    with nullcontext() if sentence is None else refuses:
        prepared(authenticator)


def test_without_pyjwt_the_check_says_what_to_install(use, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jwt", None)

    with pytest.raises(ImproperlyConfigured, match=r'pip install "django-mcp-orm\[jwt\]"'):
        prepared(use())


# What clients learn before they have a token.


@pytest.mark.parametrize("is_served", [True, False])
def test_a_challenge_says_where_people_sign_in_if_that_is_served_and_what_to_ask_for(
    settings, is_served
):
    settings.ROOT_URLCONF = settings.ROOT_URLCONF if is_served else "tests.workshop.urls"

    address = "https://shop.example.com/.well-known/oauth-protected-resource/mcp"
    named = f'resource_metadata="{address}", ' if is_served else ""
    assert challenge(NotAuthenticated()) == [f'Bearer {named}scope="mcp:read"']


def test_a_token_opens_the_endpoint_and_an_outage_of_its_issuer_does_not_blame_it(
    use, issuer, alice
):
    # By a clock that is a little behind.
    client = CheckedClient(token=issuer.token(exp=int(time.time()) - LEEWAY // 2))

    assert not any(client.call_tool("list_models").is_error for _ in range(2))

    use()
    issuer.says = 500
    with pytest.raises(ProtocolFailure, match="cannot be checked at the moment") as refused:
        CheckedClient(token=issuer.token(jti="2")).call_tool("list_models")
    assert refused.value.status == 503


# Scopes that a token lacks, and its user could grant


@pytest.fixture
def root(configure, alice):
    """May do everything in the admin of the workshop."""
    configure(ADMIN_SITES=["workshop"])
    alice.is_staff = alice.is_superuser = True
    alice.save()
    with exposed():
        yield alice


@pytest.fixture
def notes(add_tool):
    """What a tool noted that writes."""
    noted = []

    def note() -> str:
        """Note something."""
        noted.append(1)
        return "done"

    add_tool(note, read_only=False)
    return noted


@requirement("authorization:insufficient-scope")
@pytest.mark.parametrize(
    ("granted", "tool", "asked"),
    [
        ("mcp:read", "create_record", "mcp:read mcp:write"),
        ("mcp:read", "delete_record", "mcp:read mcp:delete"),
        ("mcp:read mcp:write", "delete_record", "mcp:read mcp:write mcp:delete"),
        ("mcp:action", "find_records", "mcp:read mcp:action"),
        ("mcp:action", "create_record", "mcp:write mcp:action"),
        ("mcp:read", "note", "mcp:read mcp:action"),
    ],
)
@pytest.mark.parametrize("revision", Revision)
@pytest.mark.parametrize("transport", [CheckedClient, WSGIClient])
def test_a_call_that_needs_more_scopes_is_answered_with_all_to_ask_for(
    issuer, root, notes, transport, revision, granted, tool, asked
):
    client = transport(token=issuer.token(scope=granted), revision=revision)

    answer = client.post_request("tools/call", {"name": tool, "arguments": {}})

    assert tool in client.tools()
    assert answer.status == 403
    assert b"Sign in again and allow it." in answer.body
    assert notes == []
    assert answer.headers["www-authenticate"] == (
        'Bearer error="insufficient_scope", resource_metadata="https://shop.example.com/'
        f'.well-known/oauth-protected-resource/mcp", scope="{asked}"'
    )


@pytest.mark.parametrize(
    ("tool", "changes"),
    [
        ("list_models", {}),
        ("no_such_tool", {}),
        ("create_record", {"is_superuser": False}),
        ("create_record", {"READ_ONLY": True}),
        # Other credentials have the scopes that they have.
        ("create_record", {"scopes": ["mcp:read"]}),
        ("create_record", {"is_personal": True}),
    ],
)
def test_no_scope_is_asked_for_where_none_would_help(use, issuer, root, configure, tool, changes):
    if "scopes" in changes:
        use(scopes=changes["scopes"])
    configure(ADMIN_SITES=["workshop"], READ_ONLY=changes.get("READ_ONLY", False))
    root.is_superuser = changes.get("is_superuser", True)
    root.save()
    _, secret = PersonalToken.create(user=root, name="x", scopes=["mcp:read"])
    client = CheckedClient(token=secret if "is_personal" in changes else issuer.token())

    answer = client.post_request("tools/call", {"name": tool, "arguments": {}})

    assert answer.status == 200
    assert "www-authenticate" not in answer.headers
    assert (tool in client.tools()) == (tool == "list_models")
