"""Show what is missing so that people can sign in to connect an assistant."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from django.db import connections, router
from django.db.migrations.executor import MigrationExecutor

from mcp_django.auth.authenticators import BY_APP
from mcp_django.auth.resource import endpoint_url, issuers
from mcp_django.oauth.setup import SetupStep, missing_steps


class Command(BaseCommand):
    help = (
        "Show what is missing so that people can sign in with OAuth to connect an assistant, "
        "as text to paste. Changes nothing."
    )
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        steps = list(missing_steps())
        if not steps and is_to_migrate():
            steps.append(SetupStep("The tables are missing, or old.", "python manage.py migrate"))
        if not steps and not issuers():
            steps.append(
                SetupStep(
                    "AUTHENTICATORS is set, and takes no access tokens of this site.",
                    f'"AUTHENTICATORS": [..., "{BY_APP["mcp_django.oauth"]}"]',
                )
            )
        for step in steps:
            self.stdout.write(f"{step.problem}\n    {step.solution}\n")
        if not steps:
            self.stdout.write(f"Nothing is missing. Assistants connect to {endpoint_url()}")


def is_to_migrate() -> bool:
    from mcp_django.oauth.models import Authorization

    executor = MigrationExecutor(connections[router.db_for_write(Authorization)])
    labels = {"oauth2_provider", "mcp_django_oauth"}
    leaves = [node for node in executor.loader.graph.leaf_nodes() if node[0] in labels]
    return bool(executor.migration_plan(leaves))
