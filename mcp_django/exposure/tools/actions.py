"""One tool for each action of the admin that is switched on and that this caller is offered."""

from __future__ import annotations

import hashlib
import inspect
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any

import msgspec
from django.contrib.admin import ModelAdmin
from msgspec import UNSET, UnsetType

from mcp_django.cached import Cached
from mcp_django.context import CallContext, running
from mcp_django.exceptions import NotFound
from mcp_django.exposure.admin_bridge.compat import (
    AdminAction,
    Place,
    buttons,
    known_actions,
    offered_actions,
)
from mcp_django.exposure.admin_bridge.relations import AdminDescriber
from mcp_django.exposure.admin_bridge.requests import NotRouted, admin_request, path_of
from mcp_django.exposure.admin_sites import AdminSource, model_admins, overrides
from mcp_django.exposure.forms.schemas import NEWEST, folded
from mcp_django.exposure.functions.arguments import Arguments
from mcp_django.exposure.functions.json_schemas import for_clients
from mcp_django.exposure.limits import raise_lost_database
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.primitives import BUILT_IN, Outcome
from mcp_django.exposure.query.arguments import about
from mcp_django.exposure.query.related import MOST_OBJECTS
from mcp_django.exposure.registry import LONGEST_NAME, TOOL_NAME, Registry
from mcp_django.exposure.tools.action_calls import ActionCall, OfferedAction
from mcp_django.levels import Level
from mcp_django.principal import ACTION, READ
from mcp_django.protocol.render import tool_definition
from mcp_django.protocol.results import ToolAnnotations, ToolDefinition

# What the tool of an action is called: the same for everybody, whoever is offered it.

logger = logging.getLogger("mcp_django")

#: Characters of a hash that tell two names apart.
SUFFIX = 4
#: The page of the admin that deletes is not a tool of its own: `delete_record` shows it.
NEVER = frozenset({"delete_selected"})


