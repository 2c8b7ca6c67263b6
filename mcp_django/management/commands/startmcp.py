"""Write the `mcp.py` of an app from its admin, for people to read and to change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management.base import AppCommand, CommandError

from mcp_django.exposure.registry import registry

#: As many characters as Black and Ruff allow in a line where a project does not say.
LINE_WIDTH = 88
WRITTEN = ("fields", "exclude", "more_filter_fields", "search_fields", "label_fields", "ordering")
HEAD = '''"""What assistants may see of {label}, as `manage.py startmcp` read it from the admin.

Read it before you deploy it: who may view a model gets all its fields.
"""

import mcp_django as mcp

'''
WHY = "Left out is what no admin shows, what looks secret as a whole, and what code opens already."
NOTE_ON_SECRETS = "        # These look secret. Uncomment what all who may view the model may get:"


class Command(AppCommand):
    help = "Write the mcp.py of an app from the ModelAdmins of its models, to read and to change."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("--force", action="store_true", help="Overwrite the mcp.py there is.")

    def handle_app_config(self, app_config: Any, **options: Any) -> None:
        path, label = Path(app_config.path) / "mcp.py", app_config.label
        if not apps.is_installed("django.contrib.admin"):
            raise CommandError("startmcp needs django.contrib.admin in INSTALLED_APPS.")
        if "site-packages" in path.parts:
            raise CommandError(f"{label} is an installed package. Write to an app of your own.")
        exists = path.exists()
        if path.with_suffix("").exists() or (exists and not options["force"]):
            raise CommandError(f"There is {path} already. To overwrite a file, add --force.")
        models = list(app_config.get_models())
        # What is registered before there is a file stands in the mcp.py of another app.
        free = [model for model in models if exists or not registry.is_registered(model)]
        classes = {model: lines for model in free if (lines := "\n".join(class_of(model)))}
        if not classes:
            raise CommandError(f"There is no model of {label} to open. {WHY}")
        parts = ["\n".join(imports_of(classes)), *classes.values()]
        path.write_text(HEAD.format(label=label) + "\n\n\n".join(parts) + "\n", encoding="utf-8")
        self.stdout.write(f"{path}: {', '.join(model.__name__ for model in classes)}")
        if missing := [model.__name__ for model in models if model not in classes]:
            self.stdout.write(f"Without {', '.join(missing)}. {WHY}")
        self.stdout.write("Read it. Then run: manage.py check")


def imports_of(models: Iterable[Any]) -> Iterator[str]:
    """Yield the lines that import the models, in the order of isort."""
    ordered = sorted(models, key=attrgetter("__module__", "__name__"))
    for module, group in groupby(ordered, key=attrgetter("__module__")):
        names = [model.__name__ for model in group]
        short = f"from {module} import {', '.join(names)}"
        long = [f"from {module} import (", *(f"    {name}," for name in names), ")"]
        yield from [short] if len(short) <= LINE_WIDTH else long


def class_of(model: Any) -> Iterator[str]:
    """Yield the lines of the exposure of a model. Without any it is left out."""
    # It needs the admin, which is optional.
    from mcp_django.exposure.admin_sites import admin_fields, exposure_of, model_admins

    admins = model_admins(model)
    exposure: Any = exposure_of(admins[0]) if admins else None
    is_open = any(getattr(one, "mcp_expose", False) for one in admins)
    if is_open or exposure is None or not exposure.fields:
        return
    yield f"@mcp.register({model.__name__})"
    yield f"class {model.__name__}Exposure(mcp.ModelExposure):"
    decided = {*exposure.fields, *exposure.exclude}
    names = () if hasattr(admins[0], "mcp_fields") else admin_fields(admins[0])
    secret = [f'        # "{name}",' for name in names if name not in decided]
    for option in WRITTEN:
        values = [f'"{value}"' for value in getattr(exposure, option)]
        short = f"    {option} = [{', '.join(values)}]"
        long = [f"    {option} = [", *(f"        {value}," for value in values)]
        if secret and option == "fields":
            yield from [*long, NOTE_ON_SECRETS, *secret, "    ]"]
        elif values:
            yield from [short] if len(short) <= LINE_WIDTH else [*long, "    ]"]
