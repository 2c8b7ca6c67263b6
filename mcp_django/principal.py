"""Who acts, with what scopes, held to what."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

DEFAULT_SERVER = "default"
#: Characters of the key of a principal, which tables hold.
LONGEST_PRINCIPAL = 200

READ = "mcp:read"
WRITE = "mcp:write"
DELETE = "mcp:delete"
ACTION = "mcp:action"
SCOPES = (READ, WRITE, DELETE, ACTION)

#: A scope implies those named beside it (MCP 2026-07-28 asks servers to account for hierarchy).
IMPLIED = {WRITE: frozenset({READ}), DELETE: frozenset({READ})}


def with_implied(scopes: Iterable[str]) -> list[str]:
    """Return the scopes with those that they imply, in the order of SCOPES. Others come last."""
    held = {*scopes, *(implied for scope in scopes for implied in IMPLIED.get(scope, ()))}
    return [scope for scope in SCOPES if scope in held] + sorted(held.difference(SCOPES))


@lru_cache(maxsize=256)
def satisfies(granted: frozenset[str], needed: frozenset[str]) -> bool:
    """Whether the granted scopes cover every needed one, what they imply included."""
    return needed.issubset(with_implied(granted))


class CachePerPrincipal(Generic[Key, Value]):
    """What was found out about each principal, of one kind, by key. It holds for as long as the
    principal does: a second at most, where that is kept between calls.
    """

    def of(self, principal: Principal) -> dict[Key, Value]:
        # Of two threads that come at once, both get the same.
        return principal.caches.setdefault(self, {})


@dataclass(frozen=True, kw_only=True)
class Restriction:
    """What a credential takes away from its user's rights. It never adds."""

    #: Nothing that writes exists.
    read_only: bool = False
    #: Labels such as "shop.order"; no other model exists. None: no such limit.
    models: frozenset[str] | None = None

    def allows_model(self, label_lower: str) -> bool:
        return self.models is None or label_lower in self.models


@dataclass(frozen=True, kw_only=True)
class Principal:
    """The user behind a call and the limits of the credential. Every call has one."""

    user: Any
    scopes: frozenset[str]
    #: How the credential was recognized: personal_token, jwt, drf, anonymous, dev_user, stdio.
    method: str
    server: str = DEFAULT_SERVER
    #: The connected program as the credential names it, for records and binding.
    client: str = ""
    #: Key of the stored credential, never the secret.
    credential_id: str = ""
    restriction: Restriction = field(default_factory=Restriction)
    #: Scopes that the client may get if the user signs in again. MCP calls that step-up.
    grantable: frozenset[str] = frozenset()
    expires_at: datetime | None = None
    #: When access ends for good: until then a client may renew its credential. None: not known.
    ends_at: datetime | None = None
    #: The schema that the call works in, with django-tenants and its like.
    tenant: str = ""
    #: See CachePerPrincipal, which reads and writes them.
    caches: dict[Any, dict[Any, Any]] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def key(self) -> str:
        """Binds cursors and counters. Not the credential: a renewed token keeps its cursors."""
        user = "anonymous" if self.user.pk is None else f"user:{self.user.pk}"
        # Users and tokens of a site have any names, so the slash that joins parts is escaped.
        parts = (self.server, user, self.client, *([self.tenant] if self.tenant else []))
        key = "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)
        # Authorization servers choose the names of their clients, and some are addresses.
        if len(key) <= LONGEST_PRINCIPAL:
            return key
        digest = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        # What is escaped has no "%:", so no shorter key reads like this one.
        return f"{key[: LONGEST_PRINCIPAL - 66]}%:{digest}"

    def with_scopes(self, more: Collection[str]) -> Principal:
        """Return the same principal with more scopes, and without what is kept for fewer."""
        if self.scopes.issuperset(more):
            return self
        return replace(self, scopes=self.scopes.union(more), caches={})

    def has_scopes(self, needed: frozenset[str]) -> bool:
        return satisfies(self.scopes, needed)
