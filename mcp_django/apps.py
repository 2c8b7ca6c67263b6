from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class MCPDjangoConfig(AppConfig):
    name = "mcp_django"
    verbose_name = "MCP"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Models cannot be imported before this point.
        from mcp_django import checks
        from mcp_django.auth import redaction
        from mcp_django.exposure import prompt_signals, rights_signals
        from mcp_django.subscriptions import closings, list_receivers, outbox, receivers
        from mcp_django.transports.layer import make_publisher

        redaction.install()
        outbox.register_default_sink(make_publisher)
        rights_signals.connect()
        prompt_signals.connect()
        receivers.connect()
        list_receivers.connect()
        closings.connect()
        checks.connect()
        autodiscover_modules("mcp")
