"""Pages for staff. Loaded by the admin's autodiscovery, and by nothing else."""

from __future__ import annotations

from mcp_django.admin.calls import CallRecordAdmin
from mcp_django.admin.prompts import PromptTemplateAdmin
from mcp_django.admin.tokens import PersonalTokenAdmin

__all__ = ["CallRecordAdmin", "PersonalTokenAdmin", "PromptTemplateAdmin"]
