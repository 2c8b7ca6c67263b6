"""Pages about things of code: models, tools, prompts. Each has a row, empty until staff decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import router, transaction
from django.db.models import prefetch_related_objects
from django.forms import CharField, CheckboxSelectMultiple, HiddenInput
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from mcp_django.admin.pages import AnyModelAdmin, AnyModelForm, render_page
from mcp_django.exposure.decisions import Exposed, read_decisions
from mcp_django.exposure.registry import registry
from mcp_django.principal import DEFAULT_SERVER
from mcp_django.signing import digest_of_json

AS_IN_CODE = "as in code"
NO_LONGER = "no longer in code"

# What a row decides, in words for people and for the log.

#: Characters of a message in the log about one thing that changed.
LONGEST_CHANGE = 400


def decided_fields(model: Any) -> list[Any]:
    names = {"id", "label", "name"}
    return [field for field in model._meta.fields if field.editable and field.name not in names]


def decided_words(row: Any, groups: Iterable[Group]) -> dict[str, str]:
    """Return what a row with these groups decides."""
    fields = decided_fields(row)
    words = {field.name.replace("_", " "): word_for(getattr(row, field.name)) for field in fields}
    if getattr(row, "level", None) is not None:
        words["level"] = row.get_level_display()
    return words | ({"groups": names_of_groups(groups)} if row._meta.many_to_many else {})


def word_for(value: Any) -> str:
    if value in (None, "", {}):
        return AS_IN_CODE
    if isinstance(value, bool):
        return "on" if value else "off"
    return ", ".join(map(str, value)) or "none" if isinstance(value, list | dict) else str(value)


def names_of_groups(groups: Iterable[Group]) -> str:
    return ", ".join(sorted(group.name for group in groups)) or "everybody"


def groups_of(row: Any) -> list[Group]:
    return list(row.groups.all()) if row._meta.many_to_many else []


def logged_changes(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """ "level: read -> hidden; groups: everybody -> clerks"."""
    return "; ".join(
        f"{name}: {short(old)} -> {short(after[name])}"
        for name, old in before.items()
        if after[name] != old
    )


def short(text: str) -> str:
    return text if len(text) <= LONGEST_CHANGE else f"{text[:LONGEST_CHANGE]}…"


def column(name: str, *, of: str = "line") -> Callable[[Any], str]:
    """Return a column of the list, or a read-only field, with a word about the row."""

    @admin.display(description=name)
    def text(row: Any) -> str:
        return str(getattr(row, of).get(name, ""))

    return text


def filter_by(name: str, *words: str) -> type[admin.SimpleListFilter]:
    """Return a filter by a column that the database does not have: it is worked out."""

    class ColumnFilter(admin.SimpleListFilter):
        title = name
        parameter_name = name.split()[0]

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            self.model_admin = model_admin
            return [(word, word.capitalize()) for word in words]

        def queryset(self, request: HttpRequest, queryset: Any) -> Any:
            if self.value() is None:
                return queryset
            rows = self.model_admin.described(queryset)
            keys = [row.pk for row in rows if row.line.get(name) == self.value()]
            return queryset.filter(pk__in=keys)

    return ColumnFilter


def make_rows(model: Any, key: str, names: Iterable[str], *, using: str) -> None:
    """Make the rows that are missing. They decide nothing, and no signal says that they do."""
    rows = model._default_manager.using(using).filter(server=DEFAULT_SERVER)
    there = {name.lower() for name in rows.values_list(key, flat=True)}
    missing = [model(**{key: name}) for name in names if name.lower() not in there]
    rows.bulk_create(missing, ignore_conflicts=True)


class GroupsAdmin(AnyModelAdmin):
    """Rows that are for some groups, or for everybody."""

    def formfield_for_manytomany(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        # As every skin shows it.
        field: Any = super().formfield_for_manytomany(
            db_field, request, widget=CheckboxSelectMultiple, **kwargs
        )
        if not Group.objects.exists():
            field.help_text = "There are no groups yet, so this is for everybody."
        return field


class DecisionForm(AnyModelForm):
    """A form that knows what was decided before."""

    based_on = CharField(required=False, widget=HiddenInput, label="")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["based_on"].initial = digest_of_json(self.instance.words)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        words = self.instance.words
        if cleaned.get("based_on") != digest_of_json(words):
            now = "; ".join(f"{name}: {text[:100]}" for name, text in words.items())
            raise ValidationError(
                "Somebody else changed this after you opened it, so nothing was saved. "
                f"It is now: {now}. Open the page again and make your changes there.",
                code="outdated",
            )
        return cleaned


class DecisionAdmin(GroupsAdmin):
    """Rows about what code has: they come and go with it, and staff fill them."""

    form: Any = DecisionForm
    #: The field that names the thing.
    key = "name"
    #: The things of code by their names.
    things: Callable[[], Mapping[str, Any]]
    #: What the list says of a row: its columns, by name.
    line: Any
    actions: Any = ("reset",)

    class Media:
        css = {"all": ["mcp_django/exposure.css"]}
        js = ["mcp_django/exposure.js"]

    def __init__(self, model: Any, admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        self.as_in_code = decided_words(model(), [])
        words = [column(word, of="words") for word in self.as_in_code]
        self.readonly_fields = ["about", *words]  # type: ignore[misc, list-item]  # of the model

    def described(self, rows: Iterable[Any]) -> list[Any]:
        """Return the rows with what code has, what staff decided, and what is in force."""
        described, things = list(rows), self.things()
        prefetch_related_objects(described, *(field.name for field in self.opts.many_to_many))
        # As the rows are now, and not as this process knew them a moment ago.
        exposed = SimpleLazyObject(
            lambda: Exposed(registry.candidates, read_decisions(DEFAULT_SERVER))
        )
        about = "Code no longer has it, so this has no effect."
        for row in described:
            row.thing, row.exposed = things.get(str(row).lower()), exposed
            row.words = decided_words(row, groups_of(row))
            row.line = {"about": about, "state": NO_LONGER, "decided by": NO_LONGER}
            if row.thing is not None:
                by = "code" if row.words == self.as_in_code else "staff"
                row.line = {"decided by": by, "groups": row.words.get("groups"), **self.line(row)}
        return described

    def about(self, row: Any) -> str:
        return str(row.line["about"])

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).filter(server=DEFAULT_SERVER)

    def get_object(self, request: Any, object_id: str, from_field: Any = None) -> Any:
        """Return a row by its primary key, or by the name of its thing."""
        field = None if object_id.isdecimal() else self.key
        # No database takes NUL.
        row: Any = super().get_object(request, object_id.replace("\x00", "?"), field)
        if row is None:
            return None
        rows = self.get_queryset(request).using(router.db_for_write(self.model))
        if request.method == "POST" and transaction.get_connection(rows.db).in_atomic_block:
            # Whoever saves second waits, and then learns what the first one saved.
            row = rows.select_for_update().get(pk=row.pk)
        return self.described([row])[0]

    # Things come from code: nobody adds any, and only what code no longer has can be deleted.

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may_change = super().has_change_permission(request, obj)
        return may_change and (obj is None or self.is_in_code(obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may_change = super().has_change_permission(request, obj)
        return may_change and obj is not None and not self.is_in_code(obj)

    def is_in_code(self, row: Any) -> bool:
        """Return whether code has what the row decides, also of a row from elsewhere."""
        return (row if hasattr(row, "thing") else self.described([row])[0]).thing is not None

    # The list, and one decision about many of its rows

    def changelist_view(self, request: Any, extra_context: Any = None) -> Any:
        if self.has_view_or_change_permission(request):
            self.make_rows()
        return super().changelist_view(request, extra_context)

    def make_rows(self) -> None:
        """Make rows for what is new in code, and drop the empty ones of what is gone."""
        alias, things = router.db_for_write(self.model), self.things()
        make_rows(self.model, self.key, things, using=alias)
        rows = self.model._default_manager.using(alias).filter(server=DEFAULT_SERVER)
        gone = self.described(rows.exclude(**{f"{self.key}__in": things}))
        empty = [row.pk for row in gone if row.thing is None and row.words == self.as_in_code]
        # They decide nothing, so no signal says that they go.
        rows.filter(pk__in=empty)._raw_delete(alias)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        changelist: Any = super().get_changelist_instance(request)
        changelist.result_list = self.described(changelist.result_list)
        return changelist

    @admin.action(description="Reset to what code says", permissions=["change"])
    def reset(self, request: Any, queryset: Any) -> Any:
        values = {field.name: field.get_default() for field in decided_fields(self.model)}
        return self.decide(request, queryset, values | {"groups": []}, where=lambda row: True)

    def decide(self, request: Any, queryset: Any, values: Any, *, where: Any) -> Any:
        """Show what would change, and change it once that was confirmed."""
        action, based_on = request.POST["action"], request.POST.get("based_on")
        title = dict(self.get_action_choices(request))[action]
        alias = router.db_for_write(self.model)
        columns = {name: value for name, value in values.items() if name != "groups"}
        changes: list[tuple[Any, list[Group], str]] = []
        with transaction.atomic(using=alias):
            keys = list(queryset.values_list("pk", flat=True))
            rows = self.get_queryset(request).using(alias).filter(pk__in=keys)
            for row in self.described(rows.select_for_update()):
                if self.has_change_permission(request, row) and where(row):
                    vars(row).update(columns)
                    groups = values.get("groups", groups_of(row))
                    text = logged_changes(row.words, decided_words(row, groups))
                    changes += [(row, groups, text)] if text else []
            asked = digest_of_json({str(row.pk): text for row, _, text in changes})
            if based_on == asked:
                for row, groups, text in changes:
                    row.save()
                    row.groups.set(groups)
                    self.log_change(request, row, text)
                self.message_user(request, f"{title}: {len(changes)} changed.", messages.SUCCESS)
                return None
        if based_on is not None:
            messages.warning(request, "Somebody else changed one of them. See below what is left.")
        return render_page(
            self,
            request,
            "decisions_confirm.html",
            title=title,
            action=action,
            changes=changes,
            unchanged=len(keys) - len(changes),
            based_on=asked,
            list_url=request.get_full_path(),
        )

    # The page of one thing

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if self.has_change_permission(request, obj):
            return super().get_fieldsets(request, obj)
        return [(None, {"fields": self.readonly_fields})]

    def construct_change_message(self, request: Any, form: Any, *args: Any, **kwargs: Any) -> Any:
        after = decided_words(form.instance, form.cleaned_data.get("groups", []))
        return logged_changes(form.instance.words, after) or "Nothing changed."


# What tools and prompts share: staff switch them on and off, and describe them.


class SwitchForm(DecisionForm):
    """A form about a thing that staff may switch on or off, and describe in their own words."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # For people who only look there are no fields of the row.
        if "title" in self.fields:
            self.offer(self.instance.thing)

    def offer(self, thing: Any) -> None:
        """Offer what there is to decide about the thing."""
        enabled: Any = self.fields["enabled"]
        standard = f"{AS_IN_CODE} ({word_for(getattr(thing, 'is_on', True))})"
        enabled.label, enabled.help_text = "State", ""
        enabled.widget.choices = [("unknown", standard), ("true", "on"), ("false", "off")]
        # Attributes are escaped; help texts are not.
        self.fields["title"].widget.attrs["placeholder"] = thing.definition.title
        self.fields["description"].widget.attrs["placeholder"] = thing.definition.description


class SwitchAdmin(DecisionAdmin):
    """Rows about things that staff switch on and off."""

    form = SwitchForm
    search_fields = ("name", "title", "groups__name")
    list_filter: ClassVar[Any] = (
        filter_by("state", "on", "off", NO_LONGER),
        filter_by("decided by", "code", "staff"),
    )
    actions = ("switch_on", "switch_off", "reset")

    def is_on(self, row: Any) -> bool:
        return bool(getattr(row.thing, "is_on", True) if row.enabled is None else row.enabled)

    def line(self, row: Any) -> dict[str, str]:
        title = row.title or row.thing.definition.title
        return {"title": title, "state": word_for(self.is_on(row))}

    @admin.action(description="Switch on", permissions=["change"])
    def switch_on(self, request: Any, queryset: Any) -> Any:
        values = {"enabled": True}
        return self.decide(request, queryset, values, where=lambda row: not self.is_on(row))

    @admin.action(description="Switch off", permissions=["change"])
    def switch_off(self, request: Any, queryset: Any) -> Any:
        return self.decide(request, queryset, {"enabled": False}, where=self.is_on)
