"""The page on which staff decide what there is of each model for assistants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.forms import Field, TypedChoiceField, Widget
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from mcp_django.admin.decisions.base import (
    AS_IN_CODE,
    BulkDecision,
    DecisionAdmin,
    DecisionForm,
    ListedThing,
    names_of_groups,
)
from mcp_django.admin.tokens import ONLY_READ, have_only_read
from mcp_django.exposure.decisions import Exposed, label_choices, read_decisions, untrusted_choices
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import FILTER, GROUP, INCLUDE, ORDER, RETURN, Declaration
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from mcp_django.models import ExposedModel
from mcp_django.principal import DEFAULT_SERVER

# Which fields records show, and what else they are good for: one table of checkboxes.

#: By use: the chosen names, or None for those of code.
Chosen: TypeAlias = "dict[str, list[str] | None]"


@dataclass(frozen=True, kw_only=True)
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
        """The names that have the use, in the order of code and each once."""
        names = self.standard if listed is None else listed
        return [
            path for path in self.allowed if path in names or (self.adds and path in self.standard)
        ]


class FieldChoicesWidget(Widget):
    template = "mcp_django/field_choices.html"

    def __init__(self) -> None:
        super().__init__()
        self.uses: Sequence[Use] = ()
        #: Names that the row has and code does not.
        self.gone: Sequence[str] = ()

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
        names = dict.fromkeys(path for use in self.uses for path in use.allowed)
        context = {
            "name": name,
            "attrs": attrs or {},
            "uses": [(use, chosen.get(use.name) is None) for use in self.uses],
            "rows": [(path, [cell(use, path, chosen) for use in self.uses]) for path in names],
            "gone": self.gone,
        }
        return SafeString(render_to_string(self.template, context))


def cell(use: Use, path: str, chosen: Mapping[str, Any]) -> tuple[Use, bool, bool, bool]:
    """The column, whether code allows the field there, whether it is ticked, and whether it would
    be as in code.
    """
    ticked = use.chosen(chosen.get(use.name))
    return use, path in use.allowed, path in ticked, path in use.standard


class FieldChoicesField(Field):
    """Its value has a list for each use that staff narrowed, with names that code allows."""

    widget: FieldChoicesWidget

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, widget=FieldChoicesWidget(), **options)

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

#: Not a use of a query: what stands for a record where another one refers to it.
LABEL = "label"
#: Nor this: staff add to what code says, and take nothing away.
UNTRUSTED = "untrusted"
#: Members of a row, with the use of fields that each narrows, and what people call it.
USES = {
    "fields": (RETURN, "Shown"),
    "filter_fields": (FILTER, "Filter"),
    "order_fields": (ORDER, "Order"),
    "group_fields": (GROUP, "Group"),
    "label_fields": (LABEL, "Label"),
    "untrusted_fields": (UNTRUSTED, "Untrusted"),
}


def known_models() -> dict[str, ModelExposure]:
    """What code allows of each model, before anybody decided. By label."""
    return {exposure.label: exposure for exposure in registry.candidates.values()}


def candidate(label: str) -> ModelExposure | None:
    return known_models().get(label.lower())


def uses_of(code: ModelExposure) -> list[Use]:
    paths = Declaration(code).paths
    allowed = {use: [path.text for path in paths[use]] for use in paths}
    allowed[RETURN] += allowed[INCLUDE]
    allowed |= {LABEL: label_choices(code), UNTRUSTED: untrusted_choices(code)}
    standard = {**allowed, LABEL: code.label_fields, UNTRUSTED: code.untrusted_fields}
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
    level = TypedChoiceField(
        required=False,
        coerce=int,
        empty_value=None,
        help_text="Each level includes those before it. Code may allow fewer levels.",
    )
    follow_relations = TypedChoiceField(
        required=False,
        coerce=lambda value: value == "on",
        empty_value=None,
        label="Paths through relations",
        help_text="Such as customer__name: from these records, or through them to others.",
    )
    uses = FieldChoicesField(label="Fields")

    class Meta:
        model = ExposedModel
        fields = ("level", "follow_relations", "groups", "notes")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        code = self.thing
        if code is None:
            return
        self.fields["level"].choices = [  # type: ignore[attr-defined]  # a field with choices
            ("", f"{AS_IN_CODE} ({code.standard_level.label})"),
            *(choice for choice in Level.choices if choice[0] <= code.highest_level),
        ]
        follows: Any = self.fields["follow_relations"]
        follows.choices = [
            ("", f"{AS_IN_CODE} ({'on' if code.follow_relations else 'off'})"),
            ("off", "off"),
        ]
        self.initial["follow_relations"] = "off" if self.instance.follow_relations is False else ""
        uses = self.fields["uses"]
        uses.initial = {name: getattr(self.instance, name) for name in USES}
        uses.widget.uses = uses_of(code)
        gone = {
            str(name)
            for use in uses.widget.uses
            for name in uses.initial[use.name] or ()
            if name not in use.allowed
        }
        uses.widget.gone = sorted(gone)

    @staticmethod
    def find(row: ExposedModel) -> ModelExposure | None:
        return candidate(row.label)

    @staticmethod
    def words(row: Any, groups: Iterable[Group]) -> dict[str, str]:
        return {
            "level": AS_IN_CODE if row.level is None else Level(row.level).label,
            **{
                title.lower(): logged_names(getattr(row, name))
                for name, (_, title) in USES.items()
            },
            "paths through relations": "off" if row.follow_relations is False else AS_IN_CODE,
            "groups": names_of_groups(groups),
            "notes": row.notes or "none",
        }

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        for name, chosen in cleaned.get("uses", {}).items():
            setattr(self.instance, name, chosen)
        return cleaned


def logged_names(names: Sequence[str] | None) -> str:
    if names is None:
        return AS_IN_CODE
    return ", ".join(str(name) for name in names) or "none"


@dataclass(frozen=True, kw_only=True)
class ListedModel(ListedThing):
    """One line of the list."""

    level: Level = Level.HIDDEN
    shown: int = 0
    possible: int = 0
    notes: str = ""
    #: Why nobody can do what the level allows.
    warning: str = ""

    #: Why there is as much of a model as there is.
    states = {
        "code": "Code",
        "staff": "Staff",
        "waiting": "Not opened",
        "gone": "No longer in code",
    }
    searched = ("name", "title", "notes", "groups")

    @property
    def level_name(self) -> str:
        return word_of(self.level)


def word_of(level: Level) -> str:
    """Its first word: "read"."""
    return level.label.partition(":")[0]


def open_for_reading(code: ModelExposure, row: ExposedModel) -> bool:
    """Up to reading, and never less than what is open now."""
    level = code.standard_level if row.level is None else row.level
    if level >= Level.READ or code.highest_level < Level.READ:
        return False
    row.level = Level.READ
    return True


def close_model(code: ModelExposure, row: ExposedModel) -> bool:
    level = code.standard_level if row.level is None else row.level
    row.level = Level.HIDDEN
    return level > Level.HIDDEN


class ExposedModelAdmin(DecisionAdmin):
    """Every model that there can be. Staff narrow what code opened, or open what it did not."""

    form = ExposedModelForm
    key = "label"
    things = staticmethod(known_models)
    line_class = ListedModel
    filters = {
        "level": ("level", {str(level.value): word_of(level) for level in Level}),
        "why": ("state", ListedModel.states),
    }
    bulk = {
        "open": BulkDecision(title="Open for reading", decide=open_for_reading),
        "close": BulkDecision(title="Close", decide=close_model),
    }
    decided_fieldsets = [
        (None, {"fields": ["about", "level", "groups", "notes"]}),
        ("Fields", {"fields": ["follow_relations", "uses"]}),
    ]

    def name_of(self, row: ExposedModel) -> str:
        return row.label.lower()

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            row.label = row.label.lower()
        return row

    def lines(self, request: HttpRequest) -> Iterator[ListedThing]:
        warning = f"Nobody can change it: all tokens {ONLY_READ}" if have_only_read() else ""
        for line in super().lines(request):
            if isinstance(line, ListedModel) and line.level > Level.READ:
                line = replace(line, warning=warning)
            yield line

    def line(self, code: ModelExposure, row: ExposedModel | None, exposed: Exposed) -> ListedModel:
        found = exposed.exposures.get(code.model)
        waits = "code" if code.is_offered else "waiting"
        return ListedModel(
            name=code.label,
            title=str(code.model._meta.verbose_name_plural),
            url=self.change_url(code.label),
            state=waits if row is None else "staff",
            level=Level.HIDDEN if found is None else found.standard_level,
            shown=0 if found is None else len(Declaration(found).paths[RETURN]),
            possible=len(Declaration(code).paths[RETURN]),
            groups="nobody"
            if found is None
            else names_of_groups([] if row is None else row.groups.all()),
            notes="" if row is None else row.notes,
        )

    @admin.display(description="model")
    def about(self, row: ExposedModel) -> str:
        code = candidate(row.label)
        if code is None:
            return f"{row.label}: code no longer has this model, so this has no effect."
        opened = "Code opened it" if code.is_offered else "Code did not open it"
        most = word_of(code.highest_level)
        name = code.model._meta.verbose_name
        return f"{row.label} ({name}). {opened}. Code allows at most: {most}."

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        exposed = Exposed(registry.candidates, read_decisions(DEFAULT_SERVER))
        exposure = exposed.by_label.get(context["original"].label)
        if exposure is not None and exposure.standard_level > Level.READ:
            if have_only_read():
                messages.warning(request, f"Nobody can change it: all tokens {ONLY_READ}")
            elif have_only_read(request.user):
                messages.warning(request, f"Your own tokens {ONLY_READ}")
        return super().render_change_form(request, context, *args, **kwargs)
