"""How much of a model there is for assistants."""

from __future__ import annotations

from django.db.models import IntegerChoices


class Level(IntegerChoices):
    """Each level holds those before it."""

    HIDDEN = 0, "hidden"
    DEFINITION = 1, "definition: what fields there are"
    AGGREGATES = 2, "aggregates: numbers about groups of records"
    READ = 3, "read: records"
    ACT = 4, "act: records, and actions of the admin"
    WRITE = 5, "write: records, actions, and to create, change and delete"
