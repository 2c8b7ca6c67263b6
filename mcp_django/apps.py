from __future__ import annotations

from pathlib import Path
from traceback import extract_tb

from django.apps import AppConfig, apps
from django.core.exceptions import ImproperlyConfigured
from django.db.models.signals import pre_save
from django.utils.module_loading import autodiscover_modules


class MCPDjangoConfig(AppConfig):
    name = "mcp_django"
    verbose_name = "MCP"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Models cannot be imported before this point.
        from mcp_django import checks  # noqa: F401  registers them
        from mcp_django.auth import redaction
        from mcp_django.exceptions import AlreadyRegistered, NotRegistered
        from mcp_django.exposure import decisions
        from mcp_django.exposure.prompts.files import read_files
        from mcp_django.exposure.registry import registry
        from mcp_django.stores import cache_version
        from mcp_django.subscriptions import receivers
        from mcp_django.subscriptions.outbox import outbox
        from mcp_django.transports.layer import make_publisher

        redaction.install()
        outbox.register_default_sink(make_publisher)
        cache_version.connect()
        decisions.connect()
        receivers.connect()
        if apps.is_installed("django.contrib.admin"):
            from django.contrib.admin.models import LogEntry

            from mcp_django.exposure.admin_bridge.history import sign_entry

            cache_version.watch(sign_entry, pre_save, sender=LogEntry)
        registry.prompt_files = read_files
        try:
            autodiscover_modules("mcp")
        except (ImproperlyConfigured, AlreadyRegistered, NotRegistered) as error:
            # A check says so in a line, where a traceback would have forty.
            stack = extract_tb(error.__traceback__)
            frames = [frame for frame in stack if Path(frame.filename).name == "mcp.py"]
            place = f"{frames[-1].filename}, line {frames[-1].lineno}: " if frames else ""
            registry.mistake = ImproperlyConfigured(f"{place}{error}")
