"""Throttles that the site has already: classes of Django REST framework, or such as those."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.utils.module_loading import import_string

from mcp_django.conf import get_config
from mcp_django.principal import Principal

logger = logging.getLogger("mcp_django")

#: Seconds to wait for a throttle that does not say.
UNTOLD = 60.0


@dataclass(frozen=True)
class ThrottledView:
    """What throttles ask of a view: `throttle_scope` has the rate in DRF's settings."""

    action: str
    throttle_scope: str = "mcp"


def site_retry_after(request: HttpRequest, principal: Principal, *, method: str) -> float | None:
    """Count one call in each throttle of THROTTLES. None: go on; else the seconds to wait."""
    paths = get_config().throttles
    if not paths:
        return None
    request.user = principal.user
    view = ThrottledView(method)
    # All of them count, as in REST framework.
    waits = [wait_of(throttle_class(path), request, view) for path in paths]
    return max((wait for wait in waits if wait is not None), default=None)


def wait_of(throttle: Any, request: HttpRequest, view: ThrottledView) -> float | None:
    try:
        # One for each question: they keep what they have found out.
        asked = throttle()
        if asked.allow_request(as_known_to(throttle, request), view):
            return None
        return float(asked.wait() or UNTOLD)
    except Exception:
        # The cache is away. A limit is no right, and our own count goes on.
        logger.exception("%s cannot count.", throttle.__name__)
        return None


def as_known_to(throttle: Any, request: HttpRequest) -> Any:
    """The request in the class that REST framework's own throttles expect."""
    if not any(base.__module__.startswith("rest_framework.") for base in throttle.__mro__):
        return request
    from rest_framework.request import Request  # type: ignore[import-untyped]  # no types

    found = Request(request)
    found.user, found.auth = request.user, None
    return found


@lru_cache(maxsize=32)
def throttle_class(path: str) -> Any:
    """A class of the setting. Raises ImproperlyConfigured."""
    try:
        found = import_string(path)
    except (ImportError, ValueError) as error:
        raise ImproperlyConfigured(f"{path!r} cannot be imported: {error}.") from error
    if not callable(getattr(found, "allow_request", None)) or not callable(
        getattr(found, "wait", None)
    ):
        raise ImproperlyConfigured(
            f"{path!r} is no throttle: it needs allow_request() and wait()."
        )
    return found
