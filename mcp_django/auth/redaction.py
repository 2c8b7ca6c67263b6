"""Credentials are taken out of the records of our own loggers, before any handler gets them.

A filter on a logger does not see the records of its children, so each of our loggers has it. For
the records of others, a site puts the same filter on its handlers.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import unquote_plus

from django.core.exceptions import ImproperlyConfigured

from mcp_django.conf import get_config
from mcp_django.token_secrets import PATTERN

#: All that this package writes to.
LOGGERS = (
    "mcp_django",
    "mcp_django.auth",
    "mcp_django.calls",
    "mcp_django.generation",
    "mcp_django.serve",
    "mcp_django.streams",
    "mcp_django.subscriptions",
)
REDACTED = "[redacted]"

_token = re.compile(PATTERN)
# The value of a header in whatever clothes it is logged: "Authorization: Basic x", a dictionary, a
# list of pairs of bytes. It ends with the line or the quotation mark.
_header = re.compile(r"(?i)(authorization['\"]?\s*[:=,]\s*\(?(?:b?['\"])?)([^'\"\r\n]+)")
_bearer = re.compile(r"(?i)\b(bearer\s+)[\w\-.~+/]+=*", re.ASCII)
# RFC 6750, 2.3: where a token must not stand, and does in some access log.
_parameter = re.compile(r"(?i)\b(access_token=)[^&\s'\"]+")

#: What every record has; the rest came as `extra`.
_own = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def redact(text: str) -> str:
    text = _token.sub(REDACTED, text)
    text = _header.sub(rf"\g<1>{REDACTED}", text)
    text = _bearer.sub(rf"\g<1>{REDACTED}", text)
    return _parameter.sub(rf"\g<1>{REDACTED}", text)


def holds_credential(query: str) -> bool:
    """Whether a query string has what a log must not have."""
    plain = unquote_plus(query)
    return redact(plain) != plain


def cleaned(value: Any, *, depth: int = 4) -> Any:
    """Copy containers without their credentials, `depth` deep. What holds none stays itself."""
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
        items = list(value)
        if len(items) == 2 and names_credential(items[0]):
            return type(value)([items[0], REDACTED])
        return type(value)([cleaned(item, depth=depth - 1) for item in items])
    return value


def names_credential(key: Any) -> bool:
    name = key.decode("latin-1") if isinstance(key, bytes) else key
    return isinstance(name, str) and name.lower().endswith("authorization")


class RedactSecrets(logging.Filter):
    """Lets every record through, without its credentials.

    Ours have it on their loggers. In LOGGING, a site names it as a filter of its handlers.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            is_on = get_config().redact_logs
        except ImproperlyConfigured:
            is_on = True
        if is_on:
            for name in record.__dict__.keys() - _own:
                value = getattr(record, name)
                record.__dict__[name] = REDACTED if names_credential(name) else cleaned(value)
            redact_texts(record)
        return True


def redact_texts(record: logging.LogRecord) -> None:
    record.msg, record.args = cleaned(record.msg), cleaned(record.args)
    # Whatever an argument's __str__ raises: logging reports it, not we.
    with suppress(Exception):
        message = record.getMessage()
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


def install() -> None:
    """Redact from now on, while REDACT_LOGS is on. Calling it again changes nothing."""
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_filter)


_filter = RedactSecrets()
