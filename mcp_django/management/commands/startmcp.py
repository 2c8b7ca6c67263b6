"""Write the `mcp.py` of an app from its admin, for people to read and to change."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError

from mcp_django.exposure.registry import registry

#: As many characters as Black and Ruff allow in a line where a project does not say.
WIDTH = 88
#: What the class of a model says besides `fields`, in this order.
ATTRIBUTES = ("exclude", "more_filter_fields", "search_fields", "label_fields", "ordering")
HEAD = '''"""What assistants may see of {label}, as `manage.py startmcp` read it from the admin.

Read it before you deploy it: who may view a model gets all its fields. Say with
`description` what nobody can guess, such as units.
"""

import mcp_django as mcp

'''
WHY = "Left out is what no admin shows, what looks secret as a whole, and what code opens already."
SECRET = (
    "These look secret. Uncomment what everybody who may view",
    "the model may get from an assistant:",
)


class Command(BaseCommand):
    help = "Write the mcp.py of an app from the ModelAdmins of its models, to read and to change."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("app", metavar="APP", help="The label of an app, such as shop.")
        parser.add_argument("--force", action="store_true", help="Overwrite the mcp.py there is.")

    def handle(self, *args: Any, app: str, force: bool, **options: Any) -> None:
        if not apps.is_installed("django.contrib.admin"):
            raise CommandError("startmcp needs django.contrib.admin in INSTALLED_APPS.")
        try:
            config = apps.get_app_config(app)
        except LookupError as error:
            raise CommandError(str(error)) from None
        path = Path(config.path) / "mcp.py"
        if "site-packages" in path.parts:
            raise CommandError(f"{app} is an installed package. Write to an app of your own.")
        exists = path.exists()
        if path.with_suffix("").exists() or (exists and not force):
            raise CommandError(f"There is {path} already. To overwrite a file, add --force.")
        # What is registered before there is a file stands in the mcp.py of another app.
        models = [one for one in config.get_models() if exists or not registry.is_registered(one)]
        classes = {model: "\n".join(class_of(model)) for model in models}
        written = {model: text for model, text in classes.items() if text}
        if not written:
            raise CommandError(f"There is no model of {app} to open. {WHY}")
        text = HEAD.format(label=app) + "\n".join(imports_of(written))
        text += "".join(f"\n\n\n{body}" for body in written.values()) + "\n"
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"Cannot write: {error}") from None
        self.stdout.write(f"{path}: {', '.join(model.__name__ for model in written)}")
        left_out = [model.__name__ for model in config.get_models() if model not in written]
        if left_out:
            self.stdout.write(f"Without {', '.join(left_out)}. {WHY}")
        self.stdout.write("Read it. Then run: manage.py check")


def imports_of(models: Iterable[Any]) -> Iterator[str]:
    """Yield the lines that import the models, as isort writes them."""
    ordered = sorted(models, key=attrgetter("__module__", "__name__"))
    for module, group in groupby(ordered, key=attrgetter("__module__")):
        names = [model.__name__ for model in group]
        line = f"from {module} import {', '.join(names)}"
        yield from [line] if len(line) <= WIDTH else wrapped(f"from {module} import (", names, ")")


def class_of(model: Any) -> Iterator[str]:
    """Yield the lines of the exposure of a model. None: it is left out."""
    # It needs the admin, which is optional.
    from mcp_django.exposure.admin_sites import admin_fields, exposure_of, model_admins

    for model_admin in model_admins(model)[:1]:
        exposure: Any = exposure_of(model_admin)
        if getattr(model_admin, "mcp_expose", False) or not exposure.fields:
            return
        decided = {*exposure.fields, *exposure.exclude}
        names = () if hasattr(model_admin, "mcp_fields") else admin_fields(model_admin)
        yield f"@mcp.register({model.__name__})"
        yield f"class {model.__name__}Exposure(mcp.ModelExposure):"
        secret = [name for name in names if name not in decided]
        yield from list_of("fields", exposure.fields, secret=secret)
        for name in ATTRIBUTES:
            if values := getattr(exposure, name):
                yield from list_of(name, values)


def list_of(name: str, values: Iterable[str], *, secret: Iterable[str] = ()) -> Iterator[str]:
    """Yield the lines that assign a list, in one line where that is short."""
    quoted = [f'"{value}"' for value in values]
    line = f"    {name} = [{', '.join(quoted)}]"
    comments = [*SECRET, *(f'"{value}",' for value in secret)] if secret else []
    if len(line) <= WIDTH and not comments:
        yield line
    else:
        yield from wrapped(f"    {name} = [", quoted, "    ]", comments=comments, indent=8)


def wrapped(
    start: str, items: Iterable[str], end: str, *, comments: Iterable[str] = (), indent: int = 4
) -> Iterator[str]:
    yield start
    yield from (f"{' ' * indent}{item}," for item in items)
    yield from (f"{' ' * indent}# {comment}" for comment in comments)
    yield end
