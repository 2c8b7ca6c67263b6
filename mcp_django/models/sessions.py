"""What the store "database" remembers of clients. Only `stores/database*.py` touches these rows.

They are written and deleted without signals, many at a time.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.constraints import UniqueConstraint

from mcp_django.principal import DEFAULT_SERVER

if TYPE_CHECKING:
    AnyText = models.TextField[Any, Any]
else:
    AnyText = models.TextField

LONGEST_KEY = 64
LONGEST_OWNER = 100


class JSONText(AnyText):
    """JSON in ASCII. A JSONField refuses characters on PostgreSQL that a client may well send."""

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> Any:
        return None if value is None else json.loads(value)

    def get_prep_value(self, value: Any) -> str:
        return json.dumps(value)


class StoreRow(models.Model):
    """A row of the store. Its text is the start of its primary key."""

    class Meta:
        abstract = True
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.pk)[:12]


class Session(StoreRow):
    """One legacy client between its handshake and its end."""

    #: The hash of its id.
    key = models.CharField(max_length=LONGEST_KEY, primary_key=True)
    server = models.CharField(max_length=50, default=DEFAULT_SERVER)
    principal = models.CharField(max_length=255)
    user = models.CharField(max_length=255, blank=True)
    transport = models.CharField(max_length=20)
    revision = models.CharField(max_length=20)
    client = JSONText()
    capabilities = JSONText()
    is_initialized = models.BooleanField(default=False)
    log_level = models.CharField(max_length=20, null=True)  # noqa: DJ001  null: the client never said
    created = models.DateTimeField()
    seen = models.DateTimeField(db_index=True)
    #: Who has the standalone stream.
    standalone = models.CharField(max_length=LONGEST_OWNER, blank=True)

    class Meta:
        default_permissions = ("view", "delete")


class Subscription(StoreRow):
    session = models.ForeignKey(Session, on_delete=models.CASCADE, db_index=False)
    #: Of the URI, which is too long for an index.
    digest = models.CharField(max_length=64)
    uri = JSONText()

    class Meta(StoreRow.Meta):
        constraints = [
            UniqueConstraint(fields=["session", "digest"], name="mcp_one_subscription_per_uri")
        ]


class EventLog(StoreRow):
    """What was sent on one stream of a session."""

    key = models.CharField(max_length=LONGEST_KEY, unique=True)
    session = models.ForeignKey(Session, on_delete=models.CASCADE)
    owner = models.CharField(max_length=LONGEST_OWNER)
    #: The id of the request that is answered there, as JSON.
    request = models.TextField(default="null")
    #: Numbers of the oldest event that is kept, and of the last one. None: last is first - 1.
    first = models.BigIntegerField(default=1)
    last = models.BigIntegerField(default=0)
    #: Bytes of the events that are kept.
    size = models.PositiveBigIntegerField(default=0)
    #: Since when nothing follows.
    final_since = models.DateTimeField(null=True, db_index=True)


class LogEvent(StoreRow):
    log = models.ForeignKey(EventLog, on_delete=models.CASCADE, db_index=False)
    number = models.BigIntegerField()
    data = models.BinaryField()
    size = models.PositiveBigIntegerField()

    class Meta(StoreRow.Meta):
        constraints = [UniqueConstraint(fields=["log", "number"], name="mcp_one_event_per_number")]


class OpenQuestion(StoreRow):
    """A request of ours to a client."""

    #: Of its id: a client may send any text as one.
    digest = models.CharField(max_length=64, primary_key=True)
    session = models.ForeignKey(Session, on_delete=models.CASCADE)
    owner = models.CharField(max_length=LONGEST_OWNER)
    asked = models.DateTimeField()
    answer = models.BinaryField(null=True)


class LiveStream(StoreRow):
    """An open stream of any era."""

    key = models.CharField(max_length=LONGEST_KEY, primary_key=True)
    owner = models.CharField(max_length=LONGEST_OWNER)
    server = models.CharField(max_length=50, default=DEFAULT_SERVER)
    principal = models.CharField(max_length=255)
    user = models.CharField(max_length=255, blank=True)
    client = JSONText()
    kind = models.CharField(max_length=20)
    revision = models.CharField(max_length=20)
    session = models.CharField(max_length=LONGEST_KEY, blank=True)
    topics = JSONText()
    opened = models.DateTimeField()

    class Meta:
        default_permissions = ("view", "delete")


class Lease(StoreRow):
    """A process that makes events, and when it last said that it lives."""

    owner = models.CharField(max_length=LONGEST_OWNER, primary_key=True)
    renewed = models.DateTimeField()
