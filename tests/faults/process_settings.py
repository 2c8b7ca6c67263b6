"""A site of which the tests take parts away: see tests/faults/test_processes.py."""

from __future__ import annotations

import json
import os

from tests.transports.live_settings import *  # noqa: F403

ASGI_APPLICATION = "tests.faults.process_site.application"
DATABASES = {"default": json.loads(os.environ["FAULTS_DATABASE"])}
if DATABASES["default"]["ENGINE"].endswith("mysql"):
    import pymysql  # type: ignore[import-untyped]

    pymysql.install_as_MySQLdb()
CACHES["redis"]["KEY_PREFIX"] = "own"  # noqa: F405
# As docs/howto/deploying.md has it.
CACHES["redis"]["OPTIONS"] = {"socket_timeout": 2, "socket_connect_timeout": 2}  # noqa: F405
MCP_DJANGO |= {  # noqa: F405
    "AUTHENTICATORS": ["mcp_django.auth.PersonalTokens"],
    "HEALTH": True,
    "PUBLIC_URL": "http://localhost",
    "SESSION_CACHE": os.environ["FAULTS_CACHE"],
    "WORK_THREADS": 4,
    **json.loads(os.environ.get("FAULTS_SETTINGS", "{}")),
}
SILENCED_SYSTEM_CHECKS = ["mcp_django.I002"]
# The lines that say that something works again are at INFO.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"mcp_django.streams": {"handlers": ["console"], "level": "INFO"}},
}
