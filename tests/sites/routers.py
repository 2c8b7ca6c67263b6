from __future__ import annotations

from itertools import cycle

ARCHIVED = "nasty"
replicas = cycle(["left", "right"])


class Turns:
    """The nasty schema lives in the archive; all else is written to one and read from two."""

    def db_for_read(self, model, **hints):
        if model._meta.app_label == "django_cache":
            # A session is asked for as soon as it has begun.
            return "default"
        return "archive" if model._meta.app_label == ARCHIVED else next(replicas)

    def db_for_write(self, model, **hints):
        return "archive" if model._meta.app_label == ARCHIVED else "default"

    def allow_relation(self, one, other, **hints):
        return True

    def allow_migrate(self, db, app_label, **hints):
        if db != "archive":
            return app_label != ARCHIVED
        # The nasty notes point to content types, so the archive has those of its own.
        return app_label in {ARCHIVED, "contenttypes"}
