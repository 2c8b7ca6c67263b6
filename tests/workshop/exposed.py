"""What assistants are offered of the workshop, while a test runs."""

from __future__ import annotations

from contextlib import contextmanager

from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from tests.workshop.models import Job, Keeper, Part, Rack, Tag, Team, Thing

EXPOSED = {
    Tag: {"fields": ["id", "name"], "label_fields": ["name"], "search_fields": ["name"]},
    Thing: {
        "fields": ["id", "title", "note", "state", "tag", "price", "modified_at"],
        "modified_field": "modified_at",
    },
    Part: {"fields": ["id", "name", "quantity"]},
    Keeper: {"fields": ["id", "thing"]},
    Job: {"fields": ["id", "name", "tenant", "tag"]},
    Team: {"fields": ["id", "name"]},
    Rack: {"fields": ["code", "note"]},
}


@contextmanager
def exposed(**changes):
    """The models of the workshop, with changed options by their names; None: not this one."""
    added = []
    for model, options in EXPOSED.items():
        change = changes.get(model.__name__, {})
        if change is not None:
            options = {"level": Level.WRITE, **options, **change}
            registry.register(model, type(f"{model.__name__}Exposure", (ModelExposure,), options))
            added.append(model)
    try:
        yield
    finally:
        for model in added:
            registry.unregister(model)
