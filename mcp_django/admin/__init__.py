"""Pages for staff. Loaded by the admin's autodiscovery, and by nothing else."""

from __future__ import annotations

from django.contrib import admin

from mcp_django.admin.calls import CallRecordAdmin
from mcp_django.admin.exposed_prompts import ExposedPromptAdmin
from mcp_django.admin.exposure import ExposedModelAdmin
from mcp_django.admin.prompts import PromptTemplateAdmin
from mcp_django.admin.server import ServerSettingsAdmin, UserRestrictionAdmin
from mcp_django.admin.tokens import PersonalTokenAdmin
from mcp_django.admin.tools import ExposedToolAdmin
from mcp_django.models import (
    CallRecord,
    ExposedModel,
    ExposedPrompt,
    ExposedTool,
    PersonalToken,
    PromptTemplate,
    ServerSettings,
    UserRestriction,
)

__all__ = [
    "CallRecordAdmin",
    "ExposedModelAdmin",
    "ExposedPromptAdmin",
    "ExposedToolAdmin",
    "PersonalTokenAdmin",
    "PromptTemplateAdmin",
    "ServerSettingsAdmin",
    "UserRestrictionAdmin",
    "register",
]


def register(site: admin.AdminSite) -> None:
    """Put all of these pages on another admin site, as `urls.py` does with the site's own.

    The default site has them already. Raises AlreadyRegistered where a site has one of them.
    """
    site.register(CallRecord, CallRecordAdmin)
    site.register(ExposedModel, ExposedModelAdmin)
    site.register(ExposedPrompt, ExposedPromptAdmin)
    site.register(ExposedTool, ExposedToolAdmin)
    site.register(PersonalToken, PersonalTokenAdmin)
    site.register(PromptTemplate, PromptTemplateAdmin)
    site.register(ServerSettings, ServerSettingsAdmin)
    site.register(UserRestriction, UserRestrictionAdmin)
