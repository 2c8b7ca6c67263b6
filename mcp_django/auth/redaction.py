"""Credentials are taken out of log records before any handler, file or log service sees them.

A filter on a logger never sees the records of its children, and handlers come and go whenever
logging is configured again. So the work is done where records are born, in the record factory; and
since `extra` is added to a record after its birth, the factory sees to it that every handler which
will get the record carries the filter, too.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from mcp_django.conf import get_config
from mcp_django.token_secrets import PATTERN

#: With everything below them.
LOGGERS = (
    "mcp_django",
    "mcp_django.calls",
    "django.request",
    "django.server",
    "daphne",
    "oauth2_provider",
    "oauthlib",
)
REDACTED = "[redacted]"
#: Containers within containers that are looked into.
DEEPEST = 4

_token = re.compile(PATTERN)
# The value of a header in whatever clothes it is logged: "Authorization: Basic x", a dictionary, a
# list of pairs of bytes. It ends with the line or the quotation mark.
_header = re.compile(r"(?i)(authorization['\"]?\s*[:=,]\s*\(?(?:b?['\"])?)([^'\"\r\n]+)")
_bearer = re.compile(r"(?i)\b(bearer\s+)[\w\-.~+/]+=*", re.ASCII)

#: What every record has; the rest came as `extra`.
_own = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def redact(text: str) -> str:
    text = _token.sub(REDACTED, text)
    text = _header.sub(rf"\g<1>{REDACTED}", text)
    return _bearer.sub(rf"\g<1>{REDACTED}", text)


def cleaned(value: Any, *, depth: int = DEEPEST) -> Any:
    """The same value without credentials; containers are copied, what holds none stays itself."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, bytes):
        return redact(value.decode("latin-1")).encode("latin-1")
    if depth and isinstance(value, Mapping):
        return {
            key: REDACTED if names_credential(key) else cleaned(inner, depth=depth - 1)
            for key, inner in value.items()
        }
    if depth and type(value) in {list, tuple, set, frozenset}:
        return type(value)(cleaned_items(value, depth=depth - 1))
    return value


def cleaned_items(values: Any, *, depth: int) -> list[Any]:
    items = list(values)
    if len(items) == 2 and names_credential(items[0]):
        return [items[0], REDACTED]
    return [cleaned(item, depth=depth) for item in items]


def names_credential(key: Any) -> bool:
    name = key.decode("latin-1") if isinstance(key, bytes) else key
    return isinstance(name, str) and name.lower().endswith("authorization")


class RedactSecrets(logging.Filter):
    """Lets every record through, without its credentials. May be named in LOGGING, too."""

    def filter(self, record: logging.LogRecord) -> bool:
        if is_on():
            redact_record(record)
            for name in record.__dict__.keys() - _own:
                value = getattr(record, name)
                record.__dict__[name] = REDACTED if names_credential(name) else cleaned(value)
        return True


class WatchedOnly(RedactSecrets):
    """For handlers that also serve the site's own loggers, which are none of our business."""

    def filter(self, record: logging.LogRecord) -> bool:
        return super().filter(record) if is_watched(record.name) else True


def redact_record(record: logging.LogRecord) -> None:
    record.msg = cleaned(record.msg)
    record.args = cleaned(record.args)
    message = message_of(record)
    if redact(message) != message:
        # An object hid it until it was turned into text.
        record.msg, record.args = redact(message), None
    if record.exc_info and not record.exc_text:
        text = logging.Formatter().formatException(record.exc_info)
        if redact(text) != text:
            # Formatters take this text where there is one. Otherwise they may make their own.
            record.exc_text = text
    if record.exc_text:
        record.exc_text = redact(record.exc_text)
    if record.stack_info:
        record.stack_info = redact(record.stack_info)


def message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # whatever an argument's __str__ raises: logging reports it, not we
        return ""


def is_watched(name: object) -> bool:
    return isinstance(name, str) and any(
        name == logger or name.startswith(f"{logger}.") for logger in LOGGERS
    )


def is_on() -> bool:
    try:
        return get_config().redact_logs
    except ImproperlyConfigured:
        return True


class RedactingFactory:
    """Django and logging call it for each new record."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def __call__(self, name: Any, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record: logging.LogRecord = self.wrapped(name, *args, **kwargs)
        if is_watched(name):
            for handler in handlers_of(name):
                guard(handler)
            if is_on():
                redact_record(record)
        return record


def handlers_of(name: str) -> Iterator[logging.Handler]:
    """Every handler that gets a record of this logger."""
    logger: logging.Logger | None = logging.getLogger(name)
    while logger is not None:
        yield from logger.handlers
        logger = logger.parent if logger.propagate else None
    if logging.lastResort is not None:
        yield logging.lastResort


def guard(handler: logging.Handler) -> None:
    if not any(isinstance(one, RedactSecrets) for one in handler.filters):
        handler.addFilter(_watched_only)


_watched_only = WatchedOnly()


def install() -> None:
    """Redact from now on, while REDACT_LOGS is on. Calling it again changes nothing."""
    factory = logging.getLogRecordFactory()
    if not isinstance(factory, RedactingFactory):
        logging.setLogRecordFactory(RedactingFactory(factory))
    for name in LOGGERS:
        for handler in handlers_of(name):
            guard(handler)
