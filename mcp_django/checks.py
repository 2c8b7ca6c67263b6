"""The system checks: mistakes in settings, exposures and prompts, before the first call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, fields
from difflib import get_close_matches
from functools import wraps
from itertools import chain
from typing import Any, TypeAlias, TypeGuard, cast
from urllib.parse import urlsplit

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_permission_codename
from django.core.checks import CheckMessage, Error, Info, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.urls import NoReverseMatch, reverse
from django.utils.module_loading import import_string

from mcp_django.auth.authenticators import Anonymous, DevUser, configured_authenticators, prepared
from mcp_django.auth.resource import issuers, metadata_url
from mcp_django.auth.throttles import throttle_class
from mcp_django.conf import REGISTRATION, Config, get_config
from mcp_django.exceptions import ServiceUnavailable
from mcp_django.exposure.checks import admins_of, check_attribute_names, check_lists
from mcp_django.exposure.fields import knows_zones
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import Declaration
from mcp_django.exposure.permissions import object_backends
from mcp_django.exposure.registry import registry
from mcp_django.stores.documents import is_shared, make_cache, missing_table
from mcp_django.transports.layer import links_processes
from mcp_django.transports.middleware import (
    AUTHENTICATION,
    CALLER,
    advice,
    chosen,
    middleware_before_caller,
)

Check: TypeAlias = Callable[..., list[CheckMessage]]

#: Backends that grant nothing to the bare name of a permission.
ONLY_OBJECTS = frozenset({"guardian.backends.ObjectPermissionBackend"})
#: In place of a type's name.
WORDS = {
    str: "a string",
    int: "a positive whole number",
    float: "a positive number",
    bool: "True or False",
    tuple: "a list",
}


def a_check(
    *tags: str, **options: Any
) -> Callable[[Callable[..., Iterator[CheckMessage]]], Check]:
    """Register a check that finds nothing while the settings themselves are wrong: see E003."""

    def decorate(find: Callable[..., Iterator[CheckMessage]]) -> Check:
        @wraps(find)
        def check(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
            return [] if check_settings() else list(find(**kwargs))

        return register(check, "mcp_django", *tags, **options)

    return decorate


@register("mcp_django")
def check_settings(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """E003: keys that do not exist, values that cannot be."""
    given = getattr(settings, "MCP_DJANGO", {})
    if not isinstance(given, Mapping):
        return [mistake("MCP_DJANGO is not a dictionary.", 'MCP_DJANGO = {"NAME": "Shop"}')]
    known = {one.name.upper(): one for one in fields(Config)}
    found: list[CheckMessage] = []
    for key, value in given.items():
        if key not in known:
            close = get_close_matches(str(key).upper(), known, n=1)
            keys = f"The keys are: {', '.join(sorted(known))}."
            hint = f"Write {close[0]!r}." if close else keys
            found.append(mistake(f"MCP_DJANGO has the unknown key {key!r}.", hint))
        elif (wanted := unmet(known[key], value)) is not None:
            hint = f"Set it to {wanted}, or remove it to have the default."
            sentence = f"MCP_DJANGO[{key!r}] is {value!r}: it must be {wanted}."
            found.append(mistake(sentence, hint))
    return found


def mistake(sentence: str, hint: str) -> Error:
    return Error(sentence, hint=hint, id="mcp_django.E003")


def unmet(setting: Field[Any], value: object) -> str | None:
    """What the value of a setting must be, unless it is that."""
    if setting.name == "run_middleware":
        return None if isinstance(value, str) or is_list_of_names(value) else "a string or a list"
    if setting.name == "query_threads":
        return None if value is None or is_positive(value, int) else "None or a positive number"
    if setting.name == "authenticators":
        return None if isinstance(value, list | tuple | None) else WORDS[tuple]
    if setting.name in ("staff_may_open", "keep_changes"):
        metas = [model._meta for model in apps.get_models()]
        labels = {name for opts in metas for name in (opts.app_label, opts.label_lower)}
        is_known = is_list_of_names(value) and labels.issuperset(map(str.lower, value))
        is_all = value is None and setting.name == "staff_may_open"
        return None if is_all or is_known else 'a list of apps and models, as "shop.order"'
    if setting.name == "registration":
        return None if value in REGISTRATION else f"one of {', '.join(REGISTRATION)}"
    if (setting.name, value) == ("dry_runs_per_minute", 0):
        return None
    kind = type(getattr(Config(), setting.name))
    if kind is tuple:
        return None if is_list_of_names(value) else "a list of strings"
    if kind in {int, float}:
        return None if is_positive(value, kind) else WORDS[kind]
    return None if isinstance(value, kind) else WORDS[kind]


def is_list_of_names(value: object) -> TypeGuard[Sequence[str]]:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


def is_positive(value: object, kind: type) -> bool:
    # bool is an int in Python but no number of threads.
    is_number = isinstance(value, int | float if kind is float else int)
    return is_number and not isinstance(value, bool) and cast("float", value) > 0


@a_check()
def check_authenticators(**kwargs: Any) -> Iterator[CheckMessage]:
    """E001, E002, W001, I002."""
    entries = configured_authenticators()
    if not entries:
        yield Error(
            "MCP_DJANGO['AUTHENTICATORS'] is empty, so every call is refused.",
            hint='"AUTHENTICATORS": ["mcp_django.auth.PersonalTokens"]',
            id="mcp_django.E001",
        )
    for one in entries:
        try:
            authenticator = prepared(one)
        except ImproperlyConfigured as error:
            yield Error(
                f"An entry of MCP_DJANGO['AUTHENTICATORS'] cannot be used. {error}",
                hint='"AUTHENTICATORS": ["mcp_django.auth.PersonalTokens"]',
                id="mcp_django.E002",
            )
            continue
        if isinstance(authenticator, DevUser) and not settings.DEBUG:
            yield Warning(
                "DevUser is configured while DEBUG is False. It lets nobody in then.",
                hint="Put it into the settings of your own machine only.",
                id="mcp_django.W001",
            )
        if isinstance(authenticator, Anonymous):
            yield Info(
                "Anonymous is configured: everybody may read what AnonymousUser may see.",
                hint='If you mean that: SILENCED_SYSTEM_CHECKS = ["mcp_django.I002"]',
                id="mcp_django.I002",
            )


@a_check()
def check_metadata(**kwargs: Any) -> Iterator[CheckMessage]:
    """W011: clients do not find where people sign in."""
    try:
        issuing = issuers()
    except (ImproperlyConfigured, ServiceUnavailable):  # E001 and E002 say so
        return
    if issuing and not metadata_url():
        yield Warning(
            f"Tokens of {issuing[0]} are taken, and clients do not find it: no URL of this site "
            "serves the metadata of the endpoint.",
            hint='Set PUBLIC_URL, and in the URLconf: path("", include("mcp_django.well_known"))',
            id="mcp_django.W011",
        )


@a_check()
def check_throttles(**kwargs: Any) -> Iterator[CheckMessage]:
    """E010."""
    for path in get_config().throttles:
        try:
            throttle_class(path)
        except ImproperlyConfigured as error:
            yield Error(
                f"An entry of MCP_DJANGO['THROTTLES'] cannot be used. {error}",
                hint='"THROTTLES": ["rest_framework.throttling.UserRateThrottle"]',
                id="mcp_django.E010",
            )


@a_check()
def check_public_url(**kwargs: Any) -> Iterator[CheckMessage]:
    """E004: addresses that clients get are never taken from a request."""
    url = get_config().public_url
    if url and not is_origin(url):
        yield no_public_url(f"{url!r}: not an origin such as https://shop.example.com")


@a_check(deploy=True)
def check_deployed_url(**kwargs: Any) -> Iterator[CheckMessage]:
    """E004, when a site is checked for deployment: tests and `runserver` do without one."""
    if not get_config().public_url:
        yield no_public_url("missing")


def no_public_url(reason: str) -> Error:
    return Error(
        f"MCP_DJANGO['PUBLIC_URL'] is {reason}.",
        hint='"PUBLIC_URL": "https://shop.example.com"',
        id="mcp_django.E004",
    )


def is_origin(url: str) -> bool:
    """Whether this is scheme://host[:port] and nothing else."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    origin = f"{parts.scheme}://{shown}" + ("" if port is None else f":{port}")
    return parts.scheme in {"http", "https"} and bool(host) and origin == url.lower()


