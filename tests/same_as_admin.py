"""One question to the admin's own pages and to the tools: what differs between the answers.

The pages are asked for what they are about to show: the rows of the list, its cells, the rows of
the forms, and the rights that the index was made with.
"""

from __future__ import annotations

from datetime import date, datetime
from html import unescape

from django.contrib.admin.utils import flatten_fieldsets, lookup_field
from django.urls import reverse
from django.utils.html import strip_tags
from django.utils.safestring import SafeData

from mcp_django.testing.client import rows_as_objects

#: How many rows of a list are compared, cell by cell, and how many of them with their inlines.
COMPARED, WITH_INLINES = 20, 3
#: Which tool does what the admin has a permission for.
TOOLS = {"add": "create_record", "change": "update_record", "delete": "delete_record"}


def compare(browser, client, models, *, by_design=()):
    """What differs, and by model what was compared: its rows, its columns and its inlines.

    `by_design` names what the admin shows and the tools do not: "app.model", "app.model count",
    or "app.model name" of a column or an inline, or "app.model inline.name" of a column of its
    rows. Those of them that did differ are in `left_out`.
    """
    listed = {one["model"] for one in client.call_tool("list_models").data["models"]}
    perms = permissions_on_index(browser)
    differences, compared, left_out = [], {}, set()
    for model in models:
        label = model._meta.label_lower
        page = browser.get(page_of(model, "changelist"), {"o": ""})
        if page.status_code != 200:
            differences += differences_of_hidden(client, label, listed, perms)
            continue
        if label not in listed:
            left_out |= {label} & {*by_design}
            differences += [] if label in by_design else [f"{label} is not listed"]
            continue
        found = ListComparison(browser, client, page.context["cl"], by_design)
        found.compare_rights(perms[label])
        rows, columns = found.compare_list()
        inlines = {name for row in rows[:WITH_INLINES] for name in found.compare_inlines(row)}
        differences += found.differences
        left_out |= found.left_out
        compared[label] = [len(rows), sorted(columns), sorted(inlines)]
    return {"differences": differences, "compared": compared, "left_out": sorted(left_out)}


def page_of(model, name, *args):
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{name}", args=args)


def permissions_on_index(browser):
    """By model, what the index of the admin was made with."""
    page = browser.get(reverse("admin:index"))
    apps = page.context["app_list"] if page.status_code == 200 else []
    return {
        model["model"]._meta.label_lower: model["perms"] for app in apps for model in app["models"]
    }


def differences_of_hidden(client, label, listed, perms):
    """Of a model whose list the admin does not show to this user."""
    if label in perms and perms[label]["view"]:
        yield f"{label} is on the index and has no list"
    if label in listed:
        yield f"{label} is hidden in the admin and listed"
    for tool in ("find_records", "describe_model", "aggregate_records"):
        nothing = client.call_tool(tool, model="no.model").text
        text = client.call_tool(tool, model=label).text
        if text.replace(label, "no.model") != nothing:
            yield f"{label} is hidden in the admin: {tool} says {text}"


