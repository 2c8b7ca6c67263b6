"""What `mcp_doctor` finds at an address: a real server, and proxies with faults before it."""

from __future__ import annotations

import json
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from datetime import timedelta

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from mcp_django.models import PersonalToken, ServerSettings
from mcp_django.testing import ProtocolFailure
from tests.management.faulty_proxy import Fault, FaultyProxy
from tests.served import SocketClient, served
from tests.transports.live_servers import free_port, live_server
from tests.waiting import PATIENCE, wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.live,
    pytest.mark.thorough,
    pytest.mark.needs("daphne", "oauth"),
]
has_oauth = pytest.mark.skipif(
    not apps.is_installed("oauth2_provider"), reason="Certificates are made by tests of OAuth."
)
CLIENTS = ["Claude.ai", "ChatGPT", "n8n", "VS Code", "Claude Code", "ElevenLabs", "Kiro"]


@pytest.fixture(scope="module")
def site(django_db_setup):
    """The address of the endpoint, which is where PUBLIC_URL says."""
    environ = {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "SERVED_DATABASE": str(connection.settings_dict["NAME"]),
    }
    with live_server("", module="tests.management.doctor_site", **environ) as (_, port):
        yield f"http://localhost:{port}/mcp"


@pytest.fixture
def token(make_user, monkeypatch):
    """A personal token, in the variable that the command reads."""
    user = make_user("ada", "view_order", is_staff=True)
    token, secret = PersonalToken.create(user=user, name="laptop")
    monkeypatch.setenv("MCP_TOKEN", secret)
    token.secret = secret
    return token


@pytest.fixture
def diagnose(site, configure, capsys):
    """The exit status, and what was found out about an address, which is that of the site."""

    def diagnose(*arguments, url=site):
        configure(PUBLIC_URL=site.removesuffix("/mcp"))
        status = 0
        try:
            # The last of two options counts.
            patience = ["--timeout", str(PATIENCE)]
            call_command("mcp_doctor", "--json", *patience, *filter(None, [url]), *arguments)
        except SystemExit as end:
            status = end.code
        findings = json.loads(capsys.readouterr().out)
        return status, [one for one in findings if one["about"] == (url or site)]

    return diagnose


@pytest.fixture
def proxy(site):
    """Make a proxy with a fault before the site."""
    with ExitStack() as stack:

        def proxy(**fault):
            front = FaultyProxy(site, Fault(**fault))
            return front, stack.enter_context(front.serving())

        yield proxy


def assert_named(findings, sentence, hint):
    """One finding has this in its sentence and that in its hint."""
    named = [hint in one["hint"] for one in findings if sentence in one["sentence"]]
    assert named == [True], findings


def severities(findings):
    return {one["severity"] for one in findings}


def test_where_nothing_is_wrong_every_client_is_asked_signs_in_and_lists_tools(
    diagnose, token, configure
):
    configure(ALLOWED_ORIGINS=["https://chat.example"])

    status, findings = diagnose()

    assert (status, severities(findings)) == (0, {"ok", "info"})
    said = [one["sentence"] for one in findings if one["severity"] == "ok"]
    assert said[0] == "The client is asked for a credential (401), as it should be."
    assert "Pages of https://chat.example may call the endpoint." in said
    assert any("with clients that publish a document" in one for one in said)
    assert "The client connects and lists the tools." in said
    assert any(one.startswith("The token opens ") for one in said)
    assert said[-1] == "The first event of a stream arrives while the stream is open."
    met = [one["clients"] for one in findings if one["clients"]]
    assert [[client.split(" (")[0] for client in one] for one in met] == [CLIENTS] * 2


def test_without_a_token_it_says_how_to_ask_for_more(diagnose, site):
    # Where PUBLIC_URL says.
    status, findings = diagnose(url="")

    assert (status, severities(findings)) == (0, {"ok", "info"})
    assert findings[-1]["hint"] == f"MCP_TOKEN=TOKEN python manage.py mcp_doctor {site}"


JSON, STREAM, BOTH = "application/json", "text/event-stream", "application/json, text/event-stream"
#: The first method; Accept and User-Agent; whether it names the revision and the session later.
HABITS = {
    "claude": ("initialize", "*/*", None, False, False),
    "chatgpt": ("initialize", BOTH, "openai-mcp/1.0.0", True, True),
    "n8n": ("initialize", BOTH, "node", True, True),
    "vscode": ("initialize", f"{STREAM}, {JSON}", "Visual Studio Code/1.124.0", True, True),
    "claude-code": ("server/discover", JSON, "claude-code/2.1.267 (cli)", True, False),
    # The site gives no session to who reads streams alone.
    "elevenlabs": ("initialize", STREAM, None, True, False),
    "kiro": ("initialize", None, None, True, True),
}


@pytest.mark.parametrize("key", HABITS)
def test_each_client_is_imitated_in_what_it_sends(diagnose, proxy, token, key):
    front, url = proxy()

    diagnose("--as", key, url=url)

    (method, first), *_ = front.requests
    later = next(headers for name, headers in front.requests if name == "tools/list")
    assert HABITS[key] == (
        method,
        first.get("accept"),
        first.get("user-agent"),
        "mcp-protocol-version" in later,
        "mcp-session-id" in later,
    )