@a_check()
def check_admin_sites(**kwargs: Any) -> Iterator[CheckMessage]:
    """E007: a name that no admin site has."""
    if not apps.is_installed("django.contrib.admin"):
        return
    from mcp_django.exposure.admin_sites import missing_sites

    for name in missing_sites():
        yield Error(
            f"MCP_DJANGO['ADMIN_SITES'] names {name!r}, and no admin site has that name. Models "
            "that no other site has do not exist for anybody meanwhile.",
            hint='"ADMIN_SITES": ["admin"]',
            id="mcp_django.E007",
        )


@a_check()
def check_exposures(**kwargs: Any) -> Iterator[CheckMessage]:
    """E005, W010: paths and actions that exposures name and nobody has, misspelt attributes."""
    try:
        exposures = list(registry.exposures.values())
    except ImproperlyConfigured as error:
        yield Error(str(error), id="mcp_django.E005")
        return
    yield from check_attribute_names(exposures)
    for exposure in exposures:
        if texts := list(check_lists(exposure)):
            # Each letter of a text would be one more path that leads nowhere.
            yield from texts
            continue
        problems = (unknown_actions(exposure), unfit_columns(exposure))
        for sentence in chain(Declaration(exposure).problems, *problems):
            yield Error(sentence, obj=type(exposure), id="mcp_django.E005")
    if apps.is_installed("django.contrib.admin"):
        from mcp_django.exposure.tools.actions import unfit_names

        for sentence in dict.fromkeys(unfit_names(registry)):
            yield Error(sentence, id="mcp_django.E005")


