from __future__ import annotations

from mcp_django.models.calls import Assistants, CallRecord, IdempotentAnswer, SpentConfirmation
from mcp_django.models.exposure import (
    ExposedModel,
    ExposedPrompt,
    ExposedTool,
    ExposureGeneration,
    ServerSettings,
    UserRestriction,
)
from mcp_django.models.prompts import PromptTemplate, PromptVersion
from mcp_django.models.tokens import PersonalToken
from mcp_django.models.uploads import Upload

__all__ = [
    "Assistants",
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
    "Upload",
    "UserRestriction",
]
