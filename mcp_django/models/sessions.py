"""What the store "database" remembers of clients. Only `stores/database*.py` touches these rows.

They are written and deleted without signals, many at a time.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.db.models import (
    CASCADE,
    BigIntegerField,
    BinaryField,
    BooleanField,
    CharField,
    DateTimeField,
    ForeignKey,
    Model,
    PositiveBigIntegerField,
    TextField,
    UniqueConstraint,
)

from mcp_django.principal import DEFAULT_SERVER

if TYPE_CHECKING:
    AnyText = TextField[Any, Any]
else:
    AnyText = TextField

LONGEST_KEY = 64
LONGEST_OWNER = 100


class JSONText(AnyText):
    """JSON in ASCII. A JSONField refuses characters on PostgreSQL that a client may well send."""

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> Any:
        return None if value is None else json.loads(value)

    def get_prep_value(self, value: Any) -> str:
        return json.dumps(value)


class Session(Model):
    """One legacy client between its handshake and its end."""

    #: The hash of its id.
    key = CharField(max_length=LONGEST_KEY, primary_key=True)
    server = CharField(max_length=50, default=DEFAULT_SERVER)
    principal = CharField(max_length=255)
    user = CharField(max_length=255, blank=True)
    transport = CharField(max_length=20)
    revision = CharField(max_length=20)
    client = JSONText()
    capabilities = JSONText()
    is_initialized = BooleanField(default=False)
    log_level = CharField(max_length=20, null=True)  # noqa: DJ001  null: the client never said
    created = DateTimeField()
    seen = DateTimeField(db_index=True)
    #: Who has the standalone stream.
    standalone = CharField(max_length=LONGEST_OWNER, blank=True)

    class Meta:
        default_permissions = ("view", "delete")

    def __str__(self) -> str:
        return self.key[:12]


class Subscription(Model):
    session = ForeignKey(Session, on_delete=CASCADE, db_index=False)
    #: Of the URI, which is too long for an index.
    digest = CharField(max_length=64)
    uri = JSONText()

    class Meta:
        default_permissions = ()
        constraints = [
            UniqueConstraint(fields=["session", "digest"], name="mcp_one_subscription_per_uri")
        ]

    def __str__(self) -> str:
        return str(self.uri)


class EventLog(Model):
    """What was sent on one stream of a session."""

    key = CharField(max_length=LONGEST_KEY, unique=True)
    session = ForeignKey(Session, on_delete=CASCADE)
    owner = CharField(max_length=LONGEST_OWNER)
    #: The id of the request that is answered there, as JSON.
    request = TextField(default="null")
    #: Numbers of the oldest event that is kept, and of the last one. None: last is first - 1.
    first = BigIntegerField(default=1)
    last = BigIntegerField(default=0)
    #: Bytes of the events that are kept.
    size = PositiveBigIntegerField(default=0)
    #: Since when nothing follows.
    final_since = DateTimeField(null=True, db_index=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.key[:12]


class LogEvent(Model):
    log = ForeignKey(EventLog, on_delete=CASCADE, db_index=False)
    number = BigIntegerField()
    data = BinaryField()
    size = PositiveBigIntegerField()

    class Meta:
        default_permissions = ()
        constraints = [UniqueConstraint(fields=["log", "number"], name="mcp_one_event_per_number")]

    def __str__(self) -> str:
        return str(self.number)


class OpenQuestion(Model):
    """A request of ours to a client."""

    #: Of its id: a client may send any text as one.
    digest = CharField(max_length=64, primary_key=True)
    session = ForeignKey(Session, on_delete=CASCADE)
    owner = CharField(max_length=LONGEST_OWNER)
    asked = DateTimeField()
    answer = BinaryField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.digest[:12]


class LiveStream(Model):
    """An open stream of any era."""

    key = CharField(max_length=LONGEST_KEY, primary_key=True)
    owner = CharField(max_length=LONGEST_OWNER)
    server = CharField(max_length=50, default=DEFAULT_SERVER)
    principal = CharField(max_length=255)
    user = CharField(max_length=255, blank=True)
    client = JSONText()
    kind = CharField(max_length=20)
    revision = CharField(max_length=20)
    session = CharField(max_length=LONGEST_KEY, blank=True)
    topics = JSONText()
    opened = DateTimeField()

    class Meta:
        default_permissions = ("view", "delete")

    def __str__(self) -> str:
        return self.key[:12]


class Lease(Model):
    """A process that makes events, and when it last said that it lives."""

    owner = CharField(max_length=LONGEST_OWNER, primary_key=True)
    renewed = DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.owner
