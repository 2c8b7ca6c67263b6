"""A number per server that rises when rights or exposures change, in whatever process.

One row, read at most once a second per process: this is how a change reaches every process. What
is kept in memory is kept under a `CacheVersion` (the number, and a count of this process's own
changes), so that a change made here counts at once, even if the row could not be written.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from django.contrib.auth import get_user_model
from django.db import DEFAULT_DB_ALIAS, Error, router, transaction
from django.db.models import F, Model
from django.db.models.signals import m2m_changed, post_delete, post_save

from mcp_django import models
from mcp_django.connections import Place, apart, current_place
from mcp_django.principal import DEFAULT_SERVER

logger = logging.getLogger("mcp_django.generation")

#: Seconds that a number read from the row is believed.
BELIEVED = 1.0

Places: TypeAlias = tuple[Place, ...]


def places() -> Places:
    """Return where this thread reads what is kept in memory: users, credentials, decisions.

    Part of the key of whatever outlives a call. No query.
    """
    # Each call asks a few times, and most sites have one database.
    if not router.routers:
        return (current_place(DEFAULT_DB_ALIAS),)
    # By the router of writes: one of reads may take turns.
    kinds = get_user_model(), models.PersonalToken, models.ExposureGeneration
    aliases = dict.fromkeys(router.db_for_write(kind) for kind in kinds)
    return tuple(map(current_place, aliases))


class CacheVersion(NamedTuple):
    """What is kept in memory was made under one. Under another it is void."""

    number: int
    #: Changes that this process has made or announced.
    own: int
    #: Where users, credentials and decisions were read: not those of another tenant.
    places: Places


class CacheVersions:
    """The numbers as one process knows them. Any thread may ask."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        #: Changes that this process has made or announced.
        self.own = 0
        #: Each with the time of its reading.
        self._readings: dict[tuple[str, Places], tuple[CacheVersion, float]] = {}
        self._lock = threading.Lock()
        # Held during the query, apart from the other: the event loop never waits for a database.
        self._reading = threading.Lock()

    def known_cache_version(self, server: str = DEFAULT_SERVER) -> CacheVersion | None:
        """Return the version if it was read within the last second. Never a query."""
        version, at = self._readings.get((server, places()), (None, 0.0))
        # Nothing is believed that was read before a change of this process.
        if version is None or version.own != self.own:
            return None
        return version if self.clock() - at < BELIEVED else None

    def cache_version(self, server: str = DEFAULT_SERVER) -> CacheVersion:
        """Return the version now. Ask before reading what you are going to keep under it."""
        if (version := self.known_cache_version(server)) is not None:
            return version
        with self._reading:
            return self.known_cache_version(server) or self._read(server)

    def _read(self, server: str) -> CacheVersion:
        key = server, places()
        own, now = self.own, self.clock()
        before, _ = self._readings.get(key, (None, 0.0))
        number = read_number(server, otherwise=0 if before is None else before.number)
        version = CacheVersion(number, own, key[1])
        # Of no use after a change of this process during the query: it may be older than that.
        self._readings[key] = version, now
        return version

    def forget(self) -> None:
        """Make void whatever this process keeps under an earlier version."""
        with self._lock:
            self.own += 1


generations = CacheVersions()
cache_version = generations.cache_version
known_cache_version = generations.known_cache_version


#: What a connection wrapper remembers: the servers whose number the next commit raises.
#:
#: A transaction that saves a thousand users raises the number once. Each save hangs its own
#: function on the commit, since a savepoint may take some of them back; the first that runs does
#: the work.
DUE = "_mcp_django_due"


