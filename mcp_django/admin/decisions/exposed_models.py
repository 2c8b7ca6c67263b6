"""The page on which staff decide what there is of each model for assistants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.contrib import admin, messages
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import Group, Permission, PermissionsMixin
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.forms import Field, Widget
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from mcp_django.admin.decisions.base import (
    AS_IN_CODE,
    NO_LONGER,
    DecisionAdmin,
    DecisionForm,
    column,
    filter_by,
    word_for,
)
from mcp_django.admin.tokens import ONLY_READ, have_only_read
from mcp_django.exposure.decisions import label_choices, untrusted_choices, write_choices
from mcp_django.exposure.fields import kind_of
from mcp_django.exposure.options import ModelExposure, looks_secret
from mcp_django.exposure.paths import (
    FILTER,
    GROUP,
    INCLUDE,
    ORDER,
    RETURN,
    Declaration,
    Path,
    resolve,
)
from mcp_django.exposure.query.describe import label_of
from mcp_django.exposure.query.serializers import as_text
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level

# Which fields records show, and what else they are good for: one table of checkboxes.

#: By use: the chosen names, or None for those of code.
Chosen: TypeAlias = "dict[str, list[str] | None]"


@dataclass(frozen=True, kw_only=True, eq=False)
class Use:
    """A column of the table: one use of fields, and the names that code allows for it."""

    name: str
    title: str
    allowed: Sequence[str]
    #: Those that have it while staff choose none.
    standard: Sequence[str]
    #: Whether staff add to the standard, and take nothing out of it.
    adds: bool = False

    def chosen(self, listed: Sequence[str] | None) -> list[str]:
        """Return the names that have the use, in the order of code and each once."""
        names = self.standard if listed is None else listed
        return [
            path for path in self.allowed if path in names or (self.adds and path in self.standard)
        ]

    def cell(self, path: str, listed: Sequence[str] | None) -> tuple[Use, bool, bool, bool]:
        """Return whether code allows the field, whether it is ticked, and what code says."""
        return self, path in self.allowed, path in self.chosen(listed), path in self.standard


class FieldChoicesWidget(Widget):
    template = "mcp_django/field_choices.html"
    uses: Sequence[Use] = ()
    #: Label, type and help text of fields.
    about: Mapping[str, str] = {}

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Chosen:
        return {
            use.name: None
            if data.get(f"{name}-{use.name}-code")
            else list(data.getlist(f"{name}-{use.name}"))
            for use in self.uses
        }

    def id_for_label(self, id_: str) -> str:
        return ""  # each checkbox has a name of its own

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        chosen: Mapping[str, Any] = value or {}
        listed = {use: chosen.get(use.name) for use in self.uses}
        paths = dict.fromkeys(path for use in self.uses for path in use.allowed)
        gone = {name for use in listed for name in {*map(str, listed[use] or ())} - {*use.allowed}}
        context = {
            "name": name,
            "attrs": attrs or {},
            "uses": [(use, names is None) for use, names in listed.items()],
            "rows": [
                (path, self.about.get(path), [use.cell(path, listed[use]) for use in listed])
                for path in paths
            ],
            "gone": sorted(gone),
        }
        return SafeString(render_to_string(self.template, context))


class FieldChoicesField(Field):
    """Its value has a list for each use that staff narrowed, with names that code allows."""

    widget: Any = FieldChoicesWidget

    def clean(self, value: Chosen) -> Chosen:
        cleaned: Chosen = {}
        for use in self.widget.uses:
            names = value[use.name]
            unknown = sorted(set(names or ()) - set(use.allowed))
            if unknown:
                named = ", ".join(name[:60] for name in unknown[:5])
                raise ValidationError(
                    f"{use.title}: code does not allow {named}. Nothing was saved."
                )
            cleaned[use.name] = None if names is None else use.chosen(names)
        return cleaned


# The form in which staff decide about one model.

#: Not uses of a query: what may be set, and what stands for a record where another refers to it.
SET, LABEL = "set", "label"
#: Nor this: staff add to what code says, and take nothing away.
UNTRUSTED = "untrusted"
#: Members of a row, with the use of fields that each narrows, and what people call it.
USES = {
    "fields": (RETURN, "Shown"),
    "write_fields": (SET, "Written"),
    "filter_fields": (FILTER, "Filter"),
    "order_fields": (ORDER, "Order"),
    "group_fields": (GROUP, "Group"),
    "label_fields": (LABEL, "Label"),
    "untrusted_fields": (UNTRUSTED, "Untrusted"),
}


#: What the table says of a field that only a superuser may open.
DOUBTFUL = "It may be a secret. Only a superuser can open it."


def known_models() -> dict[str, ModelExposure]:
    """Return what code allows of each model, before anybody decided, by label."""
    return {exposure.label: exposure for exposure in registry.candidates.values()}


def about_path(path: Path) -> str:
    """Return label, type and help text of the field where a path ends."""
    words = label_of(path), kind_of(path.field), as_text(getattr(path.field, "help_text", ""))
    return " · ".join(word for word in words if word)


def uses_of(code: ModelExposure, *, doubtful: Sequence[str]) -> list[Use]:
    paths = Declaration(code).paths
    allowed = {use: [path.text for path in paths[use]] for use in paths}
    allowed[RETURN] += allowed[INCLUDE]
    allowed |= {LABEL: label_choices(code), UNTRUSTED: untrusted_choices(code)}
    allowed[SET] = write_choices(code) if code.highest_level >= Level.WRITE else []
    standard = {**allowed, LABEL: code.label_fields, UNTRUSTED: code.untrusted_fields}
    allowed[RETURN] = [*allowed[RETURN], *doubtful]
    return [
        Use(
            name=name,
            title=title,
            allowed=allowed[use],
            standard=standard[use],
            adds=use == UNTRUSTED,
        )
        for name, (use, title) in USES.items()
    ]


class ExposedModelForm(DecisionForm):
    uses = FieldChoicesField(label="Fields", required=False)

    class Meta:
        labels = {"follow_relations": "Paths through relations"}
        help_texts = {
            "level": "A level includes all before it. Code limits which you can choose.",
            "follow_relations": "Such as customer__name: from these records, or through them.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        # For people who only look there are no fields of the row.
        if "level" not in fields:
            return
        code, row = self.instance.thing, self.instance
        fields["level"].choices = [
            ("", f"{AS_IN_CODE} ({code.standard_level.label})"),
            *(choice for choice in Level.choices if choice[0] <= code.highest_level),
        ]
        standard = f"{AS_IN_CODE} ({word_for(code.follow_relations)})"
        fields["follow_relations"].widget.choices = [("unknown", standard), ("false", "off")]
        uses = fields["uses"]
        uses.initial = {name: getattr(row, name) for name in USES}
        # What a superuser has opened stays open when others save.
        doubtful = [
            name
            for name in code.doubtful_fields
            if row.is_for_superuser or name in (row.fields or ())
        ]
        uses.widget.uses = uses_of(code, doubtful=doubtful)
        paths = [path for used in Declaration(code).paths.values() for path in used]
        for name in write_choices(code):
            with suppress(ImproperlyConfigured):  # a field of the form alone
                paths.append(resolve(code.model, name))
        uses.widget.about = {path.text: about_path(path) for path in paths}
        uses.widget.about |= dict.fromkeys(doubtful, DOUBTFUL)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        for name, chosen in cleaned.get("uses", {}).items():
            setattr(self.instance, name, chosen)
        return cleaned


def level_of(row: Any) -> Level:
    """Return what staff decided, or what code says while they did not."""
    return Level(row.thing.standard_level if row.level is None else row.level)


def caution_of(code: ModelExposure) -> str:
    """Return what staff must know before they open a model about who may do what."""
    model = code.model
    if issubclass(model, (AbstractBaseUser, PermissionsMixin, Group, Permission)):
        return (
            "These are accounts, or what decides rights: an assistant that may change them can "
            "let others in."
        )
    secret = [one for one in model._meta.concrete_fields if looks_secret(model, one.name)]
    if any(one.primary_key and one.name not in code.fields for one in secret):
        return "The key looks secret and is closed, so assistants cannot name a record."
    if secret:
        return "Columns that look secret stay closed. The rest may be about tokens or sessions."
    return ""


def word_of(level: Level) -> str:
    """Return its first word: "read"."""
    return level.label.partition(":")[0]


class ExposedModelAdmin(DecisionAdmin):
    """Every model that there can be. Staff narrow what code opened, or open what it did not."""

    form = ExposedModelForm
    key = "label"
    things = staticmethod(known_models)
    columns = ("level", "decided by", "fields shown", "groups", "notes")
    list_display = ("label", *map(column, columns))
    list_filter = (
        filter_by("level", *map(word_of, Level)),
        filter_by("decided by", "code", "staff", "not opened", NO_LONGER),
    )
    search_fields = ("label", "notes", "groups__name")
    search_help_text = (
        "Every model that assistants could get, and how much of it there is now. Each person "
        "still gets only what the admin would give them."
    )
    actions = ("open_for_reading", "close", "reset")
    fieldsets = (
        (None, {"fields": ("about", "level", "groups", "notes", "based_on")}),
        ("Fields", {"fields": ("follow_relations", "uses")}),
    )

    def line(self, row: Any) -> dict[str, str]:
        code, exposure = row.thing, row.exposed.exposures.get(row.thing.model)
        row.in_force = Level.HIDDEN if exposure is None else exposure.standard_level
        opened = "Opened in code" if code.is_offered else "Not opened in code"
        shown = 0 if exposure is None else len(Declaration(exposure).paths[RETURN])
        words = {
            "about": f"{code.label} ({code.model._meta.verbose_name}). {opened}. "
            f"Code allows at most: {word_of(code.highest_level)}.",
            "level": word_of(row.in_force),
            "caution": caution_of(code),
            "notes": Truncator(row.notes).chars(80),
            "fields shown": f"{shown} of {len(Declaration(code).paths[RETURN])}",
        }
        if exposure is None:
            words["groups"] = "nobody"
        if row.words == self.as_in_code and not code.is_offered:
            words["decided by"] = "not opened"
        return words

    def get_object(self, request: Any, object_id: str, from_field: Any = None) -> Any:
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            row.is_for_superuser = request.user.is_superuser
        return row

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        changelist = super().get_changelist_instance(request)
        if request.method == "GET":
            self.warn_of_tokens(request, changelist.result_list)
        return changelist

    def warn_of_tokens(self, request: HttpRequest, rows: Iterable[Any]) -> None:
        if any(row.thing is not None and row.in_force > Level.READ for row in rows):
            if have_only_read():
                messages.warning(request, f"Nobody can change anything: all tokens {ONLY_READ}")
            elif have_only_read(request.user):
                messages.warning(request, f"Your own tokens {ONLY_READ}")

    @admin.action(description="Open for reading", permissions=["change"])
    def open_for_reading(self, request: Any, queryset: Any) -> Any:
        def is_new(row: Any) -> bool:
            return bool(level_of(row) < Level.READ <= row.thing.highest_level)

        return self.decide(request, queryset, {"level": Level.READ}, where=is_new)

    @admin.action(description="Close", permissions=["change"])
    def close(self, request: Any, queryset: Any) -> Any:
        return self.decide(request, queryset, {"level": Level.HIDDEN}, where=level_of)

    def render_change_form(self, request: Any, context: Any, *args: Any, **kwargs: Any) -> Any:
        self.warn_of_tokens(request, [context["original"]])
        return super().render_change_form(request, context, *args, **kwargs)
