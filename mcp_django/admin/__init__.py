"""Pages for staff. Loaded by the admin's autodiscovery, and by nothing else."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Model

from mcp_django.admin.calls import CallRecordAdmin
from mcp_django.admin.decisions.exposed_models import ExposedModelAdmin
from mcp_django.admin.decisions.exposed_prompts import ExposedPromptAdmin
from mcp_django.admin.decisions.exposed_tools import ExposedToolAdmin
from mcp_django.admin.decisions.server import ServerSettingsAdmin, UserRestrictionAdmin
from mcp_django.admin.overview import AssistantsAdmin
from mcp_django.admin.prompts.templates import PromptTemplateAdmin
from mcp_django.admin.tokens import PersonalTokenAdmin
from mcp_django.admin.uploads import UploadAdmin
from mcp_django.models import (
    Assistants,
    CallRecord,
    ExposedModel,
    ExposedPrompt,
    ExposedTool,
    PersonalToken,
    PromptTemplate,
    ServerSettings,
    Upload,
    UserRestriction,
)

__all__ = [
    "AssistantsAdmin",
    "CallRecordAdmin",
    "ExposedModelAdmin",
    "ExposedPromptAdmin",
    "ExposedToolAdmin",
    "PersonalTokenAdmin",
    "PromptTemplateAdmin",
    "ServerSettingsAdmin",
    "UploadAdmin",
    "UserRestrictionAdmin",
    "register",
]


ADMINS: dict[type[Model], type[admin.ModelAdmin[Any]]] = {
    Assistants: AssistantsAdmin,
    CallRecord: CallRecordAdmin,
    ExposedModel: ExposedModelAdmin,
    ExposedPrompt: ExposedPromptAdmin,
    ExposedTool: ExposedToolAdmin,
    PersonalToken: PersonalTokenAdmin,
    PromptTemplate: PromptTemplateAdmin,
    ServerSettings: ServerSettingsAdmin,
    Upload: UploadAdmin,
    UserRestriction: UserRestrictionAdmin,
}


def register(site: admin.AdminSite) -> None:
    """Put all of these pages on another admin site, as `urls.py` does with the site's own.

    The default site has them already. Raises AlreadyRegistered where a site has one of them.
    """
    for model, model_admin in ADMINS.items():
        site.register(model, model_admin)


register(admin.site)
