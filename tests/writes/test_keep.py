"""What was not sent is kept, however the site makes its forms."""

from __future__ import annotations

import pytest
from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import DataError, IntegrityError, OperationalError
from django.http import Http404, HttpResponseRedirect
from django.urls import NoReverseMatch

from mcp_django.exposure.forms.schemas import MOST_ALLOWED
from mcp_django.testing import ProtocolFailure
from tests.workshop.admin import JobAdmin, PartInline, TagAdmin, ThingAdmin, site
from tests.workshop.models import Job, Keeper, Part, Tag, Thing
from tests.writes.calls import changed, differing, refusal, update

pytestmark = pytest.mark.django_db


@pytest.mark.thorough
def test_what_the_site_does_to_the_fields_of_a_form_holds(client, thing, snapshot, monkeypatch):
    original = ThingAdmin.get_form

    def get_form(self, request, obj=None, change=False, **kwargs):
        form = original(self, request, obj, change=change, **kwargs)
        form.base_fields["tag"].queryset = Tag.objects.filter(name="blue")
        return form

    monkeypatch.setattr(ThingAdmin, "get_form", get_form)
    before = snapshot(thing)

    assert not update(client, thing, title="new").is_error  # although its tag is red
    refused = update(client, thing, tag=before["tag_id"])

    assert "tag: No tag matches" in refused.text
    assert differing(before, snapshot(thing)) == {"title"}


def test_a_class_that_makes_forms_of_another_one_is_understood(
    client, thing, snapshot, monkeypatch
):
    original = ThingAdmin.get_form

    def get_form(self, request, obj=None, change=False, **kwargs):
        inner = original(self, request, obj, change=change, **kwargs)

        class WithRequest(inner):
            def __new__(cls, *args, **options):
                made = inner(*args, **options)
                made.request = request
                return made

        return WithRequest

    monkeypatch.setattr(ThingAdmin, "get_form", get_form)
    before = snapshot(thing)

    assert not update(client, thing, title="new").is_error
    assert differing(before, snapshot(thing)) == {"title"}


def test_a_form_that_another_admin_makes_is_left_to_a_person(client, thing, snapshot, monkeypatch):
    class Parent(admin.ModelAdmin):
        def change_view(self, request, object_id, form_url="", extra_context=None):
            return ThingAdmin(Thing, site).change_view(request, object_id)

    monkeypatch.setitem(site._registry, Thing, Parent(Thing, site))
    before = snapshot(thing)

    answer = update(client, thing, title="new")

    assert answer.text == "The admin has a page of its own for this. A person can do it there."
    assert snapshot(thing) == before


def test_a_view_that_leads_away_without_saving_is_not_believed(client, thing, monkeypatch):
    original = ThingAdmin.change_view

    def change_view(self, request, object_id, form_url="", extra_context=None):
        if request.method == "POST":
            return HttpResponseRedirect("/")
        return original(self, request, object_id, form_url, extra_context)

    monkeypatch.setattr(ThingAdmin, "change_view", change_view)

    assert update(client, thing, title="new").text == "Nothing was saved."


def test_a_key_that_leads_nowhere_is_kept(client):
    job = Job.objects.create(tenant="b", name="x", tag_id=999)

    changed(update(client, job, name="y"))

    job.refresh_from_db()
    assert (job.name, job.tag_id) == ("y", 999)


@pytest.mark.parametrize("is_required", [True, False])
def test_the_code_of_a_form_finds_the_record_that_an_unsent_key_leads_to(
    client, tags, monkeypatch, is_required
):
    seen = []

    class JobForm(forms.ModelForm):
        tag = forms.ModelChoiceField(Tag.objects.all(), required=is_required)

        def clean(self):
            seen.append(self.cleaned_data["tag"].name)

    monkeypatch.setattr(JobAdmin, "form", JobForm)
    job = Job.objects.create(tenant="b", name="x", tag=tags[0])

    changed(update(client, job, name="y"))

    assert seen == ["red"]
    assert Job.objects.get(name="y").tag == tags[0]


def test_fields_of_the_form_that_are_none_of_the_record_are_sent_as_shown(client, monkeypatch):
    seen = []

    class JobForm(forms.ModelForm):
        place = forms.CharField(initial="here", disabled=False)
        hidden = forms.CharField(initial="h", widget=forms.HiddenInput)
        fixed = forms.CharField(initial="f", disabled=True)

        def clean(self):
            seen.append({name: self.cleaned_data[name] for name in ("place", "hidden", "fixed")})

    monkeypatch.setattr(JobAdmin, "form", JobForm)
    job = Job.objects.create(tenant="b", name="x")

    assert not update(client, job, name="y").is_error
    assert not update(client, job, place="there").is_error
    refused = update(client, job, hidden="x", fixed="y")

    assert seen[:2] == [
        {"place": "here", "hidden": "h", "fixed": "f"},
        {"place": "there", "hidden": "h", "fixed": "f"},
    ]
    assert "'hidden' is not a field" in refused.text
    assert "'fixed' is not a field" in refused.text


