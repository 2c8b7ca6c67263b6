"""What an attacker tries: a clear OAuth error each time, and nothing is stored."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from mcp_django.exposure.options import looks_secret
from tests.clients import browser_of
from tests.oauth.flow import CALLBACK, RESOURCE, Flow, query_of
from tests.services import is_there

if is_there("oauth"):
    from mcp_django.oauth import registration
    from mcp_django.oauth.models import Authorization
    from mcp_django.oauth.toolkit import (
        get_access_token_model,
        get_application_model,
        get_grant_model,
    )

pytestmark = pytest.mark.needs("oauth")


def nothing_is_stored():
    stored = (Authorization, get_grant_model(), get_access_token_model())
    return not any(model.objects.exists() for model in stored)


# The page where people consent.

REFUSED = [
    *(
        ({"resource": resource}, "invalid_target")
        for resource in (
            *("https://evil.example/mcp", "http://testserver", "http://testserver/mcp/internal"),
            *("http://testserver/mcp/../mcp", "http://testserver@evil.example/mcp"),
            *("http://testserver/mcp#x", [RESOURCE, "https://evil.example/mcp"]),
        )
    ),
    ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
    *(({"code_challenge_method": method}, "invalid_request") for method in ("plain", None)),
    *(({"scope": scope}, "invalid_scope") for scope in ("introspection", "mcp:read admin")),
    ({"response_type": "token"}, "unauthorized_client"),
    ({"response_type": "id_token"}, "unsupported_response_type"),
]


@pytest.mark.parametrize(("changes", "error"), REFUSED)
def test_a_bad_request_goes_back_to_the_client_before_a_person_is_asked(flow, changes, error):
    response = flow.ask(**changes)

    assert response.status_code == 302
    assert response.headers["Location"].startswith(f"{CALLBACK}?")
    answer = query_of(response.headers["Location"])
    assert answer["error"] == error
    assert answer["state"] == "s1"
    assert answer["iss"] == "http://testserver"
    assert nothing_is_stored()


REDIRECTS = [
    *(
        f"https://claude.example{rest}"
        for rest in ("/callback/", "/callback/../x", "/callback?x=1")
    ),
    "https://claude.example:8443/callback",
    "https://claude.example.evil.example/callback",
    "https://claude.example@evil.example/callback",
    "http://claude.example/callback",
    "https://CLAUDE.example.evil/callback",
    "javascript:alert(1)",
]


@pytest.mark.parametrize("redirect", REDIRECTS)
@pytest.mark.parametrize("more", [{}, {"prompt": "none"}])
def test_nobody_is_sent_to_an_address_that_the_client_has_not_named(flow, redirect, more):
    if more:
        flow.browser.logout()

    response = flow.ask(redirect_uri=redirect, **more)

    assert response.status_code == 400
    assert "Location" not in response.headers
    assert nothing_is_stored()


@pytest.mark.parametrize("loopback", ["127.0.0.1", "localhost", "[::1]"])
def test_a_program_on_the_own_computer_may_listen_on_any_port(new_client, browser, loopback):
    flow = Flow(new_client(redirect_uris=f"http://{loopback}/callback"), browser=browser)

    page = flow.ask(redirect_uri=f"http://{loopback}:43111/callback")

    assert page.status_code == 200
    assert "a program on this computer" in page.content.decode()
    other = flow.ask(redirect_uri=f"http://{loopback}:43111/elsewhere")
    assert other.status_code == 400


@pytest.mark.parametrize(
    "changes",
    [
        {"resource": "https://evil.example/mcp"},
        {"redirect_uri": "https://evil.example/callback"},
        {"client_id": "https://evil.example/client.json"},
        {"scope": "mcp:read admin", "granted": ["mcp:read", "admin"]},
        {"code_challenge": None},
        {"code_challenge_method": "plain"},
    ],
)
def test_what_the_page_sends_is_checked_again(flow, new_client, changes):
    new_client(
        client_id="https://evil.example/client.json", redirect_uris="https://evil.example/x"
    )
    page = flow.ask()

    response = flow.answer(page, **changes)

    assert "code=" not in response.headers.get("Location", "")
    assert nothing_is_stored()


def test_no_other_site_can_press_the_button_and_a_name_is_shown_as_text(new_client, alice):
    strict = browser_of(alice, enforce_csrf_checks=True)
    flow = Flow(new_client(name="<script>x</script>"), browser=browser_of(alice))
    page = flow.ask()

    response = Flow(flow.application, browser=strict).answer(page)

    assert "<script>x" not in page.content.decode()
    assert response.status_code == 403
    assert nothing_is_stored()


@pytest.mark.parametrize("changes", [{}, {"client_id": "nobody"}, {"redirect_uri": "https://x/"}])
def test_the_page_is_in_no_frame_and_in_no_cache(flow, settings, changes):
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "clickjacking" not in name]

    headers = flow.ask(**changes).headers

    assert headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "no-store" in headers["Cache-Control"]
    assert headers["Referrer-Policy"] == "same-origin"


def test_a_page_of_the_toolkit_gives_no_code_for_the_endpoint(flow, rf, alice):
    from oauth2_provider.views import AuthorizationView

    request = rf.post("/o/authorize/", flow.parameters() | {"allow": "1"})
    request.user, request._dont_enforce_csrf_checks = alice, True

    response = AuthorizationView.as_view()(request)

    assert query_of(response.headers["Location"])["error"] == "access_denied"
    assert nothing_is_stored()


# Codes and tokens.

REFRESH, EVIL = {"grant_type": "refresh_token"}, "https://evil.example/mcp"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_verifier": "w" * 43}, "invalid_grant"),
        ({"code_verifier": None}, "invalid_request"),
        ({"redirect_uri": "https://claude.example/other"}, "invalid_request"),
        *(({"resource": resource}, "invalid_target") for resource in (EVIL, [RESOURCE, EVIL])),
        ({"client_id": "other"}, "invalid_grant"),
        ({"client_id": "nobody"}, "invalid_client"),
        *(({"code": code}, "invalid_grant") for code in ("x", "x\0")),
        # A minute later.
        ({"late": "1"}, "invalid_grant"),
        (REFRESH | {"scope": "mcp:read mcp:write"}, "invalid_scope"),
        (REFRESH | {"resource": "https://evil.example/mcp"}, "invalid_target"),
        (REFRESH | {"client_id": "other"}, "invalid_grant"),
    ],
)
def test_a_code_and_a_refresh_token_are_good_for_the_client_and_the_request_they_were_made_for(
    flow, new_client, changes, error
):
    other = new_client(client_id="other")
    # Another client does not end a token, either.
    tokens = flow.tokens()
    Flow(other).post("/oauth/revoke", token=tokens["access_token"])
    code = changes.get("code", flow.code())
    if "late" in changes:
        get_grant_model().objects.update(expires=timezone.now() - timedelta(seconds=1))

    sent = {"code": code, "refresh_token": tokens["refresh_token"], **changes}
    response = flow.exchange(code, **{**sent, "code": code})

    assert response.status_code in {400, 401}
    assert response.headers["Content-Type"] == "application/json"
    assert response.json()["error"] == error
    assert get_access_token_model().objects.count() == 1
    assert flow.call(tokens["access_token"]).status_code == 200


@pytest.mark.parametrize(
    "fields",
    [
        {"grant_type": "password", "username": "alice", "password": "correct horse"},
        {"grant_type": "client_credentials"},
        {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": "x"},
        {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": "x"},
    ],
)
@pytest.mark.parametrize("is_public", [True, False])
def test_a_client_that_nobody_has_checked_needs_a_person(new_client, browser, fields, is_public):
    kind = "public" if is_public else "confidential"
    client = new_client(source="dcr", client_id="dcr", client_type=kind, client_secret="secret")
    secret = None if is_public else "secret"

    response = Flow(client, browser=browser).post(
        "/oauth/token", client_secret=secret, scope="mcp:read", **fields
    )

    assert 400 <= response.status_code < 500
    assert nothing_is_stored()


@pytest.mark.parametrize(
    "changes",
    [
        {"resource": []},
        *({"resource": [f"http://testserver{path}"]} for path in ("", "/mcp/internal")),
        {"resource": [RESOURCE, "https://api.example"]},
        *({"scope": scope} for scope in ("read write", "oauth2_provider:registration")),
        *({name: None} for name in ("user", "application")),
    ],
)
def test_a_token_that_was_made_for_something_else_opens_nothing(flow, changes):
    token = flow.tokens()["access_token"]
    row = get_access_token_model().objects.get()
    for name, value in changes.items():
        setattr(row, name, value)
    row.save()

    response = flow.call(token)

    assert response.status_code == 401
    assert 'error="invalid_token"' in response.headers["WWW-Authenticate"]


def test_a_token_travels_in_the_header_and_nowhere_else(flow):
    token = flow.tokens()["access_token"]

    answers = [
        flow.call(None, path=f"/mcp?access_token={token}"),
        flow.program.post("/mcp", {"access_token": token}),
        flow.browser.post("/mcp"),
    ]

    assert [answer.status_code for answer in answers] == [400, 401, 401]


@pytest.mark.parametrize("path", ["introspect", "device", "applications", "authorized_tokens"])
def test_nothing_else_of_the_toolkit_is_served(flow, path):
    assert flow.browser.get(f"/oauth/{path}/").status_code == 404


def test_no_secret_stands_in_the_database_or_in_a_log(flow, caplog):
    caplog.set_level("DEBUG")
    code = flow.code()
    tokens = flow.exchange(code).json()
    secrets = {code, tokens["access_token"], tokens["refresh_token"]}
    flow.refresh(tokens["refresh_token"])
    flow.call(tokens["access_token"])

    logged = "\n".join(
        f"{record.getMessage()} {record.args}"
        for record in caplog.records
        if not record.name.startswith("django.db")
    )
    rows = [
        str(row)
        for model in (get_access_token_model(), Authorization, get_application_model())
        for row in model.objects.values()
    ]
    assert logged
    assert [secret for secret in secrets if secret in logged] == []
    assert [secret for secret in secrets if secret in "\n".join(rows)] == []


def test_no_assistant_reads_what_people_allowed(db):
    models = (Authorization, get_access_token_model(), get_application_model())

    assert all(looks_secret(model, field.name) for model in models for field in model._meta.fields)


# Registration.


@pytest.fixture
def register(configure, db):
    configure(REGISTRATION="cimd+dcr")

    def send(body, **extra):
        sent = body if isinstance(body, (bytes, str)) else json.dumps(body)
        client = Client(enforce_csrf_checks=True)
        return client.post("/oauth/register", sent, content_type="application/json", **extra)

    return send


def test_a_client_registers_itself_and_is_advertised_where_that_is_on(register, browser):
    response = register(
        {
            "client_name": "Cu\u202ersor",
            "redirect_uris": ["http://127.0.0.1/callback", "cursor://callback"],
            "grant_types": ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"],
            "token_endpoint_auth_method": "none",
            "logo_uri": "https://evil.example/logo.png",
        }
    )

    stored = get_application_model().objects.get()
    answer = response.json()
    assert response.status_code == 201
    assert answer.pop("client_id_issued_at")
    assert answer == {
        "client_id": stored.client_id,
        "client_name": "Cursor",
        "redirect_uris": ["http://127.0.0.1/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    assert (stored.client_type, stored.user) == ("public", None)
    metadata = browser.get("/.well-known/oauth-authorization-server").json()
    assert metadata["registration_endpoint"] == "http://testserver/oauth/register"


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_a_client_that_asks_for_a_secret_gets_one_and_needs_it(register, browser, method):
    answer = register({"redirect_uris": [CALLBACK], "token_endpoint_auth_method": method}).json()
    client = get_application_model().objects.get()
    flow = Flow(client, browser=browser)

    assert answer["client_secret_expires_at"] == 0
    assert answer["client_secret"] != client.client_secret
    assert flow.exchange(flow.code()).status_code == 401
    tokens = flow.exchange(flow.code(), client_secret=answer["client_secret"])
    assert tokens.status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        *(
            (body, 400, "invalid_client_metadata")
            for body in (
                b"\xff", b"[]", b"[" * 10_000, b'{"a":' * 2_000, {}, {"redirect_uris": "x"},
            )
        ),
        (b"{" + b" " * 20_000 + b"}", 413, "invalid_client_metadata"),
        *(
            ({"redirect_uris": uris}, 400, "invalid_redirect_uri")
            for uris in ([], [CALLBACK] * 21)
        ),
        *(
            ({"redirect_uris": [uri]}, 400, "invalid_redirect_uri")
            for uri in (
                *("http://evil.example/x", "https://a.example/x#y", "https://*.example/x"),
                *("https://a@b.example/x", "https://a.example/ https://b", "javascript:alert(1)"),
                "https://[::1/x",
            )
        ),
        *(
            (
                {"redirect_uris": [CALLBACK], f"{kind}_types": [name]},
                400,
                "invalid_client_metadata",
            )
            for kind, name in [
                ("grant", "client_credentials"),
                ("grant", "password"),
                ("response", "token"),
            ]
        ),
    ],
)  # fmt: skip
def test_bad_metadata_register_nobody(register, body, status, error):
    response = register(body)

    assert (response.status_code, response.json()["error"]) == (status, error)
    assert not get_application_model().objects.exists()


def test_one_address_registers_ten_clients_in_a_minute(register):
    answers = [register({"redirect_uris": [CALLBACK]}).status_code for _ in range(12)]

    assert answers == [201] * 10 + [429] * 2
    assert get_application_model().objects.count() == 10


def test_clients_that_nobody_used_are_gone_after_a_day(register, browser):
    metadata = {"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"}

    def client_id():
        return register(metadata).json()["client_id"]

    model = get_application_model()
    unused, used = client_id(), client_id()
    Flow(model.objects.get(client_id=used), browser=browser).tokens()
    model.objects.update(created=timezone.now() - registration.UNUSED - timedelta(seconds=1))

    new = client_id()

    assert set(model.objects.values_list("client_id", flat=True)) == {used, new}
    assert unused not in {used, new}


@pytest.mark.parametrize(
    ("setting", "source", "status"),
    [
        ("cimd+dcr", "dcr", 200),
        ("cimd", "dcr", 400),
        ("cimd", "cimd", 200),
        ("manual", "cimd", 400),
        ("manual", "manual", 200),
    ],
)
def test_a_client_that_the_site_does_not_want_any_more_gets_nothing(
    new_client, browser, register, configure, setting, source, status
):
    configure(REGISTRATION="cimd+dcr")
    flow = Flow(new_client(source=source), browser=browser)
    tokens = flow.tokens()

    configure(REGISTRATION=setting)

    registered = register({"redirect_uris": [CALLBACK]})

    assert registered.status_code == (201 if setting == "cimd+dcr" else 404)
    # People are asked each time.
    assert flow.ask(approval_prompt="auto").status_code == status
    assert flow.ask().status_code == status
    assert (flow.refresh(tokens["refresh_token"]).status_code == 200) is (status == 200)
