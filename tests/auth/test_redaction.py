from __future__ import annotations

import io
import logging
import logging.config
import re
from contextlib import suppress
from pathlib import Path

import pytest

import mcp_django
from mcp_django.auth.redaction import LOGGERS, RedactSecrets, install, redact
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
        ("POST /mcp?access_token=opaque-1 401", "POST /mcp?access_token=[redacted] 401"),
        ("?a=1&access_token=x.y&b=2", "?a=1&access_token=[redacted]&b=2"),
        ("authorization is needed", "authorization is needed"),
        ("mcp_django started", "mcp_django started"),
    ],
)
def test_credentials_are_found_in_whatever_clothes(text, clean):
    assert redact(text) == clean


def test_every_logger_of_the_package_is_named():
    sources = Path(mcp_django.__file__).parent.rglob("*.py")
    named = re.findall(r"getLogger\((.*?)\)", "\n".join(one.read_text() for one in sources))

    assert {one.strip("\"'") for one in named} - {"name"} == set(LOGGERS)


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
    # As runserver, the runserver of Daphne and uvicorn write addresses.
    "path": lambda logger: logger.info('"%s" %s', "POST /mcp?access_token=opaque HTTP/1.1", "401"),
    "named path": lambda logger: logger.info(
        "%(path)s", {"path": "/?access_token=opaque", "s": 1}
    ),
    "path of several": lambda logger: logger.info('"%s %s" %d', "POST", "?access_token=opaque", 4),
    "extra": lambda logger: logger.info("got", extra={"note": f"see {SECRET}"}),
    "extra header": lambda logger: logger.info("got", extra={"authorization": SECRET}),
    "extra headers": lambda logger: logger.info("got", extra={"scope": {"h": [[SECRET]]}}),
    "extra pairs": lambda logger: logger.info("got", extra={"h": [(b"authorization", b"opaque")]}),
    "stack": lambda logger: logger.info("got", stack_info=True),
    "broken": lambda logger: logger.info(f"got {SECRET} %s", Broken()),
}


@pytest.mark.parametrize("name", ["mcp_django.calls", "shop"])
@pytest.mark.parametrize("log", LOGGED.values(), ids=LOGGED)
def test_no_part_of_a_record_of_ours_or_for_a_handler_with_the_filter_holds_a_token(
    keep, log, name, monkeypatch
):
    monkeypatch.setattr(logging, "raiseExceptions", False)
    if name not in LOGGERS:
        keep.addFilter(RedactSecrets())

    log(logging.getLogger(name))

    assert keep.records
    assert SECRET not in keep.text
    assert "opaque" not in keep.text


def test_a_traceback_holds_no_token_and_others_stay_as_they_are(keep):
    for message in (f"bad {SECRET}", "bad luck"):
        try:
            raise ValueError(message)
        except ValueError:
            logging.getLogger("mcp_django").exception("Internal error")

    thing = object()
    logging.getLogger("mcp_django").info("%s %d %s %s", thing, 3, [1, (2, {3})], {"a": 1})

    first, second, third = keep.records
    assert third.args == (thing, 3, [1, (2, {3})], {"a": 1})
    assert "ValueError: bad [redacted]" in first.exc_text
    assert first.exc_text.startswith("Traceback")
    assert "ValueError: bad luck" in second.exc_text


@requirement("logs:credentials")
@pytest.mark.parametrize(
    ("logger", "options", "is_redacted"),
    [
        *((name, {}, True) for name in LOGGERS),
        ("shop", {}, False),
        ("mcp_djangonaut", {}, False),
        ("mcp_django", {"REDACT_LOGS": False}, False),
        # A setting that cannot be read leaves it on.
        ("mcp_django", {"REDACT_LOG": False}, True),
    ],
)
def test_our_loggers_are_redacted_unless_the_site_switches_that_off(
    settings, keep, caplog, monkeypatch, logger, options, is_redacted
):
    settings.MCP_DJANGO = options
    caplog.set_level(logging.INFO, logger=logger)
    monkeypatch.setattr(logging.getLogger(logger), "propagate", True)

    logging.getLogger(logger).info("got %s", SECRET, extra={"note": SECRET})

    assert "got " in keep.text
    assert (SECRET not in keep.text) is is_redacted


def test_a_new_configuration_of_logging_takes_nothing_away():
    stream = io.StringIO()
    logger = logging.getLogger("mcp_django")
    before = logging.getLogger().level, logger.level, logger.propagate
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "handlers": {"late": {"class": "logging.StreamHandler", "stream": stream}},
            "loggers": {
                "mcp_django": {"handlers": ["late"], "level": "DEBUG", "propagate": False}
            },
        }
    )
    try:
        logger.debug("got %s", SECRET)
    finally:
        logger.handlers = []
        level, logger.level, logger.propagate = before
        logging.getLogger().setLevel(level)

    assert stream.getvalue() == "got [redacted]\n"
    # Installing again changes nothing.
    install()
    for name in LOGGERS:
        filters = logging.getLogger(name).filters
        assert len([one for one in filters if isinstance(one, RedactSecrets)]) == 1
