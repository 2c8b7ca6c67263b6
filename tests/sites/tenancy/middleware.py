from __future__ import annotations

from tests.sites.tenancy.models import tenant


class TenantMiddleware:
    """The tenant of a user is where the address of the user is."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        address = getattr(request.user, "email", "")
        token = tenant.set(address.partition("@")[2] or "none")
        try:
            return self.get_response(request)
        finally:
            tenant.reset(token)
