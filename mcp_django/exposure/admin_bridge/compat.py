"""Where the admin keeps its actions: in Django 5.2, 6.0 and 6.1, and in packages beside it.

Nothing else knows what an action looks like in one of them.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest
from django.utils.choices import flatten_choices, normalize_choices

#: Since Django 6.1 an action says whether it belongs to the changelist, the change form or both.
LOCATIONS: Any = getattr(admin, "ActionLocation", None)


class Place(enum.Enum):
    """Where a person finds an action, which is how it is run."""

    #: The menu over the changelist: any number of records.
    CHANGELIST = "changelist"
    #: The menu over the change form: one record.
    CHANGE_FORM = "change_form"
    #: A button on the change form, with a URL of its own: one record.
    RECORD_BUTTON = "record_button"
    #: A button on the changelist, with a URL of its own: it is about no record in particular.
    MODEL_BUTTON = "model_button"


@dataclass(frozen=True, kw_only=True)
class AdminAction:
    """One action, as the admin offers it to one user."""

    name: str
    #: What the site wrote. Its attributes say more about it.
    function: Any
    description: str
    place: Place = Place.CHANGELIST

    @property
    def permissions(self) -> tuple[str, ...] | None:
        """The verbs of which any one is enough. None: all who may view the model may run it."""
        declared = getattr(self.function, "allowed_permissions", None)
        return None if declared is None else tuple(declared)


#: Actions that a request is offered, from one source.
Source: TypeAlias = "Callable[[ModelAdmin[Any], HttpRequest], Iterable[AdminAction]]"


def offered_actions(model_admin: ModelAdmin[Any], request: HttpRequest) -> dict[str, AdminAction]:
    """By name, the actions that the admin would show to this user. Its own come first."""
    found: dict[str, AdminAction] = {}
    for source in SOURCES:
        for action in source(model_admin, request):
            found.setdefault(action.name, action)
    return found


def menu_actions(model_admin: ModelAdmin[Any], request: HttpRequest) -> Iterator[AdminAction]:
    """What stands in the menus. The form of a menu decides: what it has no choice for is refused,
    whatever `get_actions` says.
    """
    for place, location in menus():
        actions = asked(model_admin.get_actions, request, location)
        choices = asked(model_admin.get_action_choices, request, location)
        labels = dict(flatten_choices(normalize_choices(choices)))
        for name, action in actions.items():
            if name in labels:
                function, text = parts_of(action)[0], str(labels[name])
                yield AdminAction(name=name, function=function, description=text, place=place)


def menus() -> list[tuple[Place, Any]]:
    if LOCATIONS is None:
        return [(Place.CHANGELIST, None)]
    return [(Place.CHANGELIST, LOCATIONS.CHANGE_LIST), (Place.CHANGE_FORM, LOCATIONS.CHANGE_FORM)]


def asked(method: Callable[..., Any], request: HttpRequest, location: Any) -> Any:
    """What the method says of one menu. Overrides with the signature of Django 6.0 know of the
    changelist only, for Django as well.
    """
    if location is None:
        return method(request)
    parameter = inspect.signature(method).parameters.get("action_location")
    if parameter is not None and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
        return method(request, action_location=location)
    return method(request) if location is LOCATIONS.CHANGE_LIST else {}


def parts_of(action: Any) -> tuple[Any, str]:
    """Function and name, of a tuple or of an object (since Django 6.1)."""
    # An object can be indexed as well, which warns.
    if isinstance(action, tuple):
        return action[0], str(action[1])
    return action.func, str(action.name)


# django-object-actions: buttons that are methods of the ModelAdmin, with views of their own.


def button_actions(model_admin: Any, request: HttpRequest) -> Iterator[AdminAction]:
    """The package shows `permissions` of a button to nobody; here they are asked, as in menus."""
    for place, names in buttons(model_admin).items():
        shown = shown_buttons(model_admin, request, place)
        for name in names:
            function = getattr(model_admin, name)
            label = getattr(function, "label", "") or getattr(function, "short_description", "")
            action = AdminAction(
                name=name,
                function=function,
                description=str(label or name.replace("_", " ").capitalize()),
                place=place,
            )
            if name in shown and is_permitted(model_admin, request, action):
                yield action


def buttons(model_admin: Any) -> dict[Place, list[str]]:
    """The names for which the package has made URLs."""
    if not hasattr(model_admin, "get_change_actions"):
        return {}
    return {
        Place.RECORD_BUTTON: list(model_admin.change_actions),
        Place.MODEL_BUTTON: list(model_admin.changelist_actions),
    }


def shown_buttons(
    model_admin: Any, request: HttpRequest, place: Place, key: str | None = None
) -> list[str]:
    """The names that this user finds on the page of one record; without one, on any."""
    if place is Place.MODEL_BUTTON:
        return list(model_admin.get_changelist_actions(request))
    try:
        return list(model_admin.get_change_actions(request, key, ""))
    except Exception:
        if key is not None:
            raise
        # It looks at the record, so the answer waits until one is named.
        return list(model_admin.change_actions)


def is_permitted(model_admin: Any, request: HttpRequest, action: AdminAction) -> bool:
    verbs = action.permissions
    return verbs is None or any(
        getattr(model_admin, f"has_{verb}_permission")(request) for verb in verbs
    )


#: Where actions are looked for. Another package's take a function more.
SOURCES: list[Source] = [menu_actions, button_actions]


def known_actions(model_admin: Any) -> dict[str, Any]:
    """The functions of all actions by name, whoever may run them, as far as classes tell."""
    found: dict[str, Any] = {}
    for _, location in menus():
        args = () if location is None else (location,)
        parts = map(parts_of, model_admin._get_base_actions(*args))
        found |= {name: function for function, name in parts}
    for names in buttons(model_admin).values():
        found |= {name: getattr(model_admin, name) for name in names}
    return found
