from __future__ import annotations

from mcp_django.models.exposure import ExposureGeneration
from mcp_django.models.tokens import PersonalToken

__all__ = ["ExposureGeneration", "PersonalToken"]
