"""Pages about things of code: models, tools, prompts. A row comes with the first decision."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import quote, unquote
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, router, transaction
from django.forms import (
    BooleanField,
    CharField,
    CheckboxSelectMultiple,
    HiddenInput,
    TypedChoiceField,
)
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.cache import add_never_cache_headers
from django.utils.functional import SimpleLazyObject

from mcp_django.admin.pages import AnyModelAdmin, AnyModelForm, render_page, url_of
from mcp_django.exposure.decisions import Exposed, read_decisions
from mcp_django.exposure.registry import registry
from mcp_django.principal import DEFAULT_SERVER

AS_IN_CODE = "as in code"
WORDS = {None: AS_IN_CODE, True: "on", False: "off"}


class DecisionForm(AnyModelForm):
    """A form about one thing, with or without a row. It knows what was decided before."""

    @staticmethod
    @abstractmethod
    def find(row: Any) -> Any:
        """The thing of code that a row is about, or None."""

    @staticmethod
    @abstractmethod
    def words(row: Any, groups: Iterable[Group]) -> dict[str, str]:
        """What a row with these groups decides, in words for the log."""

    reset = BooleanField(
        required=False,
        label="Reset to what code says",
        help_text="Deletes what staff decided on this page. Everything is as in code again.",
    )
    based_on = CharField(required=False, widget=HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: None: code does not have it any more, so the row can only be forgotten.
        self.thing = self.find(self.instance)
        self.logged_before = self.words(self.instance, groups_of(self.instance))
        self.fields["based_on"].initial = fingerprint(self.logged_before)

    def logged_after(self) -> dict[str, str]:
        if self.cleaned_data["reset"]:
            return self.words(type(self.instance)(), [])
        return self.words(self.instance, self.cleaned_data.get("groups", []))

    def decides_something(self) -> bool:
        return self.logged_after() != self.words(type(self.instance)(), [])

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("based_on") != fingerprint(self.logged_before):
            now = "; ".join(f"{name}: {text[:100]}" for name, text in self.logged_before.items())
            raise ValidationError(
                "Somebody else changed this after you opened it, so nothing was saved. "
                f"It is now: {now}. Open the page again and make your changes there.",
                code="outdated",
            )
        if self.thing is None and not cleaned.get("reset"):
            raise ValidationError("Code no longer has it. All you can do is reset it.")
        return cleaned


def groups_of(row: Any) -> list[Group]:
    """The groups of a row that has any, and that is stored."""
    return [] if row.pk is None or not hasattr(row, "groups") else list(row.groups.all())


def fingerprint(words: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()


def explain_groups(field: Any) -> Any:
    """The field, with words where there is nothing to tick."""
    if not Group.objects.exists():
        field.help_text = "There are no groups yet, so this is for everybody."
    return field


def names_of_groups(groups: Iterable[Group]) -> str:
    return ", ".join(sorted(group.name for group in groups)) or "everybody"


class SwitchForm(DecisionForm):
    """A form about a thing that staff may switch on or off, and describe in their own words."""

    enabled = TypedChoiceField(
        required=False,
        coerce={"on": True, "off": False}.get,
        empty_value=None,
        label="State",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # For people who only look there are no fields of the row.
        if self.thing is not None and "title" in self.fields:
            self.offer(self.thing)

    def offer(self, thing: Any) -> None:
        """Offer what there is to decide about the thing."""
        enabled: Any = self.fields["enabled"]
        is_on = WORDS[getattr(thing, "is_on", True)]
        enabled.choices = [("", f"{AS_IN_CODE} ({is_on})"), ("on", "on"), ("off", "off")]
        self.initial["enabled"] = {True: "on", False: "off"}.get(self.instance.enabled, "")
        # Attributes are escaped; help texts are not.
        self.fields["title"].widget.attrs["placeholder"] = thing.definition.title
        self.fields["description"].widget.attrs["placeholder"] = thing.definition.description

    @staticmethod
    def words(row: Any, groups: Iterable[Group]) -> dict[str, str]:
        return {
            "state": WORDS[row.enabled],
            "title": row.title or AS_IN_CODE,
            "description": row.description or AS_IN_CODE,
            "groups": names_of_groups(groups),
        }


@dataclass(frozen=True, kw_only=True)
class ListedThing:
    """One line of the list: something that code has, or a row about what it had."""

    name: str
    url: str
    state: str
    title: str = ""
    groups: str = ""

    states: ClassVar[Mapping[str, str]] = {
        "on": "On",
        "off": "Off",
        "gone": "No longer in code",
    }
    #: What a search looks at.
    searched: ClassVar[tuple[str, ...]] = ("name", "title", "groups")

    @property
    def state_name(self) -> str:
        return self.states[self.state]

    def holds(self, words: Iterable[str]) -> bool:
        text = " ".join(getattr(self, name) for name in self.searched).lower()
        return all(word in text for word in words)


@dataclass(frozen=True, kw_only=True)
class BulkDecision:
    """One decision about many things at once."""

    title: str
    #: Decides about one thing in its row, and says whether that is anything new.
    decide: Callable[[Any, Any], bool]


#: Characters of a message in the log about one thing that changed.
LONGEST_CHANGE = 400
START_AGAIN = ("Reset", {"fields": ["reset", "based_on"]})


class DecisionAdmin(AnyModelAdmin):
    """One page for each thing that code has, and a list of all of them, with a row or without."""

    form: type[DecisionForm]
    #: The field that names the thing.
    key = "name"
    #: The things of code by their names.
    things: Callable[[], Mapping[str, Any]]
    #: The line of a thing, with its row or None, and with what is in force now.
    line: Callable[[Any, Any, Exposed], ListedThing]
    line_class: type[ListedThing] = ListedThing
    #: By parameter: the attribute of a line, and the values that it may have, with their names.
    filters: Mapping[str, tuple[str, Mapping[str, str]]] = {}
    #: By the value of the menu above the list.
    bulk: Mapping[str, BulkDecision] = {}
    #: Of those who may decide.
    decided_fieldsets: Sequence[Any]

    class Media:
        css = {"all": ["mcp_django/exposure.css"]}
        js = ["mcp_django/exposure.js"]

    def __init__(self, model: Any, admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        #: Read-only fields for people who may only look, with the words of the log.
        self.readable = [read_only(self.form, word) for word in self.form.words(model(), [])]

    def name_of(self, row: Any) -> str:
        return str(getattr(row, self.key))

    def exists(self, key: str) -> bool:
        """Whether code has a thing of that name."""
        return self.form.find(self.model(**{self.key: key})) is not None

    def formfield_for_manytomany(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        field: Any = super().formfield_for_manytomany(
            db_field, request, widget=CheckboxSelectMultiple, **kwargs
        )
        return explain_groups(field)

    # Things come from code: nobody adds any, and a row goes when it decides nothing.

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """The row of a key, or a new one where code has such a thing. The log has keys, too."""
        key = object_id
        if key.isdecimal():
            found = super().get_object(request, object_id, from_field)
            key = "" if found is None else getattr(found, self.key)
        if "\x00" in key:
            return None  # no database takes it
        rows = self.get_queryset(request).filter(server=DEFAULT_SERVER)
        if request.method == "POST" and transaction.get_connection(rows.db).in_atomic_block:
            # Whoever saves second waits, and then learns what the first one saved.
            rows = rows.using(router.db_for_write(self.model)).select_for_update()
        row = rows.filter(**{f"{self.key}__iexact": key}).first()
        if row is None and self.exists(key):
            return self.model(**{self.key: key})
        return row

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            return self.decide_in_bulk(request)
        may_decide = self.bulk and self.has_change_permission(request)
        return render_page(
            self,
            request,
            "decisions.html",
            title=str(self.opts.verbose_name_plural).capitalize(),
            bulk=self.bulk if may_decide else {},
            **self.listed(request),
        )

    # One decision about the things that were ticked in the list

    def decide_in_bulk(self, request: HttpRequest) -> HttpResponse:
        """Show what would change, and change it once that was confirmed."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        back = HttpResponseRedirect(request.get_full_path())
        action = self.bulk.get(request.POST.get("action", ""))
        names = set(request.POST.getlist("chosen"))
        chosen = {name: thing for name, thing in self.things().items() if name in names}
        if action is None or not chosen:
            messages.warning(request, "Tick some lines and choose what to do with them.")
            return back
        try:
            with transaction.atomic(using=router.db_for_write(self.model)):
                changes = self.bulk_changes(request, action, chosen)
                based_on = fingerprint({row: text for _, row, text in changes})
                if request.POST.get("based_on") == based_on:
                    for row, _, text in changes:
                        row.save()
                        self.log_change(request, row, text)
                    messages.success(request, f"{action.title}: {len(changes)} changed.")
                    return back
        except IntegrityError:
            messages.error(request, "Somebody else saved one of them at the same moment.")
            return back
        if "based_on" in request.POST:
            messages.warning(request, "Somebody else changed one of them. See below what is left.")
        return render_page(
            self,
            request,
            "decisions_confirm.html",
            title=action.title,
            action=request.POST["action"],
            changes=[(name, text) for _, name, text in changes],
            unchanged=len(chosen) - len(changes),
            based_on=based_on,
            list_url=request.get_full_path(),
        )

    def may_change(self, request: HttpRequest, row: Any) -> bool:
        return row is not None and self.has_change_permission(request, row)

    def bulk_changes(
        self, request: HttpRequest, action: BulkDecision, chosen: Mapping[str, Any]
    ) -> list[tuple[Any, str, str]]:
        """The row of each thing for which the decision is new, its name, and the change."""
        found = []
        rows = {name: self.get_object(request, name) for name in chosen}
        own = {name: row for name, row in rows.items() if self.may_change(request, row)}
        for name, row in own.items():
            thing, groups = chosen[name], groups_of(row)
            before = self.form.words(row, groups)
            if action.decide(thing, row):
                changes = logged_changes(before, self.form.words(row, groups))
                found.append((row, name, changes))
        return found

    def listed(self, request: HttpRequest) -> dict[str, Any]:
        """The context of the list."""
        asked = {name: request.GET.get(name, "")[:100] for name in ("q", *self.filters)}
        words = asked["q"].lower().split()
        every = list(self.lines(request))
        found = [
            line
            for line in every
            if line.holds(words)
            and all(
                asked[name] in ("", str(getattr(line, attribute)))
                for name, (attribute, _) in self.filters.items()
            )
        ]
        choices = {name: list(values.items()) for name, (_, values) in self.filters.items()}
        return {"lines": found, "total": len(every), "asked": asked, "choices": choices}

    def lines(self, request: HttpRequest) -> Iterator[ListedThing]:
        rows = {
            self.name_of(row): row
            for row in self.get_queryset(request)
            .filter(server=DEFAULT_SERVER)
            .prefetch_related("groups")
        }
        # As the rows are now, and not as this process knew them a moment ago.
        exposed: Any = SimpleLazyObject(
            lambda: Exposed(registry.candidates, read_decisions(DEFAULT_SERVER))
        )
        for name, thing in self.things().items():
            yield self.line(thing, rows.pop(name, None), exposed)
        for name, row in sorted(rows.items()):
            yield self.line_class(name=name, url=self.change_url(str(row.pk)), state="gone")

    # The page of one thing

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if not self.has_change_permission(request, obj):
            return [(None, {"fields": ["about", *self.readable]})]
        if self.form.find(obj) is None:
            return [(None, {"fields": ["about", "reset", "based_on"]})]
        return [*self.decided_fieldsets, START_AGAIN]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ["about", *self.readable]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        context = {"show_delete": False, **(extra_context or {})}
        try:
            response = super().change_view(request, object_id, form_url, context)
        except IntegrityError:
            # Two people made the first decision at once, and the other one was faster.
            messages.error(
                request,
                "Somebody else saved it at the same moment. Check it, and save again if needed.",
            )
            return HttpResponseRedirect(request.get_full_path())
        # Going back in the browser must not show what is no longer so.
        add_never_cache_headers(response)
        return response

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        # The page links to the history of `original`, which there is without a row, too.
        original = context["original"] = copy(context["original"])
        original.pk = getattr(original, self.key)
        return super().render_change_form(request, context, *args, **kwargs)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self.get_object(request, unquote(object_id))
        key = object_id if row is None else quote(getattr(row, self.key))
        return super().history_view(request, key, extra_context)

    def save_model(
        self,
        request: HttpRequest,
        obj: Any,
        form: Any,
        change: bool,  # noqa: FBT001  Django's signature
    ) -> None:
        if form.decides_something():
            obj.save()
        elif obj.pk is not None:
            self.get_queryset(request).get(pk=obj.pk).delete()
            obj.pk = None

    def save_related(
        self,
        request: HttpRequest,
        form: Any,
        formsets: Any,
        change: bool,  # noqa: FBT001  Django's signature
    ) -> None:
        if form.instance.pk is not None:
            super().save_related(request, form, formsets, change)

    def construct_change_message(self, request: Any, form: Any, *args: Any, **kwargs: Any) -> Any:
        return logged_changes(form.logged_before, form.logged_after()) or "Nothing changed."

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> LogEntry:
        # By its key: the row may come and go.
        key = str(getattr(obj, self.key))
        return LogEntry.objects.create(
            user_id=request.user.pk,  # type: ignore[misc]  # nobody anonymous comes here
            content_type_id=ContentType.objects.get_for_model(self.model).pk,
            object_id=key,
            object_repr=key[:200],
            action_flag=CHANGE,
            change_message=message,
        )

    def change_url(self, key: str) -> str:
        return url_of(self, "change", quote(key))


def read_only(form: type[DecisionForm], word: str) -> Callable[[Any], str]:
    @admin.display(description=word)
    def words_of(row: Any) -> str:
        return form(instance=row).logged_before[word]

    return words_of


def logged_changes(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """ "level: read -> hidden; groups: everybody -> clerks"."""
    return "; ".join(
        f"{name}: {short(old)} -> {short(after[name])}"
        for name, old in before.items()
        if after[name] != old
    )


def short(text: str) -> str:
    return text if len(text) <= LONGEST_CHANGE else f"{text[:LONGEST_CHANGE]}…"
