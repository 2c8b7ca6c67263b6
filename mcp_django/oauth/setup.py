"""What a site still has to do so that people can sign in, for `mcp_oauth` and for a check.

Imports nothing of django-oauth-toolkit, which may be what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import NamedTuple

from django.apps import apps
from django.conf import settings
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch, Resolver404, get_script_prefix, resolve, reverse

from mcp_django.conf import get_config


class SetupStep(NamedTuple):
    problem: str
    #: Text to type or to paste.
    solution: str


def missing_steps() -> Iterator[SetupStep]:
    """Yield what is missing, in the order in which a person would do it."""
    if find_spec("oauth2_provider") is None:
        install = 'pip install "django-mcp-orm[oauth]"'
        yield SetupStep("django-oauth-toolkit is not installed.", install)
    needed = ("oauth2_provider", "mcp_django.oauth")
    lacking = [app for app in needed if not apps.is_installed(app)]
    if lacking:
        yield SetupStep(
            f"{' and '.join(lacking)} must be installed apps.",
            f"INSTALLED_APPS = [..., {', '.join(repr(app) for app in lacking)}]",
        )
    if not get_config().public_url:
        yield SetupStep(
            "PUBLIC_URL is missing: tokens are made for one address, and for no other.",
            'MCP_DJANGO = {..., "PUBLIC_URL": "https://shop.example.com"}',
        )
    yield from missing_urls()
    if apps.is_installed("mcp_django.oauth"):
        from mcp_django.oauth.toolkit import unsafe_settings

        for key, problem in unsafe_settings():
            yield SetupStep(f"OAUTH2_PROVIDER[{key!r}] {problem}.", f"Remove {key!r} from it.")


def missing_urls() -> Iterator[SetupStep]:
    try:
        metadata = reverse("mcp_django_oauth:server-metadata")
    except NoReverseMatch:
        metadata = ""
    if metadata != f"{get_script_prefix()}.well-known/oauth-authorization-server":
        yield SetupStep(
            "Clients look for the metadata of the authorization server at the root of the site.",
            'urlpatterns = [..., path("", include("mcp_django.oauth.urls"))]',
        )
    if not login_address():
        yield SetupStep(
            f"There is no page at LOGIN_URL, which is {settings.LOGIN_URL!r}.",
            'urlpatterns = [..., path("accounts/", include("django.contrib.auth.urls"))]',
        )


def login_address() -> str:
    """Return where people sign in: LOGIN_URL, or the admin's page where that leads nowhere."""
    address = resolve_url(settings.LOGIN_URL)
    if "://" in address:
        return address
    prefix = get_script_prefix().removesuffix("/")
    try:
        resolve(address.partition("?")[0].removeprefix(prefix))
    except Resolver404:
        try:
            return reverse("admin:login")
        except NoReverseMatch:
            return ""
    return address
