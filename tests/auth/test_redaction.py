from __future__ import annotations

import io
import json
import logging
import logging.config
from contextlib import suppress

import pytest

from mcp_django.auth.redaction import (
    LOGGERS,
    RedactingFactory,
    RedactSecrets,
    handlers_of,
    install,
    redact,
)
from mcp_django.token_secrets import new_secret
from tests.spec import requirement

SECRET = new_secret()


class Keep(logging.Handler):
    """What a file, a console or a log service would get."""

    def __init__(self):
        super().__init__()
        self.records = []
        self.text = ""

    def emit(self, record):
        self.records.append(record)
        with suppress(ValueError):
            self.text += self.format(record)
        self.text += repr(record.__dict__)


@pytest.fixture
def keep(caplog):
    """A handler on the root, added after everything was installed."""
    caplog.set_level(logging.DEBUG)
    handler = Keep()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


class Header:
    def __str__(self):
        return f"Bearer {SECRET}"


class Broken:
    def __str__(self):
        raise ValueError


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"token {SECRET}.", "token [redacted]."),
        ("Authorization: Basic YWxpY2U6cHc=", "Authorization: [redacted]"),
        ("{'Authorization': 'Token abc', 'A': 1}", "{'Authorization': '[redacted]', 'A': 1}"),
        ('"HTTP_AUTHORIZATION": "Token abc"', '"HTTP_AUTHORIZATION": "[redacted]"'),
        ("[(b'authorization', b'Basic abc')]", "[(b'authorization', b'[redacted]')]"),
        ("got Bearer abc.def-ghi_jkl~mno+pqr/=", "got Bearer [redacted]"),
        ("authorization is needed", "authorization is needed"),
        ("mcp_django started", "mcp_django started"),
    ],
)
def test_credentials_are_found_in_whatever_clothes(text, clean):
    assert redact(text) == clean


@requirement("logs:credentials")
@pytest.mark.parametrize("name", [*LOGGERS, "mcp_django.deep.below", "daphne.http"])
def test_no_watched_logger_lets_a_token_through(keep, name, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG, logger=name)
    monkeypatch.setattr(logging.getLogger(name), "propagate", True)

    logging.getLogger(name).debug("Called with %s.", SECRET)

    assert "Called with [redacted]." in keep.text
    assert SECRET not in keep.text


LOGGED = {
    "message": lambda logger: logger.info(f"got {SECRET}"),
    "argument": lambda logger: logger.info("got %s", SECRET),
    "named argument": lambda logger: logger.info("got %(key)s", {"key": SECRET}),
    "bytes": lambda logger: logger.info("got %r", SECRET.encode()),
    "object": lambda logger: logger.info("got %s", Header()),
    "object as message": lambda logger: logger.info(Header()),
    "headers": lambda logger: logger.info("%s", {"Authorization": f"Token {SECRET}"}),
    "pairs": lambda logger: logger.info("%s", [(b"authorization", SECRET.encode())]),
    "pair": lambda logger: logger.info("%s: %s", "Authorization", f"Digest {SECRET}"),
    "extra": lambda logger: logger.info("got", extra={"note": f"see {SECRET}"}),
    "extra header": lambda logger: logger.info("got", extra={"authorization": SECRET}),
    "extra headers": lambda logger: logger.info("got", extra={"scope": {"h": [[SECRET]]}}),
    "stack": lambda logger: logger.info("got", stack_info=True),
    "broken": lambda logger: logger.info(f"got {SECRET} %s", Broken()),
}


@pytest.mark.parametrize("log", LOGGED.values(), ids=LOGGED)
def test_no_part_of_a_record_holds_a_token(keep, log, monkeypatch):
    monkeypatch.setattr(logging, "raiseExceptions", False)
    keep.setFormatter(logging.Formatter("%(name)s"))

    log(logging.getLogger("mcp_django.calls"))

    assert keep.records
    assert SECRET not in keep.text