@a_check()
def check_object_permissions(**kwargs: Any) -> Iterator[CheckMessage]:
    """W009: models whose rows only a backend of the site could tell."""
    backends = [path for path in object_backends() if path not in ONLY_OBJECTS]
    if not backends:
        return
    try:
        exposures = list(registry.exposures.values())
    except ImproperlyConfigured:  # E005 says so
        return
    for exposure in exposures:
        decides = exposure.decides_itself or exposure.queryset_enforces_view_permission
        if decides or admins_of(exposure):
            continue
        yield Warning(
            f"{exposure.label} has no ModelAdmin, and {backends[0]} may grant permissions that "
            "hold for some objects only. Whoever gets the permission to view it from there sees "
            "none of its rows.",
            hint="Say which rows there are, with def get_queryset(self, request) in its exposure, "
            "or that the permission on the model is enough: "
            "queryset_enforces_view_permission = True.",
            obj=type(exposure),
            id="mcp_django.W009",
        )


def unfit_columns(exposure: ModelExposure) -> Iterator[str]:
    if not exposure.computed:
        return
    admins = admins_of(exposure)
    if not admins:
        yield (
            f"{exposure.label}: computed: there is no ModelAdmin of the model. Only those who see "
            "its list have computed columns."
        )
        return
    from mcp_django.exposure.admin_columns import column_problems

    for sentence in column_problems(exposure.model, exposure.computed, admins):
        yield f"{exposure.label}: computed: {sentence}."


def unknown_actions(exposure: ModelExposure) -> Iterator[str]:
    if not exposure.actions:
        return
    if not apps.is_installed("django.contrib.admin"):
        yield "actions: they belong to the admin, and django.contrib.admin is not installed."
        return
    from mcp_django.exposure.admin_bridge.compat import known_actions
    from mcp_django.exposure.admin_sites import overrides

    admins = admins_of(exposure)
    if any(overrides(one, "get_actions") for one in admins):
        # What it offers depends on the request.
        return
    offered = {name for one in admins for name in known_actions(one)}
    for name in exposure.actions:
        if name not in offered:
            yield (
                f'actions: no ModelAdmin of {exposure.label} has "{name}". '
                "Correct the name, or register the model with an admin that has it."
            )


@a_check()
def check_permissions(**kwargs: Any) -> Iterator[CheckMessage]:
    """W012: a permission that no model has, and that is close to one that a model has. Others may
    be in the database alone, or in a backend of the site.
    """
    models = [model._meta for model in apps.get_models()]
    names = {
        f"{opts.app_label}.{codename}"
        for opts in models
        for codename in (
            *(get_permission_codename(verb, opts) for verb in opts.default_permissions),
            *(codename for codename, _ in opts.permissions),
        )
    }
    offered: Any = (registry.tools, registry.code_prompts, registry.resources)
    for thing in chain.from_iterable(one.values() for one in offered):
        permission = getattr(thing, "permission", None)
        if not isinstance(permission, str) or permission in names:
            continue
        if close := get_close_matches(permission, names, n=1, cutoff=0.9):
            yield Warning(
                f"The {thing.kind} {thing.key} asks for the permission {permission}, which no "
                "model has. Only superusers have it.",
                hint=f'permission="{close[0]}"',
                id="mcp_django.W012",
            )


