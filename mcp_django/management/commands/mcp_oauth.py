"""Show what is missing so that people can sign in to connect an assistant."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from mcp_django.auth.authenticators import BY_APP
from mcp_django.auth.resource import endpoint_url, issuers
from mcp_django.management.doctor.site import database_of_app, diagnose_migrations
from mcp_django.oauth.setup import SetupStep, missing_steps


class Command(BaseCommand):
    help = (
        "Show what is missing so that people can sign in with OAuth to connect an assistant, "
        "as text to paste. Changes nothing."
    )
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        steps = list(missing_steps())
        if not steps:
            findings = diagnose_migrations([database_of_app("mcp_django_oauth")])
            steps = [
                SetupStep(finding.sentence, finding.hint) for finding in findings if finding.hint
            ]
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