def test_a_field_of_a_form_that_looks_secret_is_not_set(client, monkeypatch):
    class JobForm(forms.ModelForm):
        password1 = forms.CharField(required=False)

        class Meta:
            model = Job
            fields = ["name"]

    monkeypatch.setattr(JobAdmin, "form", JobForm)
    job = Job.objects.create(tenant="b", name="x")

    assert "You can set: name." in update(client, job, password1="x").text


def test_a_field_that_the_page_does_not_show_is_not_set_and_not_sent(client, tags, monkeypatch):
    """The form declares it, and no fieldset names it, perhaps for these users only."""
    cleaned = []

    class DeclaredForm(forms.ModelForm):
        boss_note = forms.CharField(required=False, initial="x")
        kind = forms.ChoiceField(choices=[("a", "A"), ("b", "B")], required=False)
        remark = forms.CharField(required=False, initial="begun")

        def clean(self):
            cleaned.append(
                {name: self.cleaned_data[name] for name in DeclaredForm.declared_fields}
            )

    class PartForm(DeclaredForm):
        pass

    class Inline(PartInline):
        form, fieldsets = PartForm, [(None, {"fields": ["name", "remark"]})]

    monkeypatch.setattr(TagAdmin, "form", DeclaredForm)
    monkeypatch.setattr(TagAdmin, "fieldsets", [(None, {"fields": ["name", "remark"]})])
    monkeypatch.setattr(ThingAdmin, "inlines", [Inline])
    writing = client.data("describe_model", model="workshop.tag")["writing"]
    row = {"model": "workshop.thing", "values": {"title": "T"}}

    refused = [
        update(client, tags[0], boss_note="mine").text,
        client.call_tool(
            "create_record", **row, inlines={"parts": [{"name": "p", "kind": "b"}]}
        ).text,
    ]
    assert "'boss_note' is not a field that you can set. You can set: name, remark." in refused[0]
    assert "'kind' is not a field that you can set. You can set: name, remark." in refused[1]
    assert list(writing["create_record"]["values"]["properties"]) == ["name", "remark"]
    assert "boss_note" not in str(writing)
    assert not update(client, tags[0], name="new").is_error
    assert not client.call_tool(
        "create_record", **row, inlines={"parts": [{"name": "p"}]}
    ).is_error
    assert len(cleaned) > 1
    assert all(one == {"boss_note": "", "kind": "", "remark": "begun"} for one in cleaned)


def test_what_a_field_of_some_records_may_be_is_told(client, tags, monkeypatch):
    def clean(self):
        raise ValidationError({"is_active": ValidationError("No.", code="invalid_choice")})

    monkeypatch.setattr(Tag, "clean", clean)

    assert "is_active: No." in update(client, tags[0], is_active=True).text


@pytest.mark.thorough
def test_choices_that_the_form_refuses_later_are_told(client, thing, monkeypatch):
    class Late(ThingAdmin.form):
        state = forms.ChoiceField(choices=[(f"s{n}", n) for n in range(30)])

        def clean_state(self):
            raise ValidationError("Not now.", code="invalid_choice")

    monkeypatch.setattr(ThingAdmin, "form", Late)

    told = update(client, thing, state="s3").text
    first = ", ".join(f"s{n}" for n in range(MOST_ALLOWED))
    assert f"state: Not now. Use one of: {first}." in told


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({f"x{at}": 1 for at in range(10_000)}, "Nor are 9995 more."),
        (
            {"inlines": {"parts": [{"pk": at} for at in range(10**6, 10**6 + 100)]}},
            "There are 80 more errors.",
        ),
        (
            {"tags": {"set": list(range(10_000))}, "tags_raw": {"add": ["x" * 1000] * 50}},
            "tags: At most 100 can be named at once.",
        ),
    ],
    ids=["names", "rows", "keys"],
)
def test_many_faults_are_told_shortly(client, thing, values, words):
    answer = refusal(update(client, thing, **values))

    assert words in answer
    assert len(answer) < 20_000


def test_an_admin_without_urls_is_told_as_such(client, tags, settings):
    settings.ROOT_URLCONF = "mcp_django.urls"

    answer = update(client, tags[0], name="x")

    assert answer.text.startswith("Nothing was done: the admin is not among the URLs")


