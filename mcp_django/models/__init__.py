from __future__ import annotations

from mcp_django.models.calls import CallRecord, IdempotentAnswer, SpentConfirmation
from mcp_django.models.exposure import (
    ExposedModel,
    ExposedPrompt,
    ExposedTool,
    ExposureGeneration,
    ServerSettings,
    UserRestriction,
)
from mcp_django.models.prompts import PromptTemplate, PromptVersion
from mcp_django.models.sessions import (
    EventLog,
    Lease,
    LiveStream,
    LogEvent,
    OpenQuestion,
    Session,
    Subscription,
)
from mcp_django.models.tokens import PersonalToken

__all__ = [
    "CallRecord",
    "EventLog",
    "ExposedModel",
    "ExposedPrompt",
    "ExposedTool",
    "ExposureGeneration",
    "IdempotentAnswer",
    "Lease",
    "LiveStream",
    "LogEvent",
    "OpenQuestion",
    "PersonalToken",
    "PromptTemplate",
    "PromptVersion",
    "ServerSettings",
    "Session",
    "SpentConfirmation",
    "Subscription",
    "UserRestriction",
]
