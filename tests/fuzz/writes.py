"""A write of a tool and the same write in a browser, from the same rows, come to the same.

The oracle is the admin of Django. A person opens its page, types in what the call sends, and
presses Save: what is refused, what is stored, and what the log says must be equal. What nobody can
type or pick, such as a list for a text, the tools must refuse. RULES says where they differ.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import time
from decimal import Decimal, InvalidOperation
from random import Random
from typing import Any
from unittest.mock import patch

from django import forms
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import dateparse, timezone
from django.utils.datastructures import MultiValueDict

from mcp_django.exposure.forms.html import read_page
from mcp_django.exposure.functions.arguments import MOST_DIGITS, check_plain
from mcp_django.exposure.query.filters import MAX_WORDS
from mcp_django.testing import Client
from tests.clients import browser_of
from tests.fuzz import rows
from tests.fuzz.admin import site
from tests.fuzz.doors import TOKEN, post_call
from tests.fuzz.draws import draw, fill_parcels, kind_of
from tests.fuzz.models import Parcel
from tests.fuzz.values import places, replaced

#: Where a tool and a browser differ by design, and why. Each is counted where it holds.
RULES = {
    "bare row": "A new row of nothing but defaults is meant. A page drops it without a word.",
    "format": "Days, times and numbers are as in JSON. A page takes more: 3/4/2026, 1_000.",
    "list": "A bare list for the set of a stored record would drop what is not in it.",
    "hidden": "Members of a model that the person may not view stay in a set.",
    "words": "A search takes eight words at most. A page takes any number.",
    "crash": "What the page fails on, as SQLite does on a long duration, is refused.",
}
EVERY = (*rows.EVERY, "parcel", "stamp")
PEOPLE = [
    *[rows.Person(name="writer", is_superuser=True)] * 4,
    *[rows.Person(name="editor", sees_hidden=True, models=EVERY)] * 4,
    *[rows.Person(name="keeps", sees_hidden=True, models=EVERY, verbs=rows.VERBS[:3])] * 3,
    *[rows.Person(name="packer", models=("parcel", "stamp"))] * 3,
    rows.Person(name="adds", sees_hidden=True, models=EVERY, verbs=rows.VERBS[:2]),
    rows.Person(name="no rows", models=("parcel",)),
    rows.Person(name="reads", sees_hidden=True, models=EVERY, verbs=("view",)),
]
MODELS = [*[Parcel] * 8, *rows.MODELS, rows.Order, rows.Order]
#: A sentence about a field, or about a row of the call and a field of it.
PLACE = re.compile(
    r"(\w+)(?:, your row (\d+) \([^)]*\)|, the row with the key ([^:]*))?: (?:(\w+): )?"
)
#: What is posted, by the names of controls.
Data = dict[str, list[str]]


class Unpostable(Exception):
    """Nobody can do this on the page. Says the rule, if there is one."""


@dataclass(kw_only=True)
class Outcome:
    #: "saved", "refused" or "crashed".
    status: str = "saved"
    text: str = ""
    #: The paths of what is wrong: "name", "stamps-0.face", and "" for the record.
    errors: set[str] = field(default_factory=set)
    #: All rows of the shop and of the log, by their tables.
    stored: dict[str, set[Any]] = field(default_factory=dict)


@contextmanager
def undone() -> Iterator[Outcome]:
    """Give an outcome, which gets what is stored at the end of the block."""
    outcome = Outcome()
    with transaction.atomic():
        yield outcome
        with connection.cursor() as cursor:
            for model in apps.get_app_config("fuzz").get_models(include_auto_created=True):
                cursor.execute(f"SELECT * FROM {model._meta.db_table}")
                # In which order members were added is no fact about them.
                first = 1 if model._meta.auto_created else 0
                outcome.stored[model._meta.label] = {row[first:] for row in cursor}
        columns = ["user", "object_id", "object_repr", "action_flag", "change_message"]
        for *facts, message in LogEntry.objects.values_list(*columns):
            said = [one for one in json.loads(message) if "note" not in str(one.get("added"))]
            outcome.stored.setdefault("log", set()).add((*facts, json.dumps(said)))
        transaction.set_rollback(True)


class Page:
    """The form of a record, or of a new one, as a person gets it. It is opened once: each write
    begins with the same rows.
    """

    def __init__(self, person: rows.Person, model: Any, pk: Any) -> None:
        self.browser = browser_of(User.objects.get(username=person.name))
        self.browser.raise_request_exception = False
        self.person, self.model, self.pk = person, model, pk
        self.url = f"/fuzz/fuzz/{model._meta.model_name}/{f'{pk}/change' if pk else 'add'}/"
        answer = self.browser.get(self.url)
        html = [one for one in read_page(answer.content.decode()).forms if "post" in one.method]
        controls = [control for one in html for control in one.controls]
        self.controls = {one.name for one in controls}
        self.pairs = [pair for one in controls for pair in one.pairs()]
        self.form, self.sets = None, {}
        if "_save" in self.controls:
            self.request, self.form = answer.wsgi_request, answer.context["adminform"].form
            shown = [one.formset for one in answer.context["inline_admin_formsets"]]
            self.sets = {one.prefix: one for one in shown}
        with undone() as self.before:
            pass

    def may_see(self, model: Any) -> bool:
        return self.person.is_superuser or model._meta.model_name in self.person.models

    def press_save(self, data: Data) -> Outcome:
        self.browser.cookies.pop("messages", None)
        admin = site._registry[self.model]
        # To render a page again takes longer than all else, and its errors are in the context.
        with undone() as outcome, patch.object(admin, "change_form_template", "fuzz/blank.html"):
            answer = self.browser.post(self.url, data)
        if answer.status_code == 200:
            outcome.status, outcome.errors = "refused", errors_on(answer.context)
        elif answer.status_code != 302:
            outcome.status, outcome.text = "crashed", repr(getattr(answer, "exc_info", answer))
        return outcome


class Filling:
    """A page that a person fills in with what a call sends. Raises Unpostable."""

    def __init__(self, page: Page, arguments: dict[str, Any]) -> None:
        self.page, self.controls = page, {*page.controls}
        #: By prefix and number in the call: a row as the page names it.
        self.rows: dict[tuple[str, int], str] = {}
        self.rules: set[str] = set()
        self.data: Data = {"_save": ["Save"]}
        for name, text in page.pairs:
            self.data.setdefault(name, []).append(text)
        # An empty argument is one that was left out.
        given = [arguments.get("values"), arguments.get("inlines")]
        values, inlines = ({} if one in (None, "", []) else one for one in given)
        require(page.form is not None and isinstance(values, dict) and isinstance(inlines, dict))
        try:
            json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
        except ValueError:
            raise Unpostable from None  # half of a character, or no number
        for name, value in values.items():
            self.fill_in(page.form, name, value)
        for prefix, wanted in inlines.items():
            require(prefix in page.sets and isinstance(wanted, list))
            self.fill_in_rows(page.sets[prefix], wanted)

    def put(self, texts: Data) -> None:
        require(texts.keys() <= self.controls)
        self.data |= texts

    def fill_in_rows(self, formset: Any, wanted: list[Any]) -> None:
        total = len(formset.initial_forms)
        stored = {str(form.instance.pk): form for form in formset.initial_forms}
        for number, row in enumerate(wanted, start=1):
            require(isinstance(row, dict) and isinstance(row.get("delete", False), bool))
            is_new = row.get("pk") is None
            form = formset.empty_form if is_new else stored.pop(str(row["pk"]), None)
            require(form is not None and not (is_new and row.get("delete")))
            if is_new:
                # Its script copies the empty row.
                empty, form.prefix, total = form.prefix, formset.add_prefix(total), total + 1
                copies = {one: one.replace(empty, form.prefix) for one in self.page.controls}
                self.controls |= {*copies.values()}
                self.data |= {copies[one]: self.data[one] for one in copies if one in self.data}
            self.rows[formset.prefix, number] = form.prefix
            if row.get("delete"):  # and then nobody types anything in it
                self.put({form.add_prefix("DELETE"): ["on"]})
                self.rules |= {"format"} if is_huge(row) else set()
                continue
            for name in row.keys() - {"pk", "delete"}:
                self.fill_in(form, name, row[name])
            bound = formset.form(MultiValueDict(self.data), prefix=form.prefix)
            with suppress(InvalidOperation):  # where "sNaN" is compared, the page fails as well
                if is_new and {*bound.changed_data} <= {formset.fk.name}:
                    self.rules.add("bare row")
        self.data[f"{formset.prefix}-TOTAL_FORMS"] = [str(total)]

    def fill_in(self, form: Any, name: str, value: Any) -> None:
        require(name in form.fields and name not in ("id", "DELETE"))
        asked, html = form.fields[name], form.add_prefix(name)
        if isinstance(asked, forms.ModelMultipleChoiceField):
            self.put({html: self.members(asked, value, self.data.get(html, []))})
        elif isinstance(asked, forms.ModelChoiceField):
            self.put({html: ["" if value is None or value == "" else self.key_of(asked, value)]})
        else:
            self.rules |= {"format"} if is_huge(value) else set()
            is_tick = kind_of(asked)[0] in ("checkbox", "boolean") and value in ("true", "false")
            self.put(self.typed(asked, html, value == "true" if is_tick else value))

    def key_of(self, asked: Any, value: Any) -> str:
        """The record that a person picks: by its key, as it is called, or as it is found."""
        require(isinstance(value, int | float | str) and not isinstance(value, bool))
        if isinstance(value, float):
            return str(value).removesuffix(".0")
        if re.fullmatch(r"\s*-?[0-9]+\s*", str(value)):
            return str(int(value))
        model = asked.queryset.model
        admin = site.get_model_admin(model)
        if not self.page.may_see(model) or not admin.search_fields or "\0" in value:
            return "nothing"
        objects = asked.queryset.filter(**{admin.search_fields[0]: value})
        if not objects and value.strip():
            self.rules |= {"words"} if len(value.split()) > MAX_WORDS else set()
            objects = admin.get_search_results(self.page.request, asked.queryset, value)[0]
        keys = {one.pk for one in objects}
        return str(*keys) if len(keys) == 1 else "nothing"

    def members(self, asked: Any, value: Any, begun: list[str]) -> list[str]:
        is_list = isinstance(value, list)
        require(not is_list or self.page.pk is None, "list")
        change = {"set": value} if is_list else value
        require(isinstance(change, dict) and {*map(type, change.values())} == {list})
        require(change.keys() == {"set"} or change.keys() <= {"add", "remove"})
        keys = {verb: [self.key_of(asked, one) for one in part] for verb, part in change.items()}
        removed, added = keys.get("remove", []), keys.get("add", [])
        require({*removed} <= {str(one.pk) for one in asked.queryset} - {*added})
        stay = [one for one in begun if one not in removed and "set" not in change]
        if not self.page.may_see(asked.queryset.model):
            self.rules.add("hidden")
            stay = begun
        return [*dict.fromkeys([*stay, *keys.get("set", []), *added])]

    def typed(self, asked: Any, html: str, value: Any) -> Data:
        """What stands in the controls of a field once a person has typed a value."""
        kind, types, _ = kind_of(asked)
        if kind == "JSON":
            return {html: [json.dumps(value)]}
        is_empty = kind != "checkbox" and (value is None or value == "")
        require(is_empty or type(value) in types)
        text = "" if is_empty else str(value)
        match kind:
            case "checkbox":
                return {html: ["on"] if value else []}
            case "boolean":
                return {html: [text.lower() or "unknown"]}
            case "duration":
                text = text.strip() or text  # a page takes no spaces there, and nobody types them
            case "number" if "_" in text:
                self.rules.add("format")
            case "number" if "e" in text.lower():
                text = digits(text)
                self.rules |= {"format"} if len(text) > MOST_DIGITS else set()
            case "day":
                text = self.iso(dateparse.parse_date, text)
            case "time":
                self.rules |= set() if ":" in text else {"format"}
                text = self.iso(time.fromisoformat, text)
            case "moment":
                day, _, clock = self.iso(parse_local, text).partition(" ")
                return {f"{html}_0": [day], f"{html}_1": [clock]}
        return {html: [text]}

    def iso(self, parse: Any, text: str) -> str:
        with suppress(ValueError, OverflowError):
            if (found := parse(text.strip())) is not None:
                return str(found)
        self.rules |= {"format"} if text else set()
        return text


def is_huge(value: Any) -> bool:
    """Whether JSON has a number that only Python reads."""
    try:
        check_plain(value, deepest=1_000)
    except RecursionError:
        return False
    except ValueError:
        return True
    return False


def require(is_possible: bool, rule: str = "") -> None:
    if not is_possible:
        raise Unpostable(rule)


def parse_local(text: str) -> Any:
    """The date and the time of day that a person in the zone of the site would type."""
    found = dateparse.parse_datetime(text)
    return timezone.make_naive(found) if found and timezone.is_aware(found) else found


def digits(text: str) -> str:
    """1e3 is 1000, which a person writes out."""
    with suppress(InvalidOperation):
        number = Decimal(text.strip())
        return f"{number:f}" if abs(number.adjusted()) < 1000 else text
    return text


def errors_on(context: Any) -> set[str]:
    """The paths of what a page says is wrong."""
    found = {"" if name == "__all__" else name for name in context["adminform"].form.errors}
    for formset in [one.formset for one in context["inline_admin_formsets"]]:
        found |= {formset.prefix} if formset.non_form_errors() else set()
        for form in formset.forms:
            found |= {f"{form.prefix}.{name}".removesuffix(".__all__") for name in form.errors}
    return found


def errors_told(text: str, filling: Filling) -> set[str]:
    """The same of the sentences of a tool."""
    found, page = set(), filling.page
    for line in text.split("\n")[1:]:
        match = PLACE.match(line)
        name, number, key, own = match.groups() if match else ("", "", "", "")
        if name not in page.sets:
            found.add(name if name in page.form.fields else "")
            continue
        keys = {str(one.instance.pk): one.prefix for one in page.sets[name].initial_forms}
        place = filling.rows[name, int(number)] if number else keys.get(key or "", name)
        found.add(f"{place}.{own}" if own in page.sets[name].empty_form.fields else place)
    return found


def call(client: Client, arguments: dict[str, Any]) -> Outcome:
    """Call a tool, and once more with the confirmation of a person if it takes one."""
    tool = "update_record" if "pk" in arguments else "create_record"
    with undone() as outcome:
        for _ in range(2):
            final = post_call(client, tool, arguments).messages[-1]
            result = final.get("result", {"isError": True, "content": [{"text": str(final)}]})
            outcome.text = "\n".join(one["text"] for one in result["content"])
            token = TOKEN.search(outcome.text)
            if token is None:
                break
            arguments = {**arguments, "confirmation": token[1]}
    if result.get("isError"):
        outcome.status = "crashed" if "Internal error" in outcome.text else "refused"
    return outcome


class Comparison:
    """Writes of people by a tool and in a browser. `counts` says how many ended how."""

    def __init__(self) -> None:
        people = {one.name: one for one in PEOPLE}
        self.clients = {name: Client(token=one.make()) for name, one in people.items()}
        self.pages: dict[Any, Page] = {}
        self.counts: Counter[str] = Counter()

    def page(self, person: rows.Person, model: Any, pk: Any) -> Page:
        key = person.name, model, pk
        if key not in self.pages:
            self.pages[key] = Page(person, model, pk)
        return self.pages[key]

    def difference(self, page: Page, arguments: dict[str, Any]) -> tuple[str, str]:
        """The kind of the difference, and what was said. Empty: there is none."""
        by_tool = call(self.clients[page.person.name], arguments)
        is_refused = by_tool.status == "refused"
        if by_tool.status == "crashed":
            return "internal error", by_tool.text
        if is_refused and by_tool.stored != page.before.stored:
            return "changed all the same", by_tool.text
        try:
            filling = Filling(page, arguments)
        except Unpostable as error:
            self.counts[f"unpostable {error}".strip()] += 1
            return ("" if is_refused else "taken"), by_tool.text
        by_person = page.press_save(filling.data)
        rules = filling.rules | ({"crash"} if by_person.status == "crashed" else set())
        self.counts.update([by_person.status, *rules])
        said = f"{by_tool.text}\n{by_person.errors} {by_person.text}"
        if "bare row" in rules or (is_refused and rules & {"format", "words", "crash"}):
            return "", said
        if by_tool.status != by_person.status:
            return f"{by_tool.status} by the tool alone", said
        if not is_refused:
            tables = [(name, one ^ by_tool.stored[name]) for name, one in by_person.stored.items()]
            different = {name: rows for name, rows in tables if rows}
            return ("rows" if different else ""), f"{different}"
        told = errors_told(by_tool.text, filling)
        # A sentence may quote a text of several lines.
        unsure = {""} if "\\n" in json.dumps(arguments) else set()
        # What the page would fail on, it does not come to where it finds something else.
        unsure |= {"took"} if re.search(r"took: .*\d{6}.* is not a dur", by_tool.text) else set()
        missing, more = by_person.errors - told - unsure, told - by_person.errors - unsure
        # What is no argument of any tool is told alone.
        is_part = "more errors" in said or said.startswith("Argument ")
        return ("fields" if more or (missing and not is_part) else ""), said

    def smallest(self, page: Page, arguments: dict[str, Any], kind: str) -> dict[str, Any]:
        """The same call without what the difference does not need."""
        for path in reversed(places(arguments)):
            if path[:1] not in [(), ("model",), ("pk",)] and path != ("values",):
                with suppress(LookupError):  # what it stood in is gone
                    smaller = replaced(arguments, path[:-1], lambda part: without(part, path[-1]))  # noqa: B023
                    if self.difference(page, smaller)[0] == kind:
                        arguments = smaller
        return arguments


def without(part: Any, at: Any) -> Any:
    if isinstance(part, list):
        return [*part[:at], *part[at + 1 :]]
    return {name: value for name, value in part.items() if name != at}


def search(options: argparse.Namespace) -> Iterator[str]:
    kinds: Counter[str] = Counter()
    with transaction.atomic():
        fill_parcels()
        comparison = Comparison()
        for index in range(options.first, options.first + options.count):
            random = Random(f"{options.seed}:{index}")
            person, model = random.choice(PEOPLE), random.choice(MODELS)
            keys = model.objects.order_by("pk").values_list("pk", flat=True)[:4]
            page = comparison.page(person, model, random.choice([None, None, *keys]))
            arguments = draw(random, page)
            kind, _ = comparison.difference(page, arguments)
            if kind:
                kinds[kind] += 1
                smaller = comparison.smallest(page, arguments, kind)
                _, said = comparison.difference(page, smaller)
                head = f"--seed {options.seed} --only {index} as {person.name}: {kind}"
                yield f"{head}\n{json.dumps(smaller)}\n{said}"[:3000]
    print(f"{options.count:,} writes: {dict(comparison.counts)}; differences: {dict(kinds)}")
