"""The half of `mcp_doctor` that asks the public endpoint, as clients ask it."""

from __future__ import annotations

import json
import re
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from django.db import Error as DatabaseError

from mcp_django.auth.authenticators import is_loopback
from mcp_django.management.doctor import Finding, error, info, ok, warning
from mcp_django.models import PersonalToken
from mcp_django.protocol.negotiation import CAPABILITIES_KEY, CLIENT_KEY, REVISION_KEY
from mcp_django.protocol.revisions import LATEST_LEGACY, MODERN
from mcp_django.signing import digest_of
from mcp_django.transports.exchanges import EVENT_STREAM, JSON

#: Bytes of an answer that are read.
MOST_BYTES_READ = 4 * 1024 * 1024
#: Pages of a list, and authorization servers, that are asked for.
MOST_LIST_PAGES, MOST_ISSUERS = 20, 3
JSON_OR_STREAM = f"{JSON}, {EVENT_STREAM}"
CLIENT_INFO = {"name": "mcp_doctor", "version": "1"}
#: Names that every client takes, and numbers of tools above which clients leave some out.
EVERYWHERE = re.compile(r"[a-zA-Z0-9_-]{1,64}")
SAFE_TOOLS, MOST_TOOLS = 40, 128
#: Seconds that two clocks may differ by: answers take a while, and headers have whole seconds.
MOST_SKEW = 30.0
#: Seconds that a certificate should still be valid for.
EXPIRES_SOON = 14 * 86400


class ClientHabits(NamedTuple):
    """What a client sends. docs/reference/clients.md has the sources, without the names of agents:
    anthropics/claude-ai-mcp#923, anthropics/claude-code#47390, microsoft/vscode#319528, and those
    that Node and ChatGPT left in the logs of servers.
    """

    name: str
    accept: str
    user_agent: str = ""
    #: After the handshake, as the specification demands.
    names_revision: bool = True
    names_session: bool = True
    is_modern: bool = False
    #: Of the page that it runs in.
    origin: str = ""

    def __str__(self) -> str:
        sent = {"Accept": self.accept, "User-Agent": self.user_agent}
        texts = [f"{name}: {value}" if value else f"no {name}" for name, value in sent.items()]
        if not self.is_modern and not self.names_revision:
            texts.append("no MCP-Protocol-Version")
        return f"{self.name} ({'; '.join(texts)})"


CLIENTS = {
    "claude": ClientHabits("Claude.ai", "*/*", names_revision=False, names_session=False),
    "chatgpt": ClientHabits("ChatGPT", JSON_OR_STREAM, "openai-mcp/1.0.0"),
    "n8n": ClientHabits("n8n", JSON_OR_STREAM, "node"),
    "vscode": ClientHabits("VS Code", f"{EVENT_STREAM}, {JSON}", "Visual Studio Code/1.124.0"),
    "claude-code": ClientHabits("Claude Code", JSON, "claude-code/2.1.267 (cli)", is_modern=True),
    "elevenlabs": ClientHabits("ElevenLabs", EVENT_STREAM),
    "kiro": ClientHabits("Kiro", ""),
}
#: A client of the newest revision that does all that the specification demands.
EXEMPLARY = ClientHabits("mcp_doctor", JSON_OR_STREAM, "mcp_doctor/1", is_modern=True)


@dataclass(frozen=True, kw_only=True)
class PublicAnswer:
    status: int
    headers: Message
    body: bytes

    @property
    def content(self) -> dict[str, Any]:
        """The JSON object in the body, or in the last event of a stream. Empty: there is none."""
        text: str | bytes = self.body
        if EVENT_STREAM in self.headers.get("Content-Type", ""):
            lines = self.body.decode("utf-8", "replace").splitlines()
            text = next((one[5:] for one in reversed(lines) if one.startswith("data:")), "")
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def result(self) -> dict[str, Any] | None:
        found = self.content.get("result")
        return found if self.status == 200 and isinstance(found, dict) else None

    @property
    def words(self) -> str:
        """What it says for people: the message of a JSON-RPC error, or the title of a page."""
        failure = self.content.get("error")
        if isinstance(failure, dict):
            return str(failure.get("message", ""))[:200]
        title = re.search(rb"<title>\s*([^<]{1,200})", self.body)
        return " ".join(title[1].decode("utf-8", "replace").split()) if title else ""


