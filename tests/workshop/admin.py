from __future__ import annotations

from django import forms
from django.contrib import admin
from django.utils.html import format_html

from tests.workshop.models import Comment, Job, Keeper, Part, Rack, Scrap, Tag, Team, Thing


class TwoInputs(forms.Widget):
    """Reads names of its own, as many widgets with JavaScript do."""

    def render(self, name, value, attrs=None, renderer=None):
        first, _, rest = (value or "").partition(",")
        return format_html(
            '<input name="{0}__first" value="{1}"><input name="{0}__rest" value="{2}">',
            name,
            first,
            rest,
        )

    def value_from_datadict(self, data, files, name):
        return ",".join(filter(None, [data.get(f"{name}__first"), data.get(f"{name}__rest")]))

    def value_omitted_from_data(self, data, files, name):
        return f"{name}__first" not in data


class ThingForm(forms.ModelForm):
    class Meta:
        model = Thing
        fields = "__all__"
        localized_fields = ["local_price"]
        widgets = {
            "pair": TwoInputs,
            "day_in_parts": forms.SelectDateWidget(years=range(2020, 2035)),
            "tags_boxes": forms.CheckboxSelectMultiple,
        }

    def clean(self):
        found = super().clean()
        # It reads a field that may not have been sent.
        if found.get("state") == "void" and not found["note"]:
            self.add_error("note", "Say why it is void.")
        return found


class PartInline(admin.TabularInline):
    model = Part
    extra = 1
    max_num = 5


class PartAdmin(admin.ModelAdmin):
    pass


class ScrapInline(admin.TabularInline):
    model = Scrap
    extra = 1


class TagAdmin(admin.ModelAdmin):
    search_fields = ["name"]


class ThingAdmin(admin.ModelAdmin):
    form = ThingForm
    inlines = [PartInline, ScrapInline]
    raw_id_fields = ["tag_raw", "tags_raw"]
    autocomplete_fields = ["tag_searched", "tags_searched"]
    filter_horizontal = ["tags_aside"]
    radio_fields = {"radio": admin.VERTICAL}
    readonly_fields = ["locked"]
    prepopulated_fields = {"slug": ["title"]}

    def formfield_for_dbfield(self, db_field, request, **kwargs):
        if db_field.name == "at_in_one":
            return db_field.formfield(form_class=forms.DateTimeField, widget=forms.DateTimeInput)
        return super().formfield_for_dbfield(db_field, request, **kwargs)


class TeamForm(forms.ModelForm):
    """Django would leave these out: see the rows between."""

    tags = forms.ModelMultipleChoiceField(Tag.objects.all(), required=False)

    class Meta:
        model = Team
        fields = ["name"]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.initial["tags"] = list(self.instance.tags.values_list("pk", flat=True))

    def _save_m2m(self):
        super()._save_m2m()
        self.instance.tags.set(self.cleaned_data["tags"])


class TeamAdmin(admin.ModelAdmin):
    form = TeamForm

    def changelist_view(self, request, extra_context=None):
        self.prepare()
        return super().changelist_view(request, extra_context)

    def prepare(self):
        """Some pages make the only record of their model here."""


class CommentAdmin(admin.ModelAdmin):
    list_display = ["text", "target"]


class JobAdmin(admin.ModelAdmin):
    """Whose name begins with a tenant works for it."""

    def get_queryset(self, request):
        return super().get_queryset(request).filter(tenant=request.user.username[0])


site = admin.AdminSite(name="workshop")
site.register(Comment, CommentAdmin)
site.register(Tag, TagAdmin)
site.register(Thing, ThingAdmin)
site.register(Part, PartAdmin)
site.register(Keeper)
site.register(Scrap)
site.register(Job, JobAdmin)
site.register(Team, TeamAdmin)
site.register(Rack)