NGINX_502 = "<html><head><title>502 Bad Gateway</title></head></html>"
#: What the proxy does; a part of the finding, and of what to type.
PROXIES = {
    "another host": (
        Fault(asks={"Host": "internal:8000"}),
        "The site does not serve the host localhost (400).", "proxy_set_header Host $host;",
    ),
    "redirect": (
        Fault(status=308, answers={"Location": "/mcp/"}),
        "The address redirects to http://localhost:", "Give clients the address http://localhost:",
    ),
    "firewall": (
        Fault(status=403, body="<title>Just a moment...</title>"),
        "refuses the request (403). It says: Just a moment...", "Let the firewall pass POST",
    ),
    "media types": (
        Fault(asks={"Accept": "text/html"}), "refused (406)", "pass the header Accept",
    ),
    "nothing behind": (
        Fault(status=502, body=NGINX_502),
        "does not reach the site (502). It says: 502 Bad Gateway", "correct proxy_pass",
    ),
    "too late": (Fault(status=504), "in time (504)", "proxy_read_timeout 75s;"),
    "limits": (Fault(status=429), "too many requests (429)", "CALLS_PER_MINUTE"),
    "moved host": (Fault(status=421), "does not serve the host localhost (421)", "ALLOWED_HOSTS"),
    "a page": (
        Fault(status=200, body="<title>Welcome</title>"),
        "is no message of MCP (200). It says: Welcome", "Give clients the address http://",
    ),
    "another clock": (
        Fault(answers={"Date": "Sat, 01 Jan 2000 00:00:00 GMT"}),
        "seconds behind the clock of this machine", "timedatectl set-ntp true",
    ),
    "challenge dropped": (
        Fault(answers={"WWW-Authenticate": None}),
        "The 401 has no header WWW-Authenticate", "Let the proxy pass WWW-Authenticate",
    ),
    "challenge leads nowhere": (
        Fault(answers={"WWW-Authenticate": 'Bearer resource_metadata="http://localhost:1/x"'}),
        "Clients look for metadata at http://localhost:1/x, and get no answer.", "PUBLIC_URL",
    ),
    "another address": (
        Fault(), "The metadata are about http://localhost:", '"PUBLIC_URL": "http://localhost:',
    ),
    "credential dropped": (
        Fault(asks={"Authorization": None}),
        "The token of ada is refused (401), although it is valid.", "pass Authorization",
    ),
    "routing headers dropped": (
        Fault(asks={"Mcp-Method": None}), "no answer to server/discover", "Mcp-Method",
    ),
    "buffers": (
        Fault(buffers=True),
        "does not arrive while the stream is open: a proxy collects", "proxy_buffering off;",
    ),
    "compresses": (
        Fault(answers={"Content-Encoding": "gzip"}), "Something compresses streams", "gzip off;",
    ),
    "odd name": (
        Fault(tools=("plain", "shop.orders")),
        "Some clients refuse the names of these tools: 'shop.orders'.", "Rename them",
    ),
    "many tools": (
        Fault(tools=tuple(f"tool_{number}" for number in range(41))),
        "There are 41 tools, and some clients leave tools out.", "under Exposed tools",
    ),
    "too many tools": (
        Fault(tools=tuple(f"tool_{number}" for number in range(129))),
        "There are 129 tools, and VS Code takes 128.", "under Exposed tools",
    ),
    "no tools": (Fault(tools=()), "The token opens no tool.", "mcp_list --user USER"),
}  # fmt: skip


@pytest.mark.parametrize("name", PROXIES)
def test_a_fault_on_the_way_is_named_with_what_to_type(diagnose, proxy, token, name):
    fault, sentence, hint = PROXIES[name]
    _, url = proxy(**vars(fault))

    # Only a proxy that buffers keeps it waiting.
    patience = ["--timeout", "10"] if fault.buffers else []
    status, findings = diagnose("--as", "chatgpt", *patience, url=url)

    assert_named(findings, sentence, hint)
    assert status == ("error" in severities(findings))


def expire(token):
    PersonalToken.objects.update(expires_at=timezone.now() - timedelta(days=1))