def test_a_traceback_holds_no_token_and_others_stay_as_they_are(keep):
    for message in (f"bad {SECRET}", "bad luck"):
        try:
            raise ValueError(message)
        except ValueError:
            logging.getLogger("django.request").exception("Internal error")

    first, second = keep.records
    assert "ValueError: bad [redacted]" in first.exc_text
    assert first.exc_text.startswith("Traceback")
    assert "ValueError: bad luck" in second.exc_text


def test_arguments_without_credentials_stay_what_they_are(keep):
    thing = object()

    logging.getLogger("mcp_django").info("%s %d %s %s", thing, 3, [1, (2, {3})], {"a": 1})

    assert keep.records[0].args == (thing, 3, [1, (2, {3})], {"a": 1})


def test_other_loggers_are_none_of_our_business(keep):
    logging.getLogger("shop").info("got %s", SECRET)
    logging.getLogger("mcp_djangonaut").info("got %s", SECRET)

    assert [one.getMessage() for one in keep.records] == [f"got {SECRET}"] * 2


def test_a_site_may_switch_it_off(settings, keep):
    settings.MCP_DJANGO = {"REDACT_LOGS": False}

    logging.getLogger("mcp_django").info("got %s", SECRET, extra={"note": SECRET})

    assert f"got {SECRET}" in keep.text


def test_a_setting_that_cannot_be_read_leaves_it_on(settings, keep):
    settings.MCP_DJANGO = {"REDACT_LOG": False}

    logging.getLogger("mcp_django").info("got %s", SECRET, extra={"note": SECRET})

    assert SECRET not in keep.text


def test_installing_again_changes_nothing(keep):
    install()
    before = logging.getLogRecordFactory()

    install()

    assert isinstance(before, RedactingFactory)
    assert logging.getLogRecordFactory() is before
    assert len([one for one in keep.filters if isinstance(one, RedactSecrets)]) == 1


def test_handlers_that_a_new_configuration_brings_are_guarded():
    stream = io.StringIO()
    root = logging.getLogger()
    before = list(root.handlers), root.level
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"plain": {"format": "%(message)s %(note)s"}},
            "handlers": {
                "late": {
                    "class": "logging.StreamHandler",
                    "stream": stream,
                    "formatter": "plain",
                }
            },
            "loggers": {"oauthlib": {"handlers": ["late"], "level": "DEBUG", "propagate": False}},
        }
    )
    try:
        logging.getLogger("oauthlib.oauth2").debug("got %s", SECRET, extra={"note": SECRET})
    finally:
        logger = logging.getLogger("oauthlib")
        logger.handlers, logger.propagate = [], True
        root.handlers, root.level = before

    assert stream.getvalue() == "got [redacted] [redacted]\n"


def test_another_record_factory_of_the_site_is_kept():
    ours = logging.getLogRecordFactory()

    def stamped(*args, **kwargs):
        record = logging.LogRecord(*args, **kwargs)
        record.stamp = "site"
        return record

    logging.setLogRecordFactory(stamped)
    try:
        install()
        record = logging.getLogger("mcp_django").makeRecord(
            "mcp_django", logging.INFO, __file__, 1, f"got {SECRET}", (), None
        )
    finally:
        logging.setLogRecordFactory(ours)

    assert vars(record)["stamp"] == "site"
    assert record.msg == "got [redacted]"


def test_records_from_other_processes_come_through():
    record = logging.makeLogRecord({"name": "mcp_django", "msg": "x"})

    assert record.getMessage() == "x"


def test_a_logger_that_keeps_its_records_reaches_its_own_handlers_only(monkeypatch):
    logger, handler = logging.getLogger("mcp_django.alone"), Keep()
    monkeypatch.setattr(logger, "propagate", False)
    monkeypatch.setattr(logger, "handlers", [handler])
    monkeypatch.setattr(logging, "lastResort", None)

    assert list(handlers_of("mcp_django.alone")) == [handler]


def test_the_filter_serves_handlers_that_a_site_configures_itself():
    stream = io.StringIO()
    logger = logging.Logger("shop")
    handler = logging.StreamHandler(stream)
    handler.addFilter(RedactSecrets())
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.addHandler(handler)

    logger.warning(json.dumps({"authorization": f"Bearer {SECRET}"}))

    assert stream.getvalue() == '{"authorization": "[redacted]"}\n'