# Databases, middleware and the store.


@a_check()
def check_databases(**kwargs: Any) -> Iterator[CheckMessage]:
    """W004."""
    for alias in connections:
        age = connections.settings[alias]["CONN_MAX_AGE"]
        # WSGI serves a site whose endpoint is a view, and that has no ASGI application.
        if age != 0 and (has_application() or not has_view()):
            hint = f'DATABASES[{alias!r}]["CONN_MAX_AGE"] = 0.'
            if connections[alias].vendor == "postgresql":
                hint += (
                    ' A pool keeps connections for views: ["OPTIONS"]["pool"] = {"min_size": 2, '
                    '"max_size": 10}, with pip install "psycopg[pool]".'
                )
            yield Warning(
                f"Views keep connections to the database {alias!r}: CONN_MAX_AGE = {age}. Under "
                "ASGI each request has a thread of its own, and leaves a connection open there "
                "that nobody uses again. Threads of this package keep theirs without it.",
                hint=f"{hint} Where only WSGI serves the site, silence this.",
                id="mcp_django.W004",
            )


def has_application() -> bool:
    return bool(getattr(settings, "ASGI_APPLICATION", None)) or apps.is_installed("daphne")


def has_view() -> bool:
    """Whether the endpoint is a view in the URLconf of the site."""
    if not getattr(settings, "ROOT_URLCONF", None):
        return False
    try:
        reverse("mcp_django:endpoint")
    except (NoReverseMatch, ImportError):
        return False
    return True


@a_check()
def check_sqlite(
    *, databases: Iterable[str] | None = None, **kwargs: Any
) -> Iterator[CheckMessage]:
    """W003. On migrate and on check --database only, and not once more at every command."""
    for alias in databases or ():
        options = connections.settings[alias].get("OPTIONS", {})
        missing: dict[str, object] = {}
        if options.get("transaction_mode", "").upper() != "IMMEDIATE":
            missing["transaction_mode"] = "IMMEDIATE"
        if "wal" not in options.get("init_command", "").lower():
            commands = f"PRAGMA journal_mode=WAL; {options.get('init_command', '')}"
            missing["init_command"] = commands.strip()
        if options.get("timeout", 5) < 20:
            missing["timeout"] = 20
        if not missing or connections[alias].vendor != "sqlite":
            continue
        yield Warning(
            f"The SQLite database {alias!r} will answer 'database is locked' when assistants "
            "and people write at the same time.",
            hint=f'DATABASES[{alias!r}]["OPTIONS"] = {options | missing!r}',
            id="mcp_django.W003",
        )


@a_check()
def check_time_zones(
    *, databases: Iterable[str] | None = None, **kwargs: Any
) -> Iterator[Warning]:
    """W006. Asks the databases, so it runs on migrate and on check --database only."""
    for alias in databases or ():
        if not knows_zones(alias):
            yield Warning(
                f"The database {alias!r} has no time zone tables, so assistants cannot filter or "
                "group by parts of points in time.",
                hint="mariadb-tzinfo-to-sql /usr/share/zoneinfo | mariadb -u root mysql",
                id="mcp_django.W006",
            )


@a_check(deploy=True)
def check_layer(**kwargs: Any) -> Iterator[CheckMessage]:
    """W002, when a site is checked for deployment."""
    if not links_processes():
        yield Warning(
            "No channel layer links the processes of this site: changes that one of them makes do "
            "not reach clients that are connected to another.",
            hint="Set CHANNEL_LAYERS to channels_redis, or silence this check if the site is one "
            "process.",
            id="mcp_django.W002",
        )


@a_check(deploy=True)
def check_bodies(**kwargs: Any) -> Iterator[CheckMessage]:
    """W008, when a site is checked for deployment."""
    if apps.is_installed("daphne"):
        yield Warning(
            "Daphne takes the body of a request whole, however long it is, before the site can "
            "refuse it.",
            hint=f"client_max_body_size {get_config().max_body}; in nginx, or the same in another "
            "proxy. Silence this check then.",
            id="mcp_django.W008",
        )


