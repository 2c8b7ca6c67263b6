"""Sign in with OAuth: an authorization server for the endpoint, by django-oauth-toolkit.

Optional. INSTALLED_APPS has "oauth2_provider" and "mcp_django.oauth", the URLconf
`path("", include("mcp_django.oauth.urls"))`.
"""

from __future__ import annotations
