"""Clients that publish a document about themselves: who gets in, and what is read for whom."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.utils import timezone

from tests.oauth.flow import CALLBACK, Flow
from tests.services import is_there

if is_there("jwt") and is_there("oauth"):
    from mcp_django.oauth.toolkit import cimd, get_application_model
    from tests.oauth.documents import HOST, Host, LocalDocuments, write_certificate

pytestmark = pytest.mark.needs("oauth", "jwt")

PUBLIC = {"token_endpoint_auth_method": "none", "response_types": ["code"]}
CODE = ["authorization_code", "refresh_token"]
OTHER_GRANT = "urn:ietf:params:oauth:grant-type"
#: As these clients publish them, shortened to what is read.
DOCUMENTS = {
    "Claude": PUBLIC
    | {
        "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"],
        "grant_types": [*CODE, f"{OTHER_GRANT}:jwt-bearer"],
    },
    "Claude Code": PUBLIC
    | {"redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"]},
    "Visual Studio Code": PUBLIC
    | {
        "redirect_uris": ["http://127.0.0.1:33418/", "https://vscode.dev/redirect"],
        "grant_types": [*CODE, f"{OTHER_GRANT}:device_code"],
        "application_type": "native",
    },
    "ChatGPT": {
        "redirect_uris": ["https://chatgpt.com/connector/oauth/abc"],
        "grant_types": CODE,
        "token_endpoint_auth_method": "private_key_jwt",
        "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
        "jwks_uri": "https://chatgpt.com/jwks.json",
    },
    "Cursor": PUBLIC
    | {"redirect_uris": ["cursor://anysphere.cursor-mcp/callback", "http://localhost:8787/cb"]},
}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    certificate = tmp_path_factory.mktemp("tls") / "host.pem"
    write_certificate(certificate)
    host = Host(certificate)
    yield host
    host.stop()


@pytest.fixture
def host(running, settings, db):
    """It publishes Claude's document, and nothing that it did before counts."""
    settings.LOCAL_CERTIFICATE = running.certificate
    settings.OAUTH2_PROVIDER = {"CIMD_METADATA_FETCHER": "tests.oauth.documents.LocalDocuments"}
    cache.clear()
    running.requests.clear()
    running.answer, running.headers, running.status = None, {}, 200
    running.document = {
        "client_id": running.address,
        "client_name": "Claude",
        "redirect_uris": [CALLBACK],
        "token_endpoint_auth_method": "none",
    }
    return running


@pytest.fixture
def published(host, browser):
    """A client that nobody has stored yet."""
    return Flow(get_application_model()(client_id=host.address), browser=browser)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_clients_that_people_use_get_in_by_their_documents(host, published, name):
    document = DOCUMENTS[name]
    host.document = {"client_id": host.address, "client_name": name, **document}
    redirect = next(uri for uri in document["redirect_uris"] if uri.startswith("http"))
    published.application.redirect_uris = redirect

    page = published.ask(redirect_uri=redirect)

    assert page.status_code == 200
    assert f"Allow {name} to use" in page.content.decode()
    assert HOST in page.content.decode()
    code = published.answer(page).headers["Location"].partition("code=")[2].partition("&")[0]
    assert published.exchange(code, redirect_uri=redirect).status_code == 200


def test_a_document_is_read_once_while_it_is_fresh_and_by_nobody_but_the_page(host, published):
    tokens = published.tokens()
    get_application_model().objects.update(cimd_expires_at=timezone.now() - timedelta(days=1))

    published.refresh(tokens["refresh_token"])
    assert host.requests == ["/client.json"]

    published.ask()
    assert host.requests == ["/client.json"] * 2


ANONYMOUS = {
    "code": lambda flow: flow.exchange("x"),
    "refresh": lambda flow: flow.refresh("x"),
    "revoke": lambda flow: flow.post("/oauth/revoke", token="x"),
    "disguised": lambda flow: flow.post("/oauth/token?x=/oauth/authorize", grant_type="password"),
    "page": lambda flow: flow.program.get("/oauth/authorize", flow.parameters()),
    "silent": lambda flow: flow.program.get("/oauth/authorize", flow.parameters(prompt="none")),
}


@pytest.mark.parametrize("name", ANONYMOUS)
def test_no_document_is_read_for_somebody_who_is_not_signed_in(host, published, name):
    ANONYMOUS[name](published)

    assert host.requests == []
    assert not get_application_model().objects.exists()


def test_a_redirect_that_a_document_no_longer_names_gets_no_code(host, published):
    page = published.ask()
    host.document["redirect_uris"] = ["https://claude.example/new"]
    get_application_model().objects.update(cimd_expires_at=timezone.now() - timedelta(days=1))

    assert published.answer(page).status_code == 400
    assert published.ask().status_code == 400


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "https://evil.example/client.json"},
        {"client_name": ""},
        {"client_name": "\u202e\u200b"},
        # Any rule for metadata: see test_bad_metadata_register_nobody.
        {"redirect_uris": ["http://evil.example/x"]},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"client_name": "x" * 20_000},
        # Answers that are no document.
        {"status": 302, "headers": {"Location": "https://169.254.169.254/"}},
        {"status": 404},
        {"headers": {"Content-Type": "text/html"}},
        {"headers": {"Content-Encoding": "gzip"}},
    ],
)
def test_a_bad_document_lets_nobody_in(host, published, changes):
    host.status, host.headers = changes.get("status", 200), changes.get("headers", {})
    host.document |= changes

    assert published.ask().status_code == 400
    assert host.requests == ["/client.json"]
    assert not get_application_model().objects.exists()


HEAD = b"HTTP/1.1 200 OK\r\n"
BODY = HEAD + b"Content-Type: application/json\r\n\r\n"
#: What a host begins with, what it goes on with, and after how many seconds.
ENDLESS = {
    "silent": (b"", b"", 60),
    "headers": (HEAD, b"X: y\r\n", 0.05),
    "body": (BODY, b" ", 0.05),
    "flood": (BODY, b" " * 65536, 0),
}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ENDLESS)
def test_a_document_that_never_ends_holds_nobody(host, published, settings, kind):
    first, more, pause = ENDLESS[kind]

    def answer(handler):
        handler.wfile.write(first)
        with suppress(OSError):
            while not host.over.wait(pause):
                handler.wfile.write(more)

    settings.OAUTH2_PROVIDER = {**settings.OAUTH2_PROVIDER, "CIMD_FETCH_TIMEOUT_SECONDS": 1}
    host.answer = answer

    assert published.ask().status_code == 400


@pytest.mark.parametrize(
    "address",
    [
        *(f"https://{host}/c.json" for host in ("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]")),
        *(f"https://{host}/c.json" for host in ("10.0.0.1", "192.168.1.1", "100.64.0.1")),
        *(f"https://{host}/c.json" for host in ("0.0.0.0", "[fd00::1]", "localhost")),
        "https://169.254.169.254/latest/meta-data",
        "https://[64:ff9b::a9fe:a9fe]/c.json",
        "https://claude.example@127.0.0.1/c.json",
        "https://claude.example/../c.json",
        "https://claude.example",
        "https://claude.example:99999/c.json",
    ],
)
def test_no_address_of_this_network_is_called(host, address):
    with pytest.raises(cimd.CIMDError):
        LocalDocuments().fetch(address)

    assert host.requests == []


def test_a_name_that_leads_elsewhere_the_second_time_is_asked_for_once(host, published):
    asked = []

    class Rebinding(LocalDocuments):
        def resolve(self, name, port):
            asked.append(name)
            return super().resolve(name, port)

    Rebinding().fetch(host.address)

    assert asked == [HOST]
