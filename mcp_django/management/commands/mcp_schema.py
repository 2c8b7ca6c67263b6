"""Write down what callers are offered, as a stable file for review and CI."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from copy import copy
from difflib import unified_diff
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from mcp_django.context import CallContext
from mcp_django.exposure.decisions import NOTHING_DECIDED, Exposed, named
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.prompts.stored import all_prompts, prompt_definition, prompt_exists
from mcp_django.exposure.query.describe import describe
from mcp_django.exposure.registry import registry
from mcp_django.exposure.resources.functions import code_definitions
from mcp_django.exposure.resources.models import FILES, TEMPLATES, model_templates
from mcp_django.exposure.tools.decisions import tool_definition, tool_exists
from mcp_django.handlers.tools import offered_tools
from mcp_django.management.commands.mcp_list import call_as_user, needs_of, rights_of_operator
from mcp_django.management.commands.mcp_token import find_user
from mcp_django.protocol import render
from mcp_django.protocol.revisions import MODERN

#: By scope, by kind and by name.
OfferSchema = dict[str, dict[str, dict[str, Any]]]


class Command(BaseCommand):
    help = "Write what code offers to assistants as JSON, by scope, with what people need for it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", metavar="USER", help="Write what this user is offered.")
        differs = "Show how FILE differs, and exit with 1."
        parser.add_argument("--check", metavar="FILE", type=Path, help=differs)

    def handle(self, *args: Any, user: str | None, check: Path | None, **options: Any) -> None:
        schema = code_schema() if user is None else call_as_user(find_user(user), caller_schema)
        text = json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False, default=named)
        text += "\n"
        if check is None:
            self.stdout.write(text, ending="")
            return
        before = check.read_text("utf-8", "replace") if check.is_file() else ""
        if before != text:
            both = before.splitlines(), text.splitlines()
            self.stdout.write("\n".join(unified_diff(*both, str(check), "now", lineterm="")))
            typed = f"manage.py mcp_schema {f'--user {user} ' if user else ''}> {check}"
            raise CommandError(f"{check} is not what is offered now. If that is right: {typed}")
        self.stdout.write(f"{check} is what is offered now.")


def code_schema() -> OfferSchema:
    """Return what code offers to those whom it lets in. No row decides about it."""
    schema, rights = OfferSchema(), rights_of_operator()
    rights.exposed = Exposed(registry.candidates, NOTHING_DECIDED)
    context = CallContext(request=rights.request, principal=rights.principal, revision=MODERN[-1])
    things: Any = (*offered_tools(context, rights), *registry.prompts.values())
    for thing in things:
        add(schema, thing, thing.definition)
    for resource in map(copy, registry.resources.values()):
        # Code of the site would say when it changed.
        resource.last_modified = None
        add(schema, resource, resource.definition(rights.request))
    for template in (*TEMPLATES, FILES):
        add(schema, template, template)
    for code in registry.exposures.values():
        entry = {name: getattr(code, name) for name in ModelExposure.__annotations__}
        level, mask = code.standard_level.label, dict(code.mask)
        put(schema, code, "models", {**entry, "name": code.label, "level": level, "mask": mask})
    return schema


def caller_schema(context: CallContext, rights: Rights) -> OfferSchema:
    """Return what a caller is offered, in the words of staff."""
    schema = OfferSchema()
    for tool in offered_tools(context, rights):
        if tool_exists(rights, tool):
            add(schema, tool, tool_definition(rights, tool))
    for prompt in all_prompts(rights):
        if prompt_exists(rights, prompt):
            add(schema, prompt, prompt_definition(rights, prompt))
    for resource in (*code_definitions(rights), *model_templates(rights)):
        add(schema, resource, resource)
    for exposure in rights.exposures():
        put(schema, exposure, "models", describe(rights, exposure))
    return schema


def add(schema: OfferSchema, thing: Any, definition: Any) -> None:
    """Add what clients of the newest revision get, in members that are named as those of lists."""
    entry = render.definition(definition, MODERN[-1].features)
    entry.get("annotations", {}).pop("lastModified", None)
    name = type(definition).__name__.removesuffix("Definition")
    put(schema, thing, f"{name[0].lower()}{name[1:]}s", entry)


def put(schema: OfferSchema, thing: Any, kind: str, entry: dict[str, Any]) -> None:
    scope, *needs = needs_of(thing, ())
    name = entry.get("uri") or entry.get("uriTemplate") or entry["name"]
    kinds = schema.setdefault(scope.removeprefix("the scope "), {})
    kinds.setdefault(kind, {})[name] = {**entry, "needs": needs}
