"""Documents that clients publish about themselves, at the address that is their client_id.

Client ID Metadata Documents, the registration that MCP prefers: a client needs no secret and no
account, and people see on whose host it lives. The address comes from a stranger. So it is read
only while a signed-in user is on the page for consent, from public addresses alone, without
following redirects, and within one deadline for the whole answer.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
from typing import Any
from urllib.parse import SplitResult

import msgspec

from mcp_django.oauth.client_metadata import (
    LARGEST_DOCUMENT,
    BadMetadata,
    ClientMetadata,
    read_metadata,
)
from mcp_django.oauth.toolkit import cimd, oauth2_settings


class ClientDocuments(cimd.SafeMetadataFetcher):  # type: ignore[misc]  # untyped base
    """The setting CIMD_METADATA_FETCHER of the toolkit, which calls `fetch`."""

    def fetch(self, client_id: str) -> tuple[dict[str, Any], int]:
        """Return the metadata, and for how many seconds they are good. Raises CIMDError."""
        address = cimd._validate_client_id_url(client_id)
        body, cache_control = self.read(
            address, seconds=oauth2_settings.CIMD_FETCH_TIMEOUT_SECONDS
        )
        try:
            metadata = public_client(read_metadata(body))
        except BadMetadata as error:
            raise cimd.CIMDError(str(error)) from error
        # The toolkit looks for lists.
        document = msgspec.json.decode(msgspec.json.encode(metadata))
        return document, cimd._effective_max_age(cache_control)

    def resolve(self, host: str, port: int) -> str:
        """Return an IP address of the host. Raises CIMDError unless all of them are public."""
        addresses: list[str] = cimd._resolve_and_validate(host, port)
        return addresses[0]

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    def read(self, address: SplitResult, *, seconds: float) -> tuple[bytes, str | None]:
        """Return the document and its Cache-Control. Raises CIMDError.

        The connection goes to the address that was checked, so no second answer of the name server
        counts. Timeouts of sockets begin anew with each byte, so a timer ends the whole.
        """
        host, port = address.hostname or "", address.port or 443
        ip = self.resolve(host, port)
        path = f"{address.path}?{address.query}" if address.query else address.path
        connection = http.client.HTTPSConnection(host, port)
        # The connection forgets its socket while an answer is read that ends with it.
        sockets: list[socket.socket] = []
        is_over = threading.Event()

        def give_up() -> None:
            is_over.set()
            for opened in sockets:
                with contextlib.suppress(OSError):
                    opened.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(seconds, give_up)
        timer.daemon = True
        timer.start()
        try:
            sockets.append(socket.create_connection((ip, port), seconds))
            connection.sock = secured = self.tls().wrap_socket(
                sockets[0], server_hostname=host, do_handshake_on_connect=False
            )
            sockets.append(secured)
            secured.do_handshake()
            connection.request(
                "GET", path, headers={"Accept": "application/json", "Accept-Encoding": "identity"}
            )
            response = connection.getresponse()
            check_answer(response)
            body = response.read(LARGEST_DOCUMENT + 1)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise cimd.CIMDError(f"The document was not read: {error!r}") from error
        finally:
            timer.cancel()
            connection.close()
        if is_over.is_set() or len(body) > LARGEST_DOCUMENT:
            raise cimd.CIMDError("The document is too long, or takes too long.")
        return body, response.headers.get("Cache-Control")


def check_answer(response: http.client.HTTPResponse) -> None:
    """Raise CIMDError for an answer that is no document: a redirect, a page, packed bytes."""
    kind = response.headers.get_content_type()
    is_json = kind == "application/json" or (
        kind.startswith("application/") and kind.endswith("+json")
    )
    packing = response.headers.get("Content-Encoding", "identity").lower()
    if response.status != 200 or not is_json or packing != "identity":
        raise cimd.CIMDError(f"The answer is no document: {response.status}, {kind}, {packing}.")


def public_client(metadata: ClientMetadata) -> ClientMetadata:
    """Return the metadata of a client without a secret. Raises BadMetadata.

    Clients that can prove who they are with a key, and can do without, offer "none" as well.
    """
    # RFC 7591, 2: where nothing is said, it is client_secret_basic, and there is no secret here.
    methods = {
        metadata.token_endpoint_auth_method,
        *metadata.token_endpoint_auth_methods_supported,
    }
    if methods.isdisjoint({"none", "client_secret_basic"}):
        raise BadMetadata("The client must take part without a secret: none.")
    if not metadata.client_name:
        raise BadMetadata("The client needs a client_name.")
    metadata.token_endpoint_auth_method = "none"  # noqa: S105  no secret
    return metadata
