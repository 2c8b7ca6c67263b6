"""What staff decide on the pages of the admin, without the pages."""

from __future__ import annotations

from typing import Any

from django.db.models import Model

from mcp_django.levels import Level
from mcp_django.models import ExposedModel, ExposedTool


def decide(label: str, **decision: Any) -> ExposedModel:
    return ExposedModel.objects.update_or_create(label=label, defaults=decision)[0]


def decide_on_tool(name: str, **decision: Any) -> ExposedTool:
    return ExposedTool.objects.update_or_create(name=name, defaults=decision)[0]


def open_model(model: type[Model], level: int = Level.WRITE) -> str:
    """Open a model for assistants. Return its label."""
    return decide(model._meta.label_lower, level=level).label
