from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.apps import AppConfig


class MCPOAuthConfig(AppConfig):
    name = "mcp_django.oauth"
    label = "mcp_django_oauth"
    verbose_name = "MCP sign-in"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.signals import setting_changed
        from django.db.models.signals import post_delete, post_save

        from mcp_django.auth.authenticate import cache
        from mcp_django.oauth import checks, toolkit  # noqa: F401  registers the check
        from mcp_django.oauth.models import Authorization
        from mcp_django.stores.cache_version import row_changed, watch
        from mcp_django.subscriptions.receivers import restriction_changed

        def forget_principals(**kwargs: Any) -> None:
            cache.clear()

        def follow_settings(*, setting: str, **kwargs: Any) -> None:
            if setting in {"MCP_DJANGO", "OAUTH2_PROVIDER", "FORCE_SCRIPT_NAME"}:
                # mcp_django.E003 says what is wrong with settings that cannot be read.
                with suppress(ImproperlyConfigured):
                    toolkit.use_safe_defaults()

        follow_settings(setting="MCP_DJANGO")
        setting_changed.connect(follow_settings, weak=False, dispatch_uid="mcp_django.oauth")
        toolkit.keep_codes_out_of_logs()
        watch(row_changed, post_save, post_delete, sender=Authorization)
        watch(restriction_changed, post_save, post_delete, sender=Authorization)
        # Other processes ask again within a second.
        watch(forget_principals, post_delete, sender=toolkit.get_access_token_model())
