"""Mistakes in settings and declarations, told before the first call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, fields
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured

from mcp_django.auth.authenticators import prepared
from mcp_django.auth.local import Anonymous, DevUser
from mcp_django.auth.site_throttles import throttle_class
from mcp_django.checks_environment import (
    check_databases,
    check_layer,
    check_middleware,
    check_store,
    check_time_zones,
)
from mcp_django.checks_prompts import check_prompts, check_stored_prompts
from mcp_django.conf import Config, get_config
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.registry import registry

Check: TypeAlias = Callable[..., list[CheckMessage]]

#: In place of a type's name.
WORDS = {
    str: "a string",
    int: "a positive whole number",
    float: "a positive number",
    bool: "True or False",
    tuple: "a list",
}


def a_check(find: Callable[..., Iterator[CheckMessage]]) -> Check:
    """A check that holds its tongue while the setting itself is wrong: E003 says where."""

    @wraps(find)
    def check(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
        return [] if check_settings() else list(find(**kwargs))

    return check


def check_settings(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """E003: keys that do not exist, values that cannot be."""
    given = getattr(settings, "MCP_DJANGO", {})
    if not isinstance(given, Mapping):
        return [
            Error(
                "MCP_DJANGO is not a dictionary.",
                hint='MCP_DJANGO = {"NAME": "Shop"}',
                id="mcp_django.E003",
            )
        ]
    known = {one.name.upper(): one for one in fields(Config)}
    found: list[CheckMessage] = []
    for key, value in given.items():
        if key not in known:
            found.append(unknown_key(key, sorted(known)))
        elif (wanted := unmet(known[key], value)) is not None:
            found.append(
                Error(
                    f"MCP_DJANGO[{key!r}] is {value!r}: it must be {wanted}.",
                    hint=f"Set it to {wanted}, or remove it to have the default.",
                    id="mcp_django.E003",
                )
            )
    return found


def unknown_key(key: object, known: list[str]) -> CheckMessage:
    close = get_close_matches(str(key).upper(), known, n=1)
    return Error(
        f"MCP_DJANGO has the unknown key {key!r}.",
        hint=f"Write {close[0]!r}." if close else f"The keys are: {', '.join(known)}.",
        id="mcp_django.E003",
    )


def unmet(setting: Field[Any], value: object) -> str | None:
    """What the value of a setting must be, unless it is that."""
    if setting.name == "run_middleware":
        return None if isinstance(value, str) or is_list_of_names(value) else "a string or a list"
    if setting.name == "query_threads":
        return None if value is None or is_positive(value, int) else "None or a positive number"
    if setting.name == "authenticators":
        return None if isinstance(value, list | tuple) else WORDS[tuple]
    kind = type(getattr(Config(), setting.name))
    if kind is tuple:
        return None if is_list_of_names(value) else "a list of strings"
    if kind in {int, float}:
        return None if is_positive(value, kind) else WORDS[kind]
    return None if isinstance(value, kind) else WORDS[kind]


def is_list_of_names(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


def is_positive(value: object, kind: type) -> bool:
    # bool is an int in Python but no number of threads.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value > 0 and (kind is float or isinstance(value, int))


@a_check
def check_authenticators(**kwargs: Any) -> Iterator[CheckMessage]:
    """E001, E002, W001, I002."""
    configured = get_config().authenticators
    if not configured:
        yield Error(
            "MCP_DJANGO['AUTHENTICATORS'] is empty, so every call is refused.",
            hint='"AUTHENTICATORS": ["mcp_django.auth.PersonalTokens"]',
            id="mcp_django.E001",
        )
    for one in configured:
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


@a_check
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


@a_check
def check_public_url(**kwargs: Any) -> Iterator[CheckMessage]:
    """E004: addresses that clients get are never taken from a request."""
    url = get_config().public_url
    if settings.DEBUG or is_origin(url):
        return
    what = f"{url!r}: not an origin such as https://shop.example.com" if url else "missing"
    yield Error(
        f"MCP_DJANGO['PUBLIC_URL'] is {what}.",
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


@a_check
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


@a_check
def check_exposures(**kwargs: Any) -> Iterator[CheckMessage]:
    """E005: paths and actions that exposures name and nobody has."""
    # Late: it brings the query compiler along, which most starts do not need.
    from mcp_django.exposure.reach import problems

    try:
        exposures = list(registry.exposures.values())
    except ImproperlyConfigured as error:
        yield Error(str(error), id="mcp_django.E005")
        return
    for exposure in exposures:
        for sentence in [*problems(exposure), *unknown_actions(exposure)]:
            yield Error(sentence, obj=type(exposure), id="mcp_django.E005")
    if apps.is_installed("django.contrib.admin"):
        from mcp_django.exposure.action_names import unfit_names

        for sentence in dict.fromkeys(unfit_names(registry)):
            yield Error(sentence, id="mcp_django.E005")


def unknown_actions(exposure: ModelExposure) -> Iterator[str]:
    if not exposure.actions:
        return
    if not apps.is_installed("django.contrib.admin"):
        yield "actions: they belong to the admin, and django.contrib.admin is not installed."
        return
    from mcp_django.exposure.admin_sites import model_admins, overrides
    from mcp_django.exposure.compat import known_actions

    admins = model_admins(exposure.model)
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


CHECKS = (
    check_settings,
    check_authenticators,
    check_throttles,
    check_public_url,
    check_admin_sites,
    check_exposures,
    a_check(check_databases),
    a_check(check_middleware),
    a_check(check_store),
    a_check(check_time_zones),
    a_check(check_prompts),
)


#: Those that ask the database. Django runs them where somebody names it.
DATABASE_CHECKS = (a_check(check_stored_prompts),)
#: Those about the site where it will run, for `check --deploy`.
DEPLOYMENT_CHECKS = (a_check(check_layer),)


def connect() -> None:
    """Register the checks. May be called again."""
    for check in CHECKS:
        register(check, "mcp_django")
    for check in DATABASE_CHECKS:
        register(check, "mcp_django", Tags.database)
    for check in DEPLOYMENT_CHECKS:
        register(check, "mcp_django", deploy=True)