#: What is wrong at the site; the options; a part of the finding, and of what to type.
SITES = {
    "expired": (expire, [], "because it is expired", "mcp_token create"),
    "revoked": (PersonalToken.revoke, [], "because it is revoked", "mcp_token create"),
    "made elsewhere": (
        lambda token: None, ["--token", "mcp_elsewhere"],
        "This site does not know it.", "mcp_token create",
    ),
    "a strange page": (
        lambda token: None, ["--origin", "https://other.example"],
        "Pages of https://other.example are refused (403).", '"ALLOWED_ORIGINS": ["https://other',
    ),
    "a page of this machine": (
        lambda token: None, ["--origin", "http://localhost:9"],
        "A browser does not let pages of http://localhost:9 call", "answer OPTIONS",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SITES)
def test_what_the_site_refuses_is_named_with_what_to_type(diagnose, token, name):
    make, options, sentence, hint = SITES[name]
    make(token)

    status, findings = diagnose(*options)

    assert_named(findings, sentence, hint)
    assert status == 1


@pytest.fixture
def closed(site, token):
    """The server is closed, and open again for the next test: it looks once in a second."""
    port = int(site.removesuffix("/mcp").rpartition(":")[2])
    client = SocketClient(port, token=token.secret)

    def is_open():
        with suppress(ProtocolFailure):
            return client.discover()
        return False

    row = ServerSettings.objects.create(server="default", closed=True)
    wait_until(lambda: not is_open(), pause=0.1)
    yield
    row.delete()
    wait_until(is_open, pause=0.1)


def test_a_closed_server_is_named_with_what_to_switch(diagnose, closed):
    status, findings = diagnose()

    assert_named(findings, "It says: This server is closed for now.", "Server settings")
    assert status == 1


ADDRESSES = {
    "wrong path": (
        lambda site: site + "x", "There is no endpoint at this address (404).", "/mcp",
    ),
    "wrong host": (
        lambda site: site.replace("localhost", "127.1"),
        "The site does not serve the host 127.1 (400).", 'ALLOWED_HOSTS = [..., "127.1"]',
    ),
    "http alone": (
        lambda site: site.replace("localhost", "127.1"),
        "The address begins with http, so anybody on the way", "Serve https://127.1:",
    ),
    "nothing there": (
        lambda site: f"http://localhost:{free_port()}/mcp",
        "Nothing answers at localhost:", "start the server",
    ),
    "no such name": (
        lambda site: "http://nowhere.invalid/mcp",
        "Nothing answers at nowhere.invalid:", "curl -v",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ADDRESSES)
def test_a_wrong_address_is_named_with_what_to_type(diagnose, site, name):
    make, sentence, hint = ADDRESSES[name]

    status, findings = diagnose(url=make(site))

    assert_named(findings, sentence, hint)
    assert status == 1


def test_a_server_that_never_answers_is_not_waited_for(diagnose):
    with closing(socket.create_server(("127.0.0.1", 0))) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/mcp"
        status, [finding] = diagnose("--timeout", "0.1", url=url)

    assert status == 1
    assert finding["sentence"] == f"There is no answer from {url[7:-4]} in time."


def answer_with_certificate(connection, folder):
    from tests.oauth.documents import write_certificate

    write_certificate(folder / "own.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "own.pem")
    with pytest.raises(ssl.SSLError):
        context.wrap_socket(connection, server_side=True)


def answer_without_tls(connection, folder):
    connection.recv(1)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        pytest.param(
            answer_with_certificate,
            " is not accepted: self-signed certificate.",
            marks=has_oauth,
        ),
        (answer_without_tls, "There is no TLS at localhost:"),
    ],
)
def test_what_is_wrong_with_tls_is_named(diagnose, tmp_path, answer, sentence):
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as listener,
        ThreadPoolExecutor(1) as threads,
    ):

        def serve():
            with closing(listener.accept()[0]) as connection:
                answer(connection, tmp_path)

        served = threads.submit(serve)
        status, [finding] = diagnose(url=f"https://localhost:{listener.getsockname()[1]}/mcp")
        served.result(PATIENCE)

    assert status == 1
    assert sentence in finding["sentence"]


@has_oauth
def test_a_certificate_that_ends_soon_is_a_warning_and_the_endpoint_is_asked(
    diagnose, site, monkeypatch, tmp_path
):
    from tests.oauth import documents

    monkeypatch.setattr(documents, "HOST", "localhost")
    documents.write_certificate(tmp_path / "own.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "own.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "own.pem")
    front = FaultyProxy(site, Fault())
    front.socket = context.wrap_socket(front.socket, server_side=True)

    with front.serving() as url:
        _, [certificate, asked, *_] = diagnose(url=url.replace("http:", "https:"))

    assert certificate["sentence"].startswith("The certificate is valid until 2")
    assert (certificate["severity"], certificate["hint"]) == ("warning", "certbot renew")
    assert asked["sentence"].startswith("The client is asked for a credential")


def test_over_wsgi_there_are_no_streams_and_no_error(diagnose, token):
    with served("wsgi", audit=False) as port:
        _, findings = diagnose(url=f"http://localhost:{port}/mcp")

    [streams] = [one for one in findings if "There are no streams" in one["sentence"]]
    assert streams["severity"] == "info"
    assert "mcp_serve" in streams["hint"]


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["lines", "json"])
def test_the_token_and_what_moves_the_cursor_never_reach_the_terminal(
    site, proxy, token, capsys, form
):
    _, url = proxy(status=400, body="<title>ECHO \x1b[2J\u202e</title>")

    with pytest.raises(SystemExit):
        call_command("mcp_doctor", url, *form)
    refused = capsys.readouterr()
    _, url = proxy(asks={"Authorization": f"Bearer {token.secret}x"})
    with pytest.raises(SystemExit):
        call_command("mcp_doctor", url, *form)
    written = "".join([*refused, *capsys.readouterr()])

    assert "It says:" in written
    assert token.secret not in written
    assert not {"\x1b", "\u202e"} & set(written)
