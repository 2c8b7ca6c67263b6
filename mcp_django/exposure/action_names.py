"""What the tool of an action is called: the same for everybody, whoever is offered it."""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from mcp_django.exposure.admin_sites import model_admins
from mcp_django.exposure.compat import known_actions
from mcp_django.exposure.names import LONGEST_NAME, TOOL_NAME
from mcp_django.exposure.registry import Registry
from mcp_django.exposure.tools import BUILT_IN

logger = logging.getLogger("mcp_django")

#: Characters of a hash that tell two names apart.
SUFFIX = 4
#: The page of the admin that deletes is not a tool of its own: `delete_record` shows it.
NEVER = frozenset({"delete_selected"})


class ActionNames:
    """Names of tools by label of the model and name of the action, and the other way round.

    A name that two actions would share, or one that is too long, ends in a few characters of a
    hash of the whole path, so that it stays when other actions come and go.
    """

    def __init__(self, known: Mapping[tuple[str, str], Any], *, taken: frozenset[str]) -> None:
        self._names: dict[tuple[str, str], str] = {}
        #: Of tools that are no actions.
        self.taken = taken
        self._taken = set(taken)
        given = {key: str(getattr(one, "mcp_name", "") or "") for key, one in known.items()}
        derived = {key: slug(*key) for key in known}
        shared = Counter(name for key, name in derived.items() if not given[key])
        # Names that somebody gave come before those that we derive.
        for key in sorted(known, key=lambda key: (not given[key], key)):
            plain = given[key] if is_free(given[key], self._taken) else derived[key]
            is_shared = not given[key] and shared[plain] > 1
            self._names[key] = self._take(key, plain, is_shared=is_shared)
        self.keys = {name: key for key, name in self._names.items()}

    def of(self, label: str, action: str) -> str:
        """The name of one tool. An action that only `get_actions` knows gets one now."""
        known = self._names.get((label, action))
        return known or unlike(slug(label, action), (label, action), self._taken)

    def _take(self, key: tuple[str, str], plain: str, *, is_shared: bool) -> str:
        name = unlike(plain, key, {*self._taken, plain} if is_shared else self._taken)
        self._taken.add(name)
        return name


def unlike(plain: str, key: tuple[str, str], taken: set[str]) -> str:
    """`plain` where it is free, and else as much of it as leaves room for a hash of the key."""
    if is_free(plain, taken):
        return plain
    digest = hashlib.sha256(".".join(key).encode()).hexdigest()
    names = (ending(plain, digest[:size]) for size in range(SUFFIX, LONGEST_NAME))
    return next(name for name in names if name not in taken)


def ending(plain: str, suffix: str) -> str:
    return f"{plain[: LONGEST_NAME - len(suffix) - 1].rstrip('_')}_{suffix}"


def is_free(name: str, taken: set[str]) -> bool:
    return bool(TOOL_NAME.fullmatch(name)) and "__" not in name and name not in taken


def slug(label: str, action: str) -> str:
    """`shop_order_mark_shipped`, of whatever length."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", f"{label}_{action}")
    plain = re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")
    return plain if plain[:1].isalpha() else f"model_{plain}".rstrip("_")


def actions_of(registry: Registry) -> Iterator[tuple[tuple[str, str], Any]]:
    """The actions of every exposed model that classes tell of, with what the site wrote."""
    for model, exposure in registry.candidates.items():
        for name in exposure.actions:
            yield (exposure.label, name), None
        for model_admin in reversed(model_admins(model)):
            for name, function in told_actions(model_admin).items():
                if name not in NEVER:
                    yield (exposure.label, name), function


def told_actions(model_admin: Any) -> dict[str, Any]:
    try:
        return known_actions(model_admin)
    except Exception:
        # Code of the site: its actions get their names when somebody is offered them.
        logger.exception("The actions of %s cannot be told.", model_admin)
        return {}


_kept: tuple[Any, ...] = (None, None, None)


def action_names(registry: Registry) -> ActionNames:
    """The names for what is registered now."""
    global _kept
    candidates, tools = registry.candidates, tuple(registry.tools)
    if _kept[0] is not candidates or _kept[1] != tools:
        made = ActionNames(dict(actions_of(registry)), taken=BUILT_IN.union(tools))
        _kept = candidates, tools, made
    names: ActionNames = _kept[2]
    return names


def unfit_names(registry: Registry) -> Iterator[str]:
    """What is wrong with names that actions were given, a sentence for each."""
    names = action_names(registry)
    for (label, action), function in actions_of(registry):
        given, name = getattr(function, "mcp_name", ""), names.of(label, action)
        if given and given != name:
            yield (
                f"actions: the tool of {label}.{action} cannot be called {given!r}, since that is "
                f"no name for a tool or another one has it. It is called {name!r} meanwhile."
            )