# What the site or the database refuses


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValidationError("Not on Sundays."), "Not on Sundays."),
        (PermissionDenied("secret"), "You may not do this."),
        (Http404("secret"), "There is no such object."),
        (IntegrityError("secret"), "Nothing was saved: the database refuses this"),
        (DataError("secret"), "Nothing was saved: the database cannot hold"),
        (OperationalError("interrupted"), "Nothing was saved: the database took too long."),
        (OperationalError("database is locked"), "Somebody else is changing the same data"),
    ],
)
def test_what_is_refused_while_saving_is_told_without_secrets(
    error, words, client, tags, monkeypatch
):
    def save_model(self, request, obj, form, change):
        obj.save()
        raise error

    monkeypatch.setattr(TagAdmin, "save_model", save_model)

    answer = refusal(update(client, tags[0], name="new"))

    assert answer.startswith(words)
    assert "secret" not in answer
    tags[0].refresh_from_db()
    assert tags[0].name == "red"


def test_a_bug_of_the_site_changes_nothing_and_has_a_number(client, tags, monkeypatch, caplog):
    def fail(self, request, obj, *args):
        obj.save()
        raise RuntimeError("secret")

    monkeypatch.setattr(TagAdmin, "save_model", fail)
    monkeypatch.setattr(TagAdmin, "delete_model", fail)
    record = {"model": "workshop.tag", "pk": tags[0].pk}
    confirmation = client.data("delete_record", **record)["confirmation"]

    for answer in (
        update(client, tags[0], name="new"),
        client.call_tool("create_record", model="workshop.tag", values={"name": "new"}),
        client.call_tool("delete_record", **record, confirmation=confirmation),
    ):
        assert answer.text.startswith("The admin of workshop.tag failed (id ")
        assert answer.text.endswith("Nothing was changed.")
        assert "secret" not in answer.text
        assert answer.text.partition("(id ")[2].partition(")")[0] in caplog.text
    assert sorted(Tag.objects.values_list("name", flat=True)) == ["blue", "old", "red"]


@pytest.mark.parametrize("error", [OperationalError("secret"), OperationalError()], ids=str)
def test_a_database_that_is_gone_is_no_fault_of_the_call(client, tags, monkeypatch, error):
    def save_model(self, request, obj, form, change):
        raise error

    monkeypatch.setattr(TagAdmin, "save_model", save_model)

    with pytest.raises(ProtocolFailure, match="Internal error"):
        update(client, tags[0], name="new")


@pytest.mark.thorough
def test_a_row_that_others_refer_to_is_not_named_by_its_str(client, thing, monkeypatch):
    class KeeperInline(admin.TabularInline):
        model = Keeper

    monkeypatch.setattr(ThingAdmin, "inlines", [PartInline, KeeperInline])
    collect = admin.options.NestedObjects.collect
    first = thing.parts.order_by("pk")[0]

    def protect(self, objects, *args, **kwargs):
        collect(self, objects, *args, **kwargs)
        self.protected.update(one for one in objects if isinstance(one, Part))

    monkeypatch.setattr(admin.options.NestedObjects, "collect", protect)

    answer = update(client, thing, inlines={"parts": [{"pk": first.pk, "delete": True}]})

    assert "This row cannot be deleted: other records refer to it." in answer.text
    assert "str of" not in answer.text


def test_a_record_that_the_site_removes_on_saving_is_told_as_gone(client, tags, monkeypatch):
    monkeypatch.setattr(
        TagAdmin, "save_related", lambda self, request, form, *rest: form.instance.delete()
    )
    monkeypatch.setattr(TagAdmin, "log_change", lambda self, request, obj, message: None)

    answer = update(client, tags[0], name="new")

    assert answer.data == {"pk": None, "changed": {"name": "Set. You cannot read it."}}


def test_a_field_that_only_the_site_can_read_is_as_the_form_shows_it(client, monkeypatch):
    cleaned = []

    class Broken(forms.TextInput):
        def value_from_datadict(self, data, files, name):
            raise NoReverseMatch

    class Blocks(forms.Field):
        def to_python(self, value):
            raise NoReverseMatch

    class JobForm(forms.ModelForm):
        extra = Blocks(initial="as it was", widget=Broken)

        def clean_extra(self):
            cleaned.append(self.cleaned_data["extra"])
            return self.cleaned_data["extra"]

    monkeypatch.setattr(JobAdmin, "form", JobForm)
    job = Job.objects.create(tenant="b", name="x")

    changed(update(client, job, name="y"))
    refused = update(client, job, extra="z")

    assert {*cleaned} == {"as it was"}
    assert "extra: This can be set only in a browser" in refused.text


def test_code_that_looks_into_the_post_finds_what_was_sent(client, thing, monkeypatch):
    """As forms do whose choices depend on another field."""
    posted = []

    class Dependent(ThingAdmin.form):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            posted.append({name: self.data.getlist(name) for name in self.data})

    monkeypatch.setattr(ThingAdmin, "form", Dependent)

    changed(update(client, thing, title="new", tags={"set": ["red"]}, note=None))

    assert {"title": ["new"], "note": [""]}.items() <= posted[-1].items()
    assert len(posted[-1]["tags"]) == 1
