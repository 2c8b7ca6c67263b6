"""An authorization server of the tests: it publishes its keys over HTTP, and signs tokens."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

RESOURCE = "https://shop.example.com/mcp"


class Key:
    def __init__(self, kid: str) -> None:
        self.kid = kid
        self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @property
    def public(self) -> dict[str, Any]:
        shown = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.private.public_key()))
        return {**shown, "kid": self.kid, "use": "sig", "alg": "RS256"}


class Issuer:
    """Served from `start()` to `stop()`, at a free port of this machine."""

    def __init__(self) -> None:
        self.keys = [Key("one")]
        self.asked = 0
        #: The answer in place of the keys: a status, bytes, or bytes until the client leaves.
        self.says: int | bytes | Iterator[bytes] | None = None

    def start(self) -> None:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked += 1
                said = issuer.says
                body = said if isinstance(said, bytes) else issuer.published
                self.send_response(said if isinstance(said, int) else 200)
                if isinstance(said, Iterator):
                    self.end_headers()
                    with suppress(OSError):
                        self.wfile.writelines(said)
                    return
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/realms/shop"

    @property
    def jwks_url(self) -> str:
        return f"{self.url}/certs"

    @property
    def published(self) -> bytes:
        return json.dumps({"keys": [key.public for key in self.keys]}).encode()

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Good ones of alice. A claim that is changed to None is left out."""
        found = {
            "iss": self.url,
            "aud": RESOURCE,
            "sub": "8d1f",
            "preferred_username": "alice",
            "azp": "claude",
            "scope": "openid mcp:read",
            "exp": int(time.time()) + 300,
            **changes,
        }
        return {name: value for name, value in found.items() if value is not None}

    def token(self, *, key: Key | None = None, headers: Any = None, **changes: Any) -> str:
        key = key or self.keys[-1]
        kid = {"kid": key.kid, "typ": "at+jwt", **(headers or {})}
        return jwt.encode(self.claims(**changes), key.private, algorithm="RS256", headers=kid)


def user_of(claims: dict[str, Any]) -> Any:
    """What a site writes: its own user of that name, or nobody."""
    from django.contrib.auth import get_user_model

    return get_user_model().objects.filter(username=claims.get("preferred_username")).first()