def is_address(url: str) -> bool:
    """Return whether this is an address of the web, without a name and a password in it."""
    try:
        parts = urlsplit(url)
        is_complete = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return False
    is_plain = url.isascii() and url.isprintable() and "@" not in parts.netloc
    return bool(is_complete) and is_plain


class Unreachable(Exception):
    """There is no answer. Has the finding that says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.sentence)
        self.finding = finding


class PublicEndpoint:
    """Sends requests of clients. Follows no redirect, waits and reads no longer than it may."""

    def __init__(self, url: str, *, token: str = "", own_url: str = "", timeout: float) -> None:
        self.url, self.token, self.timeout = url, token, timeout
        #: Where the site says that it is, in words that go on from "the address".
        self.own_url = own_url
        self.parts = urlsplit(url)
        self.root = f"{self.parts.scheme}://{self.parts.netloc}"
        self.credentials = {"Authorization": f"Bearer {token}"} if token else {}

    @contextmanager
    def connection(self, parts: SplitResult) -> Iterator[HTTPConnection]:
        """Raises Unreachable."""
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        try:
            connection = kind(parts.hostname or "", parts.port, timeout=self.timeout)
            with closing(connection):
                yield connection
        except (OSError, HTTPException, ValueError) as problem:
            raise Unreachable(explain_failure(problem, parts)) from problem

    @contextmanager
    def open(
        self, verb: str, body: bytes = b"", *, url: str = "", headers: Mapping[str, str]
    ) -> Iterator[HTTPResponse]:
        """Send a request, and have its response read. Raises Unreachable."""
        parts = urlsplit(url or self.url)
        target = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
        with self.connection(parts) as connection:
            connection.request(verb, target, body, dict(headers))
            yield connection.getresponse()

    def send(
        self, verb: str, body: bytes = b"", *, url: str = "", headers: Mapping[str, str]
    ) -> PublicAnswer:
        """Raises Unreachable."""
        received, end = bytearray(), time.monotonic() + self.timeout
        with self.open(verb, body, url=url, headers=headers) as response:
            while len(received) < MOST_BYTES_READ and time.monotonic() < end:
                if not (part := response.read1(64 * 1024)):
                    break
                received += part
            return PublicAnswer(
                status=response.status, headers=response.headers, body=bytes(received)
            )

    def try_get(self, url: str) -> PublicAnswer:
        """Return the answer of another address, or one of status 0 where nothing answers."""
        nothing = PublicAnswer(status=0, headers=Message(), body=b"")
        if not is_address(url):
            return nothing
        try:
            # Clients send no User-Agent there: anthropics/claude-code#47390, openai/codex#12859.
            return self.send("GET", url=url, headers={"Accept": JSON})
        except Unreachable:
            return nothing

    def call(
        self, habits: ClientHabits, method: str, *, session: str = "", **params: Any
    ) -> PublicAnswer:
        """Post a request as this client does, with the token. Raises Unreachable."""
        body, headers = encode_as(habits, method, params)
        if session and habits.names_session:
            headers["Mcp-Session-Id"] = session
        return self.send("POST", body, headers={**headers, **self.credentials})

    def greet(self, habits: ClientHabits) -> PublicAnswer:
        """Send the first request of this client. Raises Unreachable."""
        if habits.is_modern:
            return self.call(habits, "server/discover")
        hello: dict[str, Any] = {"protocolVersion": LATEST_LEGACY.value, "capabilities": {}}
        return self.call(habits, "initialize", clientInfo=CLIENT_INFO, **hello)


def encode_as(
    habits: ClientHabits, method: str, params: Mapping[str, Any]
) -> tuple[bytes, dict[str, str]]:
    """Return the body of a request as this client makes it, and its headers."""
    sent = {"Accept": habits.accept, "User-Agent": habits.user_agent, "Origin": habits.origin}
    headers = {"Content-Type": JSON} | {name: value for name, value in sent.items() if value}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(params)}
    if habits.is_modern:
        revision = MODERN[-1].value
        meta = {REVISION_KEY: revision, CLIENT_KEY: CLIENT_INFO, CAPABILITIES_KEY: {}}
        message["params"] = {**params, "_meta": meta}
        headers |= {"MCP-Protocol-Version": revision, "Mcp-Method": method}
    elif method != "initialize" and habits.names_revision:
        headers["MCP-Protocol-Version"] = LATEST_LEGACY.value
    return json.dumps(message).encode(), headers


def diagnose_endpoint(
    endpoint: PublicEndpoint, *, clients: Sequence[ClientHabits], origins: Iterable[str]
) -> Iterator[Finding]:
    """Yield what clients meet at an address: on the way to it, at the door, and behind it."""
    nobody = PublicEndpoint(endpoint.url, own_url=endpoint.own_url, timeout=endpoint.timeout)
    try:
        yield from diagnose_address(endpoint)
        answers = {client: nobody.greet(client) for client in clients}
        met = {client: judge(nobody, answer) for client, answer in answers.items()}
        yield from group_by_finding(met)
        yield from diagnose_clock(answers[clients[0]])
        asked = [answer for answer in answers.values() if answer.status == 401]
        if not asked and all(answer.result is None for answer in answers.values()):
            return
        for origin in origins:
            yield from diagnose_page(nobody, origin)
        if asked:
            yield from diagnose_sign_in(nobody, asked[0].headers.get("WWW-Authenticate", ""))
        if endpoint.token or not asked:
            yield from diagnose_access(endpoint, clients)
        else:
            yield info(
                "What is behind the sign-in was not asked for.",
                f"MCP_TOKEN=TOKEN python manage.py mcp_doctor {endpoint.url}",
            )
    except Unreachable as problem:
        yield problem.finding


# The way to the site


def diagnose_address(endpoint: PublicEndpoint) -> Iterator[Finding]:
    parts = endpoint.parts
    host = parts.hostname or ""
    if parts.scheme == "https":
        with endpoint.connection(parts) as connection:
            connection.connect()
            tls: Any = connection.sock
            end = ssl.cert_time_to_seconds(tls.getpeercert()["notAfter"])
        sentence = f"The certificate is valid until {time.strftime('%Y-%m-%d', time.gmtime(end))}."
        is_short = end - time.time() < EXPIRES_SOON
        yield warning(sentence, "certbot renew") if is_short else ok(sentence)
    elif host != "localhost" and not is_loopback(host):
        yield error(
            "The address begins with http, so anybody on the way reads the tokens, and clients "
            "refuse it.",
            f"Serve {parts._replace(scheme='https').geturl()}, and give clients that address.",
        )


def explain_failure(problem: Exception, parts: SplitResult) -> Finding:
    """Return why there is no answer at all."""
    host = parts.netloc
    if isinstance(problem, ssl.SSLCertVerificationError):
        return error(
            f"The certificate of {host} is not accepted: {problem.verify_message}.",
            "certbot renew, and let the proxy send the whole chain.",
        )
    if isinstance(problem, ssl.SSLError):
        sentence, hint = (
            f"There is no TLS at {host}: {problem.reason}",
            "correct the port or the scheme",
        )
    elif isinstance(problem, TimeoutError):
        sentence, hint = f"There is no answer from {host} in time", "open the port in the firewall"
    else:
        sentence = f"Nothing answers at {host}: {getattr(problem, 'strerror', '') or problem}"
        hint = "start the server or the proxy there"
    return error(f"{sentence}.", f"curl -v {parts.scheme}://{host}/, and {hint}.")


#: What the endpoint says, and the titles of the pages of Django for DisallowedHost.
HOST_REFUSED = ("This host is not served here.", "Bad Request (400)", "DisallowedHost at")
STATUSES = {
    400: ("The request is refused as malformed (400).", "Let the proxy pass every header."),
    403: (
        "Something in front of the site, or a middleware, refuses the request (403).",
        "Let the firewall pass POST to {path}, also without a User-Agent.",
    ),
    404: ("There is no endpoint at this address (404).", "Give clients the address {url}"),
    405: ("The address does not take POST (405).", "Give clients the address {url}"),
    406: ("The media types are refused (406).", "Let the proxy pass the header Accept as it is."),
    413: ("The body is too long (413).", "In nginx: client_max_body_size 4m;"),
    415: ("The body is not taken as JSON (415).", "Let the proxy pass the header Content-Type."),
    429: ("There were too many requests (429).", "Wait a minute, or raise CALLS_PER_MINUTE."),
    500: ("The site failed (500).", "Read the traceback in the log of the site."),
    502: ("The proxy does not reach the site (502).", "Start the site, or correct proxy_pass."),
    503: ("The site is closed or busy (503).", "Read Server settings in the admin, and the log."),
    504: ("The site does not answer the proxy in time (504).", "proxy_read_timeout 75s;"),
}


def explain_status(endpoint: PublicEndpoint, answer: PublicAnswer, *, origin: str = "") -> Finding:
    """Return what to do about an answer that is neither a result nor 401."""
    parts, status, words = endpoint.parts, answer.status, answer.words
    if 300 <= status < 400:
        target = answer.headers.get("Location", "")
        target = endpoint.root + target if target.startswith("/") else target
        return error(
            f"The address redirects to {target}, and clients do not post there again.",
            f"Give clients the address {target}, or serve {parts.path} without a redirect.",
        )
    if status == 403 and origin and "origin" in words.lower():
        return error(
            f"Pages of {origin} are refused (403).",
            f'MCP_DJANGO = {{..., "ALLOWED_ORIGINS": ["{origin}"]}}',
        )
    if status == 421 or (status == 400 and words.startswith(HOST_REFUSED)):
        return error(
            f"The site does not serve the host {parts.hostname} ({status}).",
            f'ALLOWED_HOSTS = [..., "{parts.hostname}"], and in nginx: '
            "proxy_set_header Host $host;",
        )
    unknown = (f"The answer is no message of MCP ({status}).", "Give clients the address {url}")
    sentence, hint = STATUSES.get(status, unknown)
    sentence += f" It says: {words}" if words else ""
    return error(sentence, hint.format(url=endpoint.own_url, path=parts.path))


# What clients get without a credential


def judge(endpoint: PublicEndpoint, answer: PublicAnswer) -> Finding:
    """Return what to say of the answer to a client that shows no credential."""
    if answer.status == 401:
        return ok("The client is asked for a credential (401), as it should be.")
    if answer.result is not None:
        return info(
            "The client is served without a credential.",
            "Leave Anonymous and DevUser out of AUTHENTICATORS, unless everybody may read.",
        )
    return explain_status(endpoint, answer)


def group_by_finding(found: Mapping[ClientHabits, Finding]) -> Iterator[Finding]:
    """Yield each finding once, with the clients that meet it."""
    for finding in dict.fromkeys(found.values()):
        clients = tuple(str(habits) for habits, met in found.items() if met == finding)
        yield replace(finding, clients=clients)


def diagnose_clock(answer: PublicAnswer) -> Iterator[Finding]:
    """Yield what to say of the clock of the server, if the answer names a time."""
    try:
        ahead = parsedate_to_datetime(answer.headers["Date"]).timestamp() - time.time()
    except (TypeError, ValueError):
        return
    if abs(ahead) <= MOST_SKEW:
        yield ok("The clock of the server agrees with the clock of this machine.")
        return
    side = "ahead of" if ahead > 0 else "behind"
    yield warning(
        f"The clock of the server is {abs(ahead):.0f} seconds {side} the clock of this machine, "
        "so tokens expire too early or too late.",
        "timedatectl set-ntp true, on the machine whose clock is wrong.",
    )


def diagnose_page(endpoint: PublicEndpoint, origin: str) -> Iterator[Finding]:
    """Yield whether a client that runs in a page of this origin is let in."""
    wanted = ("authorization", "content-type", "mcp-protocol-version", "mcp-session-id")
    asking = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": ", ".join(wanted),
    }
    posted = endpoint.greet(EXEMPLARY._replace(origin=origin))
    if posted.status == 403:
        yield explain_status(endpoint, posted, origin=origin)
        return
    preflight = endpoint.send("OPTIONS", headers=asking)
    allowed = preflight.headers.get("Access-Control-Allow-Headers", "").lower()
    is_named = preflight.headers.get("Access-Control-Allow-Origin") == origin
    if preflight.status < 300 and is_named and all(name in allowed for name in wanted):
        yield ok(f"Pages of {origin} may call the endpoint.")
    else:
        yield error(
            f"A browser does not let pages of {origin} call the endpoint.",
            f'MCP_DJANGO = {{..., "ALLOWED_ORIGINS": ["{origin}"]}}, and let neither the proxy '
            "nor django-cors-headers answer OPTIONS.",
        )


# How people sign in


def diagnose_sign_in(endpoint: PublicEndpoint, challenge: str) -> Iterator[Finding]:
    """Yield what a client finds that goes from a 401 to the authorization server."""
    pointer = re.search(r'resource_metadata="([^"]+)"', challenge)
    well_known = "/.well-known/oauth-protected-resource"
    url = pointer[1] if pointer else f"{endpoint.root}{well_known}{endpoint.parts.path}"
    if not challenge:
        yield error(
            "The 401 has no header WWW-Authenticate, so clients do not know what to present.",
            "Let the proxy pass WWW-Authenticate, and ask for no password itself.",
        )
    answer = endpoint.try_get(url)
    issuers = answer.content.get("authorization_servers") if answer.status == 200 else None
    if not pointer and not issuers:
        yield warning(
            "People cannot sign in, so clients that take no token, such as ChatGPT, cannot "
            "connect.",
            "python manage.py mcp_oauth",
        )
        return
    if not isinstance(issuers, list) or not issuers:
        yield error(
            f"Clients look for metadata at {url}, and get {answer.status or 'no answer'}.",
            f"Let the proxy pass {well_known} to the site, or correct PUBLIC_URL.",
        )
        return
    resource = str(answer.content.get("resource"))
    if resource.rstrip("/") != endpoint.url.rstrip("/"):
        yield error(
            f"The metadata are about {resource}, so clients that connect to {endpoint.url} do "
            "not go on.",
            f'MCP_DJANGO = {{..., "PUBLIC_URL": "{endpoint.root}"}}, or give clients the '
            f"address {resource}",
        )
    for issuer in filter(is_address, map(str, issuers[:MOST_ISSUERS])):
        yield from diagnose_issuer(endpoint, issuer)


def diagnose_issuer(endpoint: PublicEndpoint, issuer: str) -> Iterator[Finding]:
    """Yield what is wrong with an authorization server, as far as its metadata say."""
    parts = urlsplit(issuer)
    root, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    # RFC 8414, 3.1, and OpenID Connect Discovery, in the order of the MCP specification.
    places = (
        f"{root}/.well-known/oauth-authorization-server{path}",
        f"{root}/.well-known/openid-configuration{path}",
        f"{root}{path}/.well-known/openid-configuration",
    )
    answers = (endpoint.try_get(place) for place in places)
    metadata = next((one.content for one in answers if one.status == 200 and one.content), None)
    if metadata is None:
        yield error(
            f"The authorization server {issuer} has no metadata at {places[0]}",
            "Let the proxy pass /.well-known/oauth-authorization-server to the site.",
        )
        return
    if metadata.get("issuer") != issuer:
        yield error(
            f"The authorization server {issuer} calls itself {metadata.get('issuer')}.",
            f'MCP_DJANGO = {{..., "PUBLIC_URL": "{root}"}}',
        )
    if "S256" not in str(metadata.get("code_challenge_methods_supported")):
        yield error(
            f"The authorization server {issuer} does not offer PKCE with S256.",
            "Switch PKCE on there: clients do not go on without it.",
        )
    if metadata.get("registration_endpoint"):
        yield ok(f"People sign in at {issuer}, and clients register themselves there.")
    elif metadata.get("client_id_metadata_document_supported") is True:
        yield ok(f"People sign in at {issuer}, with clients that publish a document.")
        yield info(
            "Clients without a document, such as Cursor and Gemini CLI, need an ID from staff.",
            'MCP_DJANGO = {..., "REGISTRATION": "cimd+dcr"} lets them register themselves.',
        )
    else:
        yield warning(
            f"Clients cannot register at {issuer}, so each needs an ID that staff entered.",
            'MCP_DJANGO = {..., "REGISTRATION": "cimd"}',
        )


# What is behind the door


def diagnose_access(
    endpoint: PublicEndpoint, clients: Sequence[ClientHabits]
) -> Iterator[Finding]:
    """Yield which clients get in, with the token if there is one, and what is odd about it."""
    found: dict[ClientHabits, Finding] = {}
    for habits in clients:
        answer = endpoint.greet(habits)
        if answer.status == 401:
            yield explain_token(endpoint.token)
            return
        session = answer.headers.get("Mcp-Session-Id", "")
        if answer.result is not None:
            answer = endpoint.call(habits, "tools/list", session=session)
        is_served = answer.result is not None
        listed = ok("The client connects and lists the tools.")
        found[habits] = listed if is_served else explain_status(endpoint, answer)
        if session:
            endpoint.send("DELETE", headers={"Mcp-Session-Id": session, **endpoint.credentials})
    yield from group_by_finding(found)
    if endpoint.greet(EXEMPLARY).result is None:
        yield warning(
            f"Clients of the revision {MODERN[-1].value} get no answer to server/discover.",
            "Let the proxy pass the headers Mcp-Method and MCP-Protocol-Version.",
        )
        return
    yield from diagnose_tools(endpoint)
    yield from diagnose_stream(endpoint)


def explain_token(secret: str) -> Finding:
    """Return why a token is refused, as far as the database of this command knows it."""
    create = "python manage.py mcp_token create USER"
    tokens = PersonalToken.objects.select_related("user")
    try:
        token = tokens.filter(digest=digest_of(secret)).first()
    except DatabaseError:
        token = None
    if token is None:
        return error("The token is refused (401). This site does not know it.", create)
    if token.state() != "active":
        return error(f"The token is refused (401), because it is {token.state()}.", create)
    return error(
        f"The token of {token.user.get_username()} is refused (401), although it is valid.",
        "Let the proxy pass Authorization, and read User restrictions in the admin.",
    )


def diagnose_tools(endpoint: PublicEndpoint) -> Iterator[Finding]:
    """Yield what is wrong with the list of tools for some clients."""
    names: list[str] = []
    params: dict[str, Any] = {}
    for _ in range(MOST_LIST_PAGES):
        result = endpoint.call(EXEMPLARY, "tools/list", **params).result or {}
        tools = result.get("tools")
        tools = tools if isinstance(tools, list) else []
        names += [str(tool.get("name")) for tool in tools if isinstance(tool, dict)]
        params = {"cursor": result.get("nextCursor")}
        if not params["cursor"]:
            break
    if odd := [ascii(name) for name in names if not EVERYWHERE.fullmatch(name)]:
        yield error(
            f"Some clients refuse the names of these tools: {', '.join(odd[:5])}.",
            "Rename them: letters, digits, hyphens and underscores, at most 64 of them.",
        )
    switch = "Switch tools off in the admin, under Exposed tools."
    if not names:
        yield warning("The token opens no tool.", "python manage.py mcp_list --user USER")
    elif len(names) > MOST_TOOLS:
        yield error(f"There are {len(names)} tools, and VS Code takes {MOST_TOOLS}.", switch)
    elif len(names) > SAFE_TOOLS:
        yield warning(f"There are {len(names)} tools, and some clients leave tools out.", switch)
    else:
        yield ok(f"The token opens {len(names)} tools.")


def diagnose_stream(endpoint: PublicEndpoint) -> Iterator[Finding]:
    """Yield whether the first event of a stream that stays open arrives while it is open."""
    params = {"notifications": {"toolsListChanged": True}}
    body, headers = encode_as(EXEMPLARY, "subscriptions/listen", params)
    headers |= endpoint.credentials
    try:
        with endpoint.open("POST", body, headers=headers) as response:
            is_stream = EVENT_STREAM in response.headers.get("Content-Type", "")
            if is_stream and response.headers.get("Content-Encoding"):
                yield warning(
                    "Something compresses streams, so that events wait until a block is full.",
                    f"In nginx: location {endpoint.parts.path} {{ gzip off; }}",
                )
            elif is_stream and response.read1(1):
                yield ok("The first event of a stream arrives while the stream is open.")
            else:
                yield info(
                    f"There are no streams ({response.status}), so clients are not notified of "
                    "changes.",
                    "Serve the site with ASGI: python manage.py mcp_serve",
                )
    except Unreachable as problem:
        if not isinstance(problem.__cause__, TimeoutError):
            raise
        yield error(
            "The first event of a stream does not arrive while the stream is open: a proxy "
            "collects the answer first.",
            f"In nginx: location {endpoint.parts.path} {{ proxy_buffering off; }}",
        )
