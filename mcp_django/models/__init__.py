from __future__ import annotations

from mcp_django.models.calls import CallRecord
from mcp_django.models.exposure import (
    ExposedModel,
    ExposedPrompt,
    ExposedTool,
    ExposureGeneration,
    ServerSettings,
)
from mcp_django.models.promises import IdempotentAnswer, SpentConfirmation
from mcp_django.models.prompts import PromptTemplate, PromptVersion
from mcp_django.models.restrictions import UserRestriction
from mcp_django.models.tokens import PersonalToken

__all__ = [
    "CallRecord",
    "ExposedModel",
    "ExposedPrompt",
    "ExposedTool",
    "ExposureGeneration",
    "IdempotentAnswer",
    "PersonalToken",
    "PromptTemplate",
    "PromptVersion",
    "ServerSettings",
    "SpentConfirmation",
    "UserRestriction",
]
