"""Calls in the log, and throttles of Django REST framework."""

from __future__ import annotations

from mysite.settings import *  # noqa: F403

INSTALLED_APPS += ["rest_framework"]  # noqa: F405

# docs: start logging
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"mcp_django.calls": {"handlers": ["console"], "level": "INFO"}},
}
# docs: end logging

# docs: start throttles
REST_FRAMEWORK = {"DEFAULT_THROTTLE_RATES": {"user": "2000/day", "mcp": "100/min"}}
MCP_DJANGO = {
    "NAME": "My shop",
    "PUBLIC_URL": "https://shop.example.com",
    "THROTTLES": [
        "rest_framework.throttling.UserRateThrottle",
        "rest_framework.throttling.ScopedRateThrottle",
    ],
}
# docs: end throttles
