"""Pages for staff. Loaded by the admin's autodiscovery, and by nothing else."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib import admin
from django.db import router
from django.db.models import Model
from django.db.models.signals import post_migrate

from mcp_django.admin.calls import CallRecordAdmin
from mcp_django.admin.decisions.base import DecisionAdmin, make_rows
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


def make_all_rows(*, using: str, apps: Any = apps, **kwargs: Any) -> None:
    """Make a row for each thing that code has, once the tables are there."""
    for model, kind in ADMINS.items():
        # As the table is: not each migration has to be applied.
        table = apps.all_models["mcp_django"].get(str(model._meta.model_name))
        if table and issubclass(kind, DecisionAdmin) and router.allow_migrate_model(using, model):
            make_rows(table, kind.key, kind.things(), using=using)


register(admin.site)
post_migrate.connect(make_all_rows, sender=apps.get_app_config("mcp_django"))
