"""A tenant for each user."""

from __future__ import annotations

from contextvars import ContextVar

tenant: ContextVar[str] = ContextVar("tenant", default="")


class TenantMiddleware:
    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        token = tenant.set(request.user.get_username())
        try:
            return self.get_response(request)
        finally:
            tenant.reset(token)
