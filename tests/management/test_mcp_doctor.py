"""`mcp_doctor` and the site itself. What it finds at an address: test_mcp_doctor_url.py."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from channels.layers import InMemoryChannelLayer
from django.core.cache.backends.locmem import LocMemCache
from django.core.management import BaseCommand, CommandError, call_command
from django.db import connection, connections
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from mcp_django.management.commands.mcp_doctor import Command
from mcp_django.models import PersonalToken, ServerSettings, UserRestriction
from tests.children import finished
from tests.docs.pages import ROOT, table
from tests.exposure.query.test_rows import pooled  # noqa: F401  a fixture
from tests.shop.models import Ledger

pytestmark = pytest.mark.django_db
HERE = __name__
WARNINGS = ["mcp_django.W002", "mcp_django.W014"]


class WorkingLayer(InMemoryChannelLayer):
    """Another backend than the one that links no processes."""


class BrokenLayer(InMemoryChannelLayer):
    async def send(self, channel, message):
        raise ConnectionError("Connection refused")


class BrokenCache(LocMemCache):
    def set(self, *args, **kwargs):
        raise ConnectionError("Connection refused")


@pytest.fixture(autouse=True)
def no_address(configure):
    """Nothing is asked of any address."""
    configure(PUBLIC_URL="", AUTHENTICATORS=["mcp_django.auth.PersonalTokens"])


@pytest.fixture
def diagnose(capsys):
    """The exit status, and the findings."""

    def diagnose(*arguments):
        status = 0
        try:
            call_command("mcp_doctor", "--json", *arguments)
        except SystemExit as end:
            status = end.code
        return status, json.loads(capsys.readouterr().out)

    return diagnose


class Scene:
    """What a fault is made with."""

    def __init__(self, **fixtures):
        vars(self).update(fixtures)

    def use_cache(self, backend):
        self.settings.CACHES = {"default": {"BACKEND": backend}}

    def use_layer(self, name):
        self.settings.CHANNEL_LAYERS = {"default": {"BACKEND": f"{HERE}.{name}"}}

    def make_token(self, *, expires_in, used=None):
        user = self.make_user("ada")
        token, _ = PersonalToken.create(user=user, name="laptop")
        now = timezone.now()
        changes = {"expires_at": now + expires_in, "last_used_at": used and now + used}
        PersonalToken.objects.filter(pk=token.pk).update(**changes)


@pytest.fixture
def scene(settings, configure, make_user, expose):
    return Scene(
        settings=settings,
        configure=configure,
        make_user=make_user,
        expose=expose,
    )


def unapply(scene):
    MigrationRecorder(connections["default"]).record_unapplied("mcp_django", "0001_initial")


DAY = timedelta(days=1)
FAULTS = {
    "unapplied migration": (
        unapply, "error", "Not applied: mcp_django.0001_initial.", "python manage.py migrate",
    ),
    "locmem cache": (
        lambda scene: None, "warning", "one process keeps of a session", "in one Redis",
    ),
    "dummy cache": (
        lambda scene: scene.use_cache("django.core.cache.backends.dummy.DummyCache"),
        "error", "forgets at once what is written to it", '"SESSION_CACHE": ',
    ),
    "cache that is gone": (
        lambda scene: scene.use_cache(f"{HERE}.BrokenCache"),
        "error", "'default', does not answer: Connection refused.", "CACHES['default']",
    ),
    "cache without a name": (
        lambda scene: scene.configure(SESSION_CACHE="nothing"),
        "error", "'nothing', which is not in CACHES", '"SESSION_CACHE": "default"',
    ),
    "no channel layer": (
        lambda scene: None, "warning", "No channel layer links the processes", "channels_redis",
    ),
    "channel layer that is gone": (
        lambda scene: scene.use_layer("BrokenLayer"),
        "error", "does not bring a message back: Connection refused.", "Start the Redis",
    ),
    "unknown setting": (
        lambda scene: scene.configure(ALLOWED_ORIGIN=[]),
        "error", "unknown key 'ALLOWED_ORIGIN'", "Write 'ALLOWED_ORIGINS'.",
    ),
    "no authenticator": (
        lambda scene: scene.configure(AUTHENTICATORS=[]),
        "error", "AUTHENTICATORS'] is empty", "mcp_django.auth.PersonalTokens",
    ),
    "closed": (
        lambda scene: ServerSettings.objects.create(server="default", closed=True),
        "error", "Staff closed the server, so every call gets 503.", "Switch Closed off",
    ),
    "read-only": (
        lambda scene: scene.configure(READ_ONLY=True), "info", "The server is read-only", "",
    ),
    "blocked": (
        lambda scene: UserRestriction.objects.create(user=scene.make_user(), blocked=True),
        "info", "Users whose assistants are blocked: 1.", "User restrictions",
    ),
    "expired token": (
        lambda scene: scene.make_token(expires_in=-DAY, used=-2 * DAY),
        "warning", "of ada (laptop). Clients that still send them get 401.", "mcp_token create",
    ),
    "token that outlives the limit": (
        lambda scene: scene.make_token(expires_in=1000 * DAY),
        "warning", "live longer than the 365 days of TOKEN_MAX_DAYS", "mcp_token revoke",
    ),
    "secret field": (
        lambda scene: scene.expose(Ledger, fields=["amount", "pin"]),
        "warning", "shop.ledger opens fields that look secret: pin.", "exclude = ['pin']",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_site_is_named_with_what_to_type(diagnose, scene, fault):
    make, severity, sentence, hint = FAULTS[fault]
    make(scene)

    status, findings = diagnose()

    named = [one for one in findings if sentence in one["sentence"]]
    assert [one["severity"] for one in named] == [severity], findings
    assert hint in named[0]["hint"]
    assert status == ("error" in {one["severity"] for one in findings})


def test_a_site_without_faults_is_told_what_works(diagnose, scene, settings):
    scene.use_layer("WorkingLayer")
    settings.SILENCED_SYSTEM_CHECKS = [*WARNINGS, "mcp_django.E004", "mcp_django_oauth.E001"]

    status, findings = diagnose("--fail-level", "warning")

    assert status == 0
    working = [one["sentence"] for one in findings if one["severity"] == "ok"]
    # SQLite has no clock of its own.
    assert [one for one in working if "clock" not in one] == [
        "The database 'default' answers, and ends statements that take too long.",
        "The channel layer brings a message back.",
        "The cache of sessions, 'default', returns what is written to it.",
        "All migrations of this package are applied.",
        "Personal tokens that are valid: 0.",
    ]
    assert "warning" not in {one["severity"] for one in findings}


@pytest.mark.parametrize(
    "token", [("-1", None), ("-1", -31), ("1", -1)], ids=["never used", "long ago", "valid"]
)
def test_an_expired_token_that_nobody_misses_is_not_reported(diagnose, scene, token):
    days, used = token
    scene.make_token(expires_in=int(days) * DAY, used=used and used * DAY)

    _, findings = diagnose()

    assert not [one for one in findings if "expired" in one["sentence"]]


def test_warnings_fail_only_on_request_and_what_matters_for_deployment_not_in_debug(
    diagnose, settings
):
    settings.SILENCED_SYSTEM_CHECKS = ["mcp_django.E004", "mcp_django_oauth.E001"]

    deployed = [diagnose()[0], diagnose("--fail-level", "warning")[0]]
    settings.DEBUG = True
    status, findings = diagnose("--fail-level", "warning")

    assert deployed == [0, 1]
    assert status == 0
    assert [one["severity"] for one in findings if one["check"] in WARNINGS] == ["info", "info"]


@pytest.mark.thorough
@pytest.mark.needs("pgbouncer")
@pytest.mark.usefixtures("pooled")
@pytest.mark.skipif(connection.vendor != "postgresql", reason="it is for PostgreSQL only")
def test_a_pooler_is_noticed_and_its_site_told_to_use_no_cursors_of_the_server(
    diagnose, monkeypatch
):
    before = diagnose()[1]
    monkeypatch.setitem(connection.settings_dict, "DISABLE_SERVER_SIDE_CURSORS", True)
    after = diagnose()[1]

    noticed = [
        (one["severity"], one["hint"])
        for one in (*before, *after)
        if one["sentence"].startswith("A pooler such as PgBouncer stands in front")
    ]
    hint = """DATABASES['default']["DISABLE_SERVER_SIDE_CURSORS"] = True"""
    assert noticed == [("warning", hint), ("info", "")]
    assert "The database 'default' answers, and ends statements that take too long." in [
        one["sentence"] for one in after
    ]


GONE = """
from django.core.management import execute_from_command_line
from tests import settings
settings.DATABASES["default"]["NAME"] = "/nowhere/at/all"
settings.MCP_DJANGO = {}
execute_from_command_line(["manage.py", "mcp_doctor"])
"""


@pytest.mark.live
def test_a_database_that_is_gone_is_an_error_and_no_traceback():
    done = finished("-c", GONE, DJANGO_SETTINGS_MODULE="tests.settings")

    assert (done.returncode, done.stderr) == (1, "")
    assert "  error    The database 'default' does not answer: " in done.stdout
    assert "  ok       The cache of sessions" in done.stdout


def test_people_read_a_line_for_each_finding_and_below_it_what_to_type(capsys, scene):
    scene.configure(AUTHENTICATORS=[])

    with pytest.raises(SystemExit):
        call_command("mcp_doctor")

    lines = capsys.readouterr().out.splitlines()
    at = lines.index(
        "  error    mcp_django.E001: MCP_DJANGO['AUTHENTICATORS'] is empty, so every call is "
        "refused."
    )
    assert lines[0] == "The site"
    assert lines[at + 1] == '           > "AUTHENTICATORS": ["mcp_django.auth.PersonalTokens"]'


def test_the_page_of_the_docs_lists_every_option():
    parser = Command().create_parser("manage.py", "mcp_doctor")
    usual = BaseCommand().create_parser("manage.py", "mcp_doctor")

    rows = table(ROOT / "docs" / "howto" / "troubleshooting.md", "| Option | Means |")
    names = {one.dest: (one.option_strings or [one.metavar])[0] for one in parser._actions}
    ours = {names[dest] for dest in names.keys() - {one.dest for one in usual._actions}}
    assert {row[0].strip("`").split()[0] for row in rows} == ours


@pytest.mark.parametrize(
    "url", ["shop", "ftp://a/mcp", "https://me:pw@a/mcp", "http://[", "http://a:x"]
)
def test_what_is_no_address_is_refused(url):
    with pytest.raises(CommandError, match="Write the address as clients do"):
        call_command("mcp_doctor", url)


def test_what_is_no_token_is_refused_and_not_shown():
    with pytest.raises(CommandError) as refused:
        call_command("mcp_doctor", "--token", "mcp_abc\nX-Evil: 1")

    assert "abc" not in str(refused.value)