class ListComparison:
    """One list of the admin, and the answers about its model."""

    def __init__(self, browser, client, view, by_design):
        self.browser = browser
        self.client = client
        self.view = view
        self.model = view.model
        self.label = self.model._meta.label_lower
        self.by_design = by_design
        self.described = client.call_tool("describe_model", model=self.label).data
        self.differences = []
        self.left_out = set()

    def differs(self, name, text):
        """Of the count, a column or an inline."""
        if f"{self.label} {name}" in self.by_design:
            self.left_out.add(f"{self.label} {name}")
        else:
            self.differences.append(f"{self.label} {text}")

    def equal(self, what, on_page, by_tool, *, name=""):
        if on_page != by_tool:
            self.differs(name, f"{what}: {on_page!r}, {by_tool!r}")

    def compare_rights(self, perms):
        """Where nothing can be written for want of a level, the description says nothing."""
        if "writing" not in self.described:
            return
        allowed = {tool for name, tool in TOOLS.items() if perms[name]}
        self.equal("rights", allowed, set(self.described["writing"]) & set(TOOLS.values()))

    def compare_list(self):
        """The rows that were compared, and the columns."""
        key = self.model._meta.pk.name
        rows = list(self.view.queryset.order_by("pk")[:COMPARED])
        computed = self.described.get("computed", ())
        known = {one["name"] for one in (*self.described["fields"], *computed)}
        names = [str(name) for name in self.view.list_display if name != "action_checkbox"]
        columns = [name for name in names if name in known]
        for name in names:
            # A text that may tell more than records do.
            if name not in known and name != "__str__":
                self.differs(name, f"{name} is no column")
        answer = self.client.call_tool(
            "find_records",
            model=self.label,
            fields=list(dict.fromkeys([key, *columns])),
            order_by=[key],
            limit=COMPARED,
        )
        self.compare_count()
        self.equal("keys", [row.pk for row in rows], [one[key] for one in answer.records])
        for row, record in zip(rows, answer.records, strict=False):
            for name in columns:
                on_page = cell_of(self.view.model_admin, row, name)
                self.equal(f"{row.pk} {name}", on_page, record[name], name=name)
        return rows, columns

    def compare_count(self):
        answer = self.client.call_tool("aggregate_records", model=self.label)
        if answer.is_error:
            self.differs("count", answer.text)
        else:
            (total,) = answer.records
            self.equal("count", self.view.result_count, total["count"])

    def compare_inlines(self, row):
        """Those of one record, as its page has them. Returns the names of the relations."""
        page = self.browser.get(page_of(self.model, "change", row.pk))
        forms = {}
        for shown in page.context["inline_admin_formsets"]:
            forms[shown.formset.fk.remote_field.get_accessor_name()] = shown
        for inline in self.view.model_admin.inlines:
            name = relation_of(inline, self.model)
            answer = self.client.call_tool(
                "get_record",
                model=self.label,
                pk=row.pk,
                fields=[self.model._meta.pk.name],
                include=[name],
            )
            if name in forms and answer.is_error:
                self.differs(name, f"{row.pk} {name}: {answer.text}")
            elif name in forms:
                self.compare_rows(f"{row.pk} {name}", forms[name], answer.data[name])
            elif not answer.is_error:
                self.differs(name, f"{row.pk} {name} is not on the page")
        return set(forms)

    def compare_rows(self, what, shown, included):
        records = sorted(rows_as_objects(included), key=lambda one: one["id"])
        stored = [form.instance for form in shown.formset if form.instance.pk]
        rows = sorted(stored, key=lambda one: one.pk)
        self.equal(f"{what} count", len(rows), included["count"])
        self.equal(f"{what} keys", [one.pk for one in rows], [one["id"] for one in records])
        names = flatten_fieldsets(shown.fieldsets)
        for row, record in zip(rows, records, strict=False):
            for name in names:
                on_page = cell_of(shown.opts, row, name)
                by_tool = record.get(name, "no column")
                column = f"{shown.formset.prefix}.{name}"
                self.equal(f"{what} {row.pk} {name}", on_page, by_tool, name=column)


def relation_of(inline, model):
    """The name of the relation whose rows an inline shows."""
    (key,) = (
        one for one in inline.model._meta.fields if one.is_relation and one.related_model is model
    )
    return key.remote_field.get_accessor_name()


def cell_of(model_admin, row, name):
    """What stands in the list, as JSON has it."""
    field, _, value = lookup_field(name, row, model_admin)
    if field is not None and field.is_relation:
        return getattr(row, field.attname)
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, SafeData):
        return unescape(strip_tags(value)).strip()
    return value if isinstance(value, int | None) else str(value)


def moment(value):
    """As precise as it is, and never more precise than microseconds."""
    precision = "minutes" if not (value.second or value.microsecond) else "auto"
    return value.isoformat(timespec=precision).replace("+00:00", "Z")
