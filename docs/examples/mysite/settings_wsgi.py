"""A site with tenants, which serves the endpoint as a view, and a client in a page of its own."""

from __future__ import annotations

from mysite.settings import *  # noqa: F403

# docs: start wsgi
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "mcp_django.middleware.CallerMiddleware",
    "mysite.middleware.TenantMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
# docs: end wsgi

# docs: start cors
MCP_DJANGO = {
    "NAME": "My shop",
    "PUBLIC_URL": "https://shop.example.com",
    "ALLOWED_ORIGINS": ["https://chat.example.com"],
}
# docs: end cors