class ActionNames:
    """Names of tools by label of the model and name of the action, and vice versa.

    A name that two actions would share, or one that is too long, ends in a few characters of a
    hash, so that it stays when other actions come and go.
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
            name = unlike(plain, key, {*self._taken, plain} if is_shared else self._taken)
            self._taken.add(name)
            self._names[key] = name
        self.keys = {name: key for key, name in self._names.items()}

    def of(self, label: str, action: str) -> str:
        """The name of one tool. An action that only `get_actions` knows gets one now."""
        known = self._names.get((label, action))
        return known or unlike(slug(label, action), (label, action), self._taken)


def unlike(plain: str, key: tuple[str, str], taken: set[str]) -> str:
    """`plain` where it is free, and else as much of it as leaves room for a hash of the key."""
    if is_free(plain, taken):
        return plain
    digest = hashlib.sha256(".".join(key).encode()).hexdigest()
    names = (
        f"{plain[: LONGEST_NAME - size - 1].rstrip('_')}_{digest[:size]}"
        for size in range(SUFFIX, LONGEST_NAME)
    )
    return next(name for name in names if name not in taken)


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
            try:
                actions = known_actions(model_admin)
            except Exception as error:
                raise_lost_database(error)
                # Code of the site: its actions get their names when somebody is offered them.
                logger.exception("The actions of %s cannot be told.", model_admin)
                continue
            for name, function in actions.items():
                if name not in NEVER:
                    yield (exposure.label, name), function


_action_names: Cached[ActionNames] = Cached()


def action_names(registry: Registry) -> ActionNames:
    """The names for what is registered now."""
    tools = tuple(registry.tools)

    def make(before: ActionNames | None) -> ActionNames:
        return ActionNames(dict(actions_of(registry)), taken=BUILT_IN.union(tools))

    return _action_names.get(registry.candidates, tools, make=make)


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


# How the tool of an action is described: in few bytes, since every client reads it each time.

#: Bytes of a definition in tools/list.
MOST_BYTES = 720
LONGEST_TITLE = 50
SHORTEST_TEXT = 40
#: Staff see it in the list, and models ask for what they may.
UNDECLARED = "Declares no permission: who may view the model may run it."

Keys = Annotated[list[str | int], msgspec.Meta(max_length=MOST_OBJECTS)]
Key = str | int
SELECTION: dict[Place, dict[str, Any]] = {
    Place.CHANGELIST: {
        "pks": Keys | UnsetType,
        "filters": (Annotated[dict[str, Any], about("Or as in find_records.")] | UnsetType),
        "exclude": dict[str, Any] | UnsetType,
        "search": str | UnsetType,
    },
    Place.CHANGE_FORM: {"pk": Key},
    Place.RECORD_BUTTON: {"pk": Key},
    Place.MODEL_BUTTON: {},
}
REST: dict[str, Any] = {"answer": dict[str, Any] | UnsetType, "confirmation": str | UnsetType}


@lru_cache(maxsize=500)
def arguments_of(name: str, place: Place) -> Arguments:
    """What reads the arguments of one tool."""
    annotations = {**SELECTION[place], **REST}
    fields: list[Any] = [
        (argument, kind) if argument == "pk" else (argument, kind, UNSET)
        for argument, kind in annotations.items()
    ]
    struct = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
    return Arguments.of_struct(name, struct)


def action_definition(
    name: str, action: AdminAction, *, answer: Mapping[str, Any] | None = None
) -> ToolDefinition:
    """The definition, of at most MOST_BYTES. `answer` is the schema of a declared form, which is
    left out where it does not fit: the first answer of the tool tells it as well.
    """
    function, title = action.function, folded(action.description)
    given = folded(getattr(function, "mcp_description", ""))
    documented = folded((inspect.getdoc(function) or "").split("\n\n")[0])
    is_read_only = bool(getattr(function, "mcp_read_only", False))
    annotations = ToolAnnotations(
        read_only=is_read_only,
        destructive=bool(getattr(function, "mcp_destructive", not is_read_only)),
        idempotent=bool(getattr(function, "mcp_idempotent", is_read_only)),
        open_world=False,
    )
    words = title[:LONGEST_TITLE], given or documented or title
    mark = UNDECLARED if action.permissions is None else ""
    encoded = None if answer is None else msgspec.json.encode(for_clients(dict(answer)))
    return fitting_definition(name, action.place, annotations, words, mark, encoded)


@lru_cache(maxsize=500)
def fitting_definition(
    name: str, place: Place, annotations: Any, words: tuple[str, str], mark: str, answer: Any
) -> ToolDefinition:
    """Make a definition once for the same title and text, so that its bytes are made once, too."""
    title, text = words
    schema = arguments_of(name, place).schema
    properties = schema["properties"]
    if "pks" in properties:
        # Numbers are taken as well. To say so would take 40 bytes in each action.
        keys = {**properties["pks"], "items": {"type": "string"}}
        schema = {**schema, "properties": {**properties, "pks": keys}}
    titled = ToolDefinition(
        name=name,
        title="" if title == text or repeats(title, name) else title,
        description="",
        input_schema=schema,
        annotations=annotations,
    )
    # A title says in other words what the name says already.
    untitled = replace(titled, title="")
    attempts = [(titled, SHORTEST_TEXT), (untitled, 1)]
    if answer is not None:
        properties = {**schema["properties"], "answer": msgspec.json.decode(answer)}
        whole = replace(titled, input_schema={**schema, "properties": properties})
        attempts.insert(0, (whole, SHORTEST_TEXT))
    for attempt, shortest in attempts:
        kept, made = text, described_as(attempt, text, mark)
        while (excess := size_of(made) - MOST_BYTES) > 0:
            # No character takes more than six bytes.
            kept = kept[: -max(2, excess // 6)].rstrip()
            if len(kept) < max(1, min(len(text), shortest)):
                break
            made = described_as(attempt, f"{kept}…", mark)
        else:
            return made
    return described_as(untitled, "", mark)


def repeats(title: str, name: str) -> bool:
    """Whether a title says what the name says: "Cancel selected flights" of cancel_flights."""
    words = {word.rstrip("s") for word in re.findall(r"\w+", title.lower())}
    return words <= {"selected", *(word.rstrip("s") for word in name.split("_"))}


def described_as(definition: ToolDefinition, text: str, mark: str) -> ToolDefinition:
    # A sentence of its own where another one follows.
    sentence = f"{text}." if mark and text[-1:].isalnum() else text
    return replace(definition, description=" ".join(filter(None, (sentence, mark))))


def size_of(definition: ToolDefinition) -> int:
    """Bytes in tools/list, where the newest revision has most of them."""
    return len(msgspec.json.encode(tool_definition(definition, NEWEST))) + len(",")


#: A call shows records before it acts on them, so it takes the right to read as well.
SCOPES = frozenset({ACTION, READ})
#: What the permissions of an action mean where the site has not written a method for them.
PLAIN_VERBS = frozenset({"add", "change", "delete", "view"})


@dataclass(frozen=True, kw_only=True, eq=False)
class ActionTool(OfferedAction):
    """The tool of an action. It exists for as long as a call."""

    #: What staff want to be confirmed is shown as records, or as the page of the action.
    confirms_itself = True
    asks = False

    @property
    def definition(self) -> ToolDefinition:
        form, answer = getattr(self.action.function, "mcp_form", None), None
        try:
            if form is not None:
                answer = AdminDescriber(self.rights).form(form())
                # It may have fields of the menu, too.
                del answer["additionalProperties"]
        except Exception as error:
            raise_lost_database(error)
            # Code of the site: a tool without it is better than none at all.
            logger.exception("The form of %s cannot be described.", self.name)
        return action_definition(self.name, self.action, answer=answer)

    @property
    def is_read_only(self) -> bool:
        return bool(getattr(self.action.function, "mcp_read_only", False))

    def exists_for(self, rights: Rights) -> bool:
        if rights is self.rights:
            return True
        return ActionTools(self.context, rights).find(self.name) is not None

    def check(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> None:
        self._read(arguments)

    def call(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> Outcome:
        """Run the action, or show what it would do. Raises ToolError for what the admin refuses
        and for what it fails at.
        """
        with running(self.context):
            return ActionCall(**vars(self), arguments=self._read(arguments)).run()

    def _read(self, arguments: Mapping[str, Any]) -> Any:
        # Without an example: that of a change could be taken for an order.
        return arguments_of(self.name, self.action.place).decode(arguments)


class ActionTools:
    """The tools of one caller, by name."""

    def __init__(self, context: CallContext, rights: Rights) -> None:
        self.context = context
        self.rights = rights
        self.names: ActionNames = action_names(rights.registry)

    def all(self) -> list[ActionTool]:
        return [tool for exposure in self._exposures() for tool in self._tools_of(exposure)]

    def find(self, name: str) -> ActionTool | None:
        label, _ = self.names.keys.get(name, (None, ""))
        # An action that only `get_actions` knows may be of any model.
        found = [one for one in self._exposures() if label in (None, one.label)]
        tools = (tool for exposure in found for tool in self._tools_of(exposure))
        return next((tool for tool in tools if tool.name == name), None)

    def is_constant(self) -> bool:
        """Whether nothing but the permissions of the user decides about these tools."""
        return all(is_constant(exposure) for exposure in self._candidates())

    def _candidates(self) -> Iterator[ModelExposure]:
        """The models of which an action is switched on for anybody."""
        tools = self.rights.exposed.decisions.tools
        opened = {name for name, decision in tools.items() if decision.enabled}
        known = {self.names.keys[name][0] for name in opened if name in self.names.keys}
        # What only `get_actions` knows may be an action of any model.
        has_strange = not opened <= {*self.names.keys, *self.names.taken}
        for exposure in self.rights.exposed.exposures.values():
            if exposure.actions or exposure.label in known or has_strange:
                yield exposure

    def _exposures(self) -> Iterator[ModelExposure]:
        if not self.rights.has_scopes(SCOPES):
            return
        for exposure in self._candidates():
            if self.rights.level(exposure.model) >= Level.ACT:
                yield exposure

    def _tools_of(self, exposure: ModelExposure) -> Iterator[ActionTool]:
        model_admin = self.rights.model_admin(exposure.model)
        if model_admin is None:
            return
        for action in self._offered(model_admin).values():
            if not self._is_within(action):
                continue
            tool = ActionTool(
                context=self.context,
                name=self.names.of(exposure.label, action.name),
                action=action,
                exposure=exposure,
                model_admin=model_admin,
                rights=self.rights,
            )
            # What staff switch off, they switch off for every kind of tool: `tool_exists`.
            decision = self.rights.exposed.decisions.tools.get(tool.name)
            is_on = action.name in exposure.actions or (
                decision is not None and decision.enabled is True
            )
            is_held = self.rights.is_read_only and not tool.is_read_only
            if is_on and action.name not in NEVER and not is_held:
                yield tool

    def _is_within(self, action: AdminAction) -> bool:
        """Whether a credential that is limited to some models reaches an action at all.

        As with functions, only the permissions of an action say what it is about. Without one of
        those that Django has for each model, it may touch anything.
        """
        if self.rights.principal.restriction.models is None:
            return True
        verbs = action.permissions or ()
        return bool(verbs) and PLAIN_VERBS.issuperset(verbs)

    def _offered(self, model_admin: ModelAdmin[Any]) -> dict[str, AdminAction]:
        try:
            path = path_of(model_admin, "changelist")
            request, _ = admin_request(self.context, self.rights, model_admin, path=path)
            if not model_admin.has_view_or_change_permission(request):
                return {}
            return offered_actions(model_admin, request)
        except (NotFound, NotRouted):
            # The site lets nobody in that way, or has no URLs.
            return {}
        except Exception as error:
            raise_lost_database(error)
            # Code of the site: this model has no actions, and all the others have theirs.
            logger.exception("The actions of %s cannot be told.", model_admin)
            return {}


def is_constant(exposure: ModelExposure) -> bool:
    """Whether no code of the site has a say in which actions of a model a user is offered."""
    if exposure.decides_itself or exposure.overrides("get_fields"):
        return False
    return all(
        AdminSource(one).is_constant()
        and not overrides(one, "get_actions", "get_action_choices")
        and not buttons(one)
        and not overrides(one, *(f"has_{verb}_permission" for verb in PLAIN_VERBS))
        and all(
            PLAIN_VERBS.issuperset(getattr(action, "allowed_permissions", ()))
            for action in known_actions(one).values()
        )
        for one in model_admins(exposure.model)
    )
