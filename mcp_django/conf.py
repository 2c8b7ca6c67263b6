"""The `MCP_DJANGO` setting, read once and typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.dispatch import receiver

from mcp_django.version import __version__

#: Values of the setting `registration`.
REGISTRATION = ("manual", "cimd", "cimd+dcr")


@dataclass(frozen=True, kw_only=True)
class Config:
    """Every setting, with its default. A key of `MCP_DJANGO` is the field's name in capitals."""

    #: What clients show as the server's name.
    name: str = "Django"
    #: What clients show as the server's version.
    version: str = __version__
    #: Told to every client on connecting: what the site is about and how to start. Empty: a few
    #: sentences that fit every site.
    instructions: str = ""
    #: Origin of public addresses, such as "https://shop.example.com". Never the request's Host.
    public_url: str = ""
    #: Authenticators in order, dotted paths or instances: the first that knows a credential
    #: decides. None: personal tokens, and access tokens of this site where mcp_django.oauth is
    #: installed.
    authenticators: Sequence[Any] | None = None
    #: Clients that may ask people to sign in: "manual" for those that staff entered, "cimd" for
    #: those that publish a document about themselves as well, "cimd+dcr" for all that register
    #: themselves.
    registration: str = "cimd"
    #: Names of the admin sites whose rules apply, in order.
    admin_sites: Sequence[str] = ("admin",)
    #: Apps and models, such as "shop" or "shop.order", that staff may open where code did not
    #: register them. None: every model of those admin sites.
    staff_may_open: Sequence[str] | None = None
    #: Apps and models of whose records the log of the admin keeps the values before and after each
    #: change by an assistant, so that it can be undone.
    keep_changes: Sequence[str] = ()
    #: Values of Origin that browsers may send, besides PUBLIC_URL and, on loopback, loopback. Only
    #: pages of these may read the answers.
    allowed_origins: Sequence[str] = ()
    #: Which of MIDDLEWARE runs round a call: "auto", "project", "none" or a list of dotted paths.
    run_middleware: str | Sequence[str] = "auto"
    #: No tool that writes exists on this site.
    read_only: bool = False
    #: Answer at /health behind the endpoint whether this process can answer calls.
    health: bool = False

    #: Longest request body, in bytes.
    max_body: int = 4 * 1024 * 1024
    #: Deepest nesting of a JSON body.
    max_depth: int = 64
    #: Most messages in one batch (revision 2025-03-26 only).
    max_batch: int = 50
    #: Longest answer, in bytes. A longer page ends early, with a cursor.
    max_response: int = 1024 * 1024
    #: Longest answer about records that a client may put before a model, in bytes. A longer page
    #: ends early, and of a longer record the texts are cut. Clients known to hold less get less.
    answer_budget: int = 50_000
    #: Endpoints of a REST API that are tools of their own. With more, three tools stand in.
    most_endpoint_tools: int = 12
    #: Largest file that an argument of a tool may hold, in bytes. It travels as base64 in a body.
    max_file: int = 2 * 1024 * 1024
    #: Largest file that a person may put into the admin for assistants, in bytes. It stands in the
    #: database for a day.
    max_upload: int = 5 * 1024 * 1024
    #: Rows in a page when the caller names no limit.
    page_size: int = 25
    #: Most rows that a caller may ask for at once.
    max_page_size: int = 200
    #: Definitions in one page of a list method.
    list_page_size: int = 100
    #: Calls that one principal may make in a minute.
    calls_per_minute: int = 600
    #: Dry runs that one principal may ask for in a minute.
    dry_runs_per_minute: int = 60
    #: Seconds that dry runs of one principal may take in a minute, all together.
    dry_run_seconds_per_minute: float = 10.0
    #: Completions that one principal may ask for in a minute.
    completions_per_minute: int = 300
    #: Calls of one method that may fail in a minute, for each principal.
    failures_per_minute: int = 100
    #: Throttle classes of Django REST framework that are asked about each call: dotted paths.
    throttles: Sequence[str] = ()

    #: Seconds that a tool may run.
    tool_timeout: float = 60.0
    #: Seconds that one database statement may run.
    statement_timeout: float = 5.0
    #: Threads for built-in methods and tools. None: 2 on SQLite, else 4.
    query_threads: int | None = None
    #: Threads for tools of the project.
    work_threads: int = 4
    #: Calls that may wait for a thread, in each lane, a quarter of them of one user. More are told
    #: that the server is busy.
    max_waiting: int = 200

    #: The alias in CACHES of the cache in which the legacy era's sessions and their streams are.
    session_cache: str = "default"
    #: Seconds without a request after which a session is forgotten.
    session_idle: float = 1800.0

    #: Open streams of one principal.
    max_streams_per_principal: int = 64
    #: Open streams of one process.
    max_streams: int = 4096
    #: Resources that one stream or session may subscribe to.
    max_subscriptions: int = 256

    #: Days until a personal token expires when its maker names no date.
    token_days: int = 90
    #: Most days that a personal token may live.
    token_max_days: int = 365
    #: Keep a record of each call in the database.
    audit: bool = True
    #: With its arguments, redacted and cut.
    audit_arguments: bool = False
    #: Days that `manage.py mcp_prune` leaves records of calls.
    audit_days: int = 30
    #: Strip credentials from the records of the loggers of this package.
    redact_logs: bool = True


@lru_cache(maxsize=1)
def get_config() -> Config:
    """Return the settings in force. Raises ImproperlyConfigured for a key that does not exist."""
    given: Mapping[str, Any] = getattr(settings, "MCP_DJANGO", {})
    known = {one.name.upper() for one in fields(Config)}
    if not isinstance(given, Mapping):
        raise ImproperlyConfigured("MCP_DJANGO is not a dictionary.")
    unknown = sorted(map(str, set(given) - known))
    if unknown:
        raise ImproperlyConfigured(f"Unknown keys in MCP_DJANGO: {', '.join(unknown)}.")
    return Config(**{name.lower(): value for name, value in given.items()})


@receiver(setting_changed)
def forget_config(*, setting: str, **kwargs: Any) -> None:
    if setting == "MCP_DJANGO":
        get_config.cache_clear()
