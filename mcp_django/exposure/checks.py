"""Attributes of exposures, which Python takes and nothing reads."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error, Warning
from django.utils.functional import Promise

from mcp_django.exposure.options import ModelExposure
from mcp_django.levels import Level

#: The attributes that list names.
LISTS = tuple(
    name for name, kind in ModelExposure.__annotations__.items() if kind.startswith("Sequence")
)
#: The same of a ModelAdmin.
ADMIN_LISTS = ("mcp_fields", "mcp_computed", "mcp_exclude_fields", "mcp_actions")
#: The methods that a site overrides.
METHODS = ("get_queryset", "has_view_permission", "get_fields", "get_ordering", "is_masked")
#: How similar a name is to the one that was meant. At 0.83 "table_fields" would be a misspelt
#: "label_fields".
SIMILAR = 0.85

#: What to write instead of what is called otherwise in ModelAdmin, in Django REST framework, and
#: in the attributes of this package for a ModelAdmin.
HINTS = {
    name: hint
    for hint, names in {
        "Write fields.": "list_display fieldsets mcp_fields",
        "Write filter_fields.": "list_filter date_hierarchy filterset_fields",
        "Write order_fields.": "sortable_by ordering_fields",
        "Write write_fields.": "list_editable",
        "Write write_fields, and list in it the fields that may be set.": (
            "readonly_fields read_only_fields"
        ),
        "Write get_fields.": "get_list_display get_fieldsets get_exclude",
        "Write it in the ModelAdmin of the model, which decides who may write.": (
            "get_readonly_fields has_add_permission has_change_permission has_delete_permission"
        ),
        "Write get_queryset, a method.": "queryset",
        "Write has_view_permission, a method.": "permission_classes",
        "Write computed.": "mcp_computed",
        "Write exclude.": "mcp_exclude_fields",
        "Write actions.": "mcp_actions",
    }.items()
    for name in names.split()
}


def check_attribute_names(exposures: Iterable[ModelExposure]) -> Iterator[CheckMessage]:
    """W010: attributes that nothing reads, and that were surely meant for an exposure.

    Other base classes than exposures are left alone: they may serve a ModelAdmin as well.
    """
    # Each once: classes that inherit from one of the site have its mistakes, too.
    for owner in dict.fromkeys(owner for one in exposures for owner in type(one).__mro__):
        for name, value in vars(owner).items() if issubclass(owner, ModelExposure) else ():
            if name.startswith("_") or hasattr(ModelExposure, name):
                continue
            if hint := HINTS.get(name) or hint_for(name, value):
                yield Warning(
                    f"{owner.__name__} has the attribute {name}, which no exposure has. Nothing "
                    "reads it.",
                    hint=hint,
                    obj=owner,
                    id="mcp_django.W010",
                )


def hint_for(name: str, value: Any) -> str:
    """What to write instead of a name that is close to one of ours. Else empty: a site may have
    attributes and methods of its own.
    """
    known = METHODS if inspect.isfunction(value) else tuple(ModelExposure.__annotations__)
    for meant in known:
        # Of a short name, two letters that changed places are a third.
        swapped = name != meant and sorted(name) == sorted(meant)
        is_similar = swapped or SequenceMatcher(None, name, meant).ratio() >= SIMILAR
        if is_similar and takes(meant, value):
            return f"Write {meant}. A name of your own may begin with an underscore."
    return ""


def takes(meant: str, value: Any) -> bool:
    """Whether the attribute or method that is called `meant` could have this value."""
    default = getattr(ModelExposure, meant)
    if inspect.isfunction(value):
        own, theirs = ([*inspect.signature(method).parameters] for method in (value, default))
        return own in (theirs, theirs[:2])
    if meant in LISTS:
        return isinstance(value, list | tuple | set | frozenset | str)
    if meant == "level":
        return isinstance(value, Level)
    if isinstance(default, str):
        return isinstance(value, str | Promise)
    return type(value) is type(default)


def check_lists(exposure: ModelExposure) -> Iterator[CheckMessage]:
    """E005: a text where a list of names belongs, which Python takes for a list of letters."""
    owners = [(exposure, LISTS), *((one, ADMIN_LISTS) for one in admins_of(exposure))]
    for owner, name in ((owner, name) for owner, names in owners for name in names):
        text = getattr(owner, name, None)
        if not isinstance(text, str):
            continue
        no_all = ' There is no "all": name each.' if text == "__all__" else ""
        first = exposure.model._meta.pk_fields[0].name if no_all else text
        yield Error(
            f"{exposure.label}: {name} is the text {text!r}, and must be a list of names.{no_all}",
            hint=f'{name} = ["{first}"]',
            obj=type(owner),
            id="mcp_django.E005",
        )


def admins_of(exposure: ModelExposure) -> list[Any]:
    """The ModelAdmins of the model. None without the admin."""
    if not apps.is_installed("django.contrib.admin"):
        return []
    from mcp_django.exposure.admin_sites import model_admins

    return model_admins(exposure.model)