@a_check()
def check_middleware(**kwargs: Any) -> Iterator[CheckMessage]:
    """E006."""
    choice = get_config().run_middleware
    if isinstance(choice, str) and choice not in ("auto", "project", "none"):
        yield Error(
            f"MCP_DJANGO['RUN_MIDDLEWARE'] is {choice!r}.",
            hint='"RUN_MIDDLEWARE": "auto", "project", "none", or a list of dotted paths',
            id="mcp_django.E006",
        )
        return
    try:
        for path in chosen():
            import_string(path)
    except ImportError as error:
        yield Error(f"Middleware cannot be imported: {error}.", id="mcp_django.E006")


@a_check(deploy=True)
def check_chain(**kwargs: Any) -> Iterator[CheckMessage]:
    """I001, when a site is checked for deployment: what runs around a call is no surprise."""
    if not check_middleware() and (paths := chosen()):
        yield Info(
            f"This middleware runs for every call of an assistant: {', '.join(paths)}.",
            hint='To choose yourself, set "RUN_MIDDLEWARE" to a list of dotted paths.',
            id="mcp_django.I001",
        )


@a_check()
def check_view(**kwargs: Any) -> Iterator[CheckMessage]:
    """W007: what chooses a tenant for the view must see who calls. W013: nothing serves MCP. W016:
    a client that leaves out a slash is redirected, and a redirect drops what it posted.
    """
    if not has_view():
        if not has_application():
            yield Warning(
                "Nothing serves MCP: no URL of the site leads to it, and ASGI_APPLICATION is not "
                "set.",
                hint='urlpatterns += [path("mcp", include("mcp_django.urls"))]. With ASGI: '
                'ASGI_APPLICATION = "site.asgi.application", from get_mcp_application().',
                id="mcp_django.W013",
            )
        return
    address = reverse("mcp_django:endpoint")
    if address.endswith("/") and address.strip("/"):
        yield Warning(
            f"The endpoint is served at {address} and not at {address.rstrip('/')}, where clients "
            "may be told to look.",
            hint='path("mcp", include("mcp_django.urls")) serves it at both.',
            id="mcp_django.W016",
        )
    try:
        early = middleware_before_caller()
    except ImportError:
        # E006 says what cannot be imported.
        return
    if early:
        yield Warning(
            f"{advice(early)} Every call is refused there meanwhile.",
            hint=f"MIDDLEWARE = {[AUTHENTICATION, CALLER, *early]}, with the others around them.",
            id="mcp_django.W007",
        )


@a_check()
def check_store(*, databases: Iterable[str] = (), **kwargs: Any) -> Iterator[CheckMessage]:
    """E011, and W015 on migrate and on check --database."""
    try:
        table = missing_table(make_cache(), databases or ())
    except ImproperlyConfigured as error:
        yield Error(str(error), hint='"SESSION_CACHE": "default"', id="mcp_django.E011")
        return
    if table:
        yield Warning(
            f"The cache of sessions has no table {table!r} in the database.",
            hint="python manage.py createcachetable",
            id="mcp_django.W015",
        )


@a_check(deploy=True)
def check_session_cache(**kwargs: Any) -> Iterator[CheckMessage]:
    """W014, when a site is checked for deployment."""
    if not check_store() and not is_shared(make_cache()):
        yield Warning(
            "What one process keeps of a session in SESSION_CACHE others do not read at once.",
            hint="Name a cache in one Redis, or in a database with the same one for reads. "
            "Silence this check if the site is one process.",
            id="mcp_django.W014",
        )


# Prompts.


@a_check()
def check_prompts(**kwargs: Any) -> Iterator[CheckMessage]:
    """E008, W005."""
    if registry.prompt_files is None:
        return
    found = registry.prompt_files()
    for path, sentence in found.problems.items():
        yield Error(
            f"The prompt {path} cannot be read: {sentence.rstrip('.')}.",
            hint="Correct the file, or give it another ending than .md. Nobody gets it meanwhile.",
            id="mcp_django.E008",
        )
    for name in sorted(found.prompts.keys() & registry.code_prompts.keys()):
        yield Warning(
            f"There is a prompt called {name!r} in code and another in a file. "
            "The one in code is used.",
            hint=f'Rename the file, or the function: @mcp.prompt(name="my_{name}").',
            id="mcp_django.W005",
        )