def invalidate(server: str | None = DEFAULT_SERVER, *, using: str | None = None) -> None:
    """Note a change of this server, None: of every one. Its row rises on commit."""
    generations.forget()
    alias = using or router.db_for_write(models.ExposureGeneration)
    due: set[str | None] = vars(transaction.get_connection(alias)).setdefault(DUE, set())
    due.add(server)

    # No partial: Django names what failed by its __qualname__, and raises where there is none.
    def raise_once() -> None:
        if server not in due:
            return
        due.remove(server)
        try:
            rows = models.ExposureGeneration.objects.all()
            rows.get_or_create(server=DEFAULT_SERVER if server is None else server)
            if server is not None:
                rows = rows.filter(server=server)
            rows.update(number=F("number") + 1)
        except Error:
            logger.warning("Other processes learn of a change a second late.", exc_info=True)
        finally:
            # Once more: another thread may have kept what it read before the commit.
            generations.forget()

    try:
        transaction.on_commit(raise_once, using=alias, robust=True)
    except transaction.TransactionManagementError:
        # The site commits by hand, so there is nothing to hang this on.
        raise_once()


def read_number(server: str, *, otherwise: int) -> int:
    """Return the row's number, 0 without a row, `otherwise` where the database cannot say."""
    # A replica that lags would give an old number, or a new one with old rights.
    using = router.db_for_write(models.ExposureGeneration)
    rows = models.ExposureGeneration.objects.using(using).filter(server=server)
    try:
        with apart(using):
            return rows.values_list("number", flat=True).first() or 0
    except Error:
        return otherwise


# A change of anybody's rights raises the generation, so that nothing outlives it in memory.

#: Rows of ours that may be for some groups only.
WITH_GROUPS: tuple[Any, ...] = (
    models.ExposedModel,
    models.ExposedPrompt,
    models.ExposedTool,
    models.PromptTemplate,
)
#: Rows of ours that change what somebody gets. Each belongs to a server.
OWN = (
    *WITH_GROUPS,
    models.PersonalToken,
    models.ServerSettings,
    models.UserRestriction,
)


def own_changed(*, instance: Any, using: str, **kwargs: Any) -> None:
    invalidate(instance.server, using=using)


def row_changed(*, using: str, update_fields: Any = None, **kwargs: Any) -> None:
    # Each login writes this one, and it gives nobody a right.
    if update_fields is not None and set(update_fields) <= {"last_login"}:
        return
    invalidate(None, using=using)


def members_changed(*, action: str, using: str, **kwargs: Any) -> None:
    if action in {"post_add", "post_remove", "post_clear"}:
        invalidate(None, using=using)


def watch(receiver: Any, *signals: Any, sender: Any = None) -> None:
    """Connect a receiver. May be called again: it is connected once."""
    uid = f"{receiver.__module__}.{receiver.__name__}"
    for signal in signals:
        # Strongly, or it would be gone with the next garbage collection.
        signal.connect(receiver, sender=sender, weak=False, dispatch_uid=uid)


def connect() -> None:
    """Watch our rows, users, groups and the tables between. No query; may be called again."""
    for own in OWN:
        watch(own_changed, post_save, post_delete, sender=own)
    # Not versions by the server of their prompt, which may be gone with them.
    for model in {models.PromptVersion, *models_of_rights(get_user_model())}:
        watch(row_changed, post_save, post_delete, sender=model)
    theirs = (row.groups.field for row in WITH_GROUPS)
    for field in (*theirs, *fields_of_rights(get_user_model())):
        watch(members_changed, m2m_changed, sender=field.remote_field.through)


def models_of_rights(user: type[Model]) -> Iterator[type[Model]]:
    """Yield users (proxies and children send signals of their own), groups, permissions, and the
    tables between them where a site has written those by hand.
    """
    yield from (model for model in user._meta.apps.get_models() if issubclass(model, user))
    for field in fields_of_rights(user):
        yield field.related_model
        if not field.remote_field.through._meta.auto_created:
            yield field.remote_field.through


def fields_of_rights(user: type[Model]) -> Iterator[Any]:
    """Yield fields that give rights: of the user to permissions, of the user to whatever has
    permissions (the site's own groups or roles count), and of those to permissions.
    """
    for field in user._meta.many_to_many:
        inner = list(filter(leads_to_permissions, field.related_model._meta.many_to_many))
        if inner or leads_to_permissions(field):
            yield field
            yield from inner


def leads_to_permissions(field: Any) -> bool:
    return bool(field.related_model._meta.label_lower == "auth.permission")
