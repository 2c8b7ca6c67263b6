from __future__ import annotations

from django import forms
from django.contrib import admin
from django.urls import reverse
from polymorphic.admin import PolymorphicChildModelAdmin, PolymorphicParentModelAdmin
from treebeard.admin import TreeAdmin
from treebeard.forms import movenodeform_factory

from tests.sites.bakery.models import (
    Cake,
    Category,
    Fee,
    Notice,
    Page,
    Pie,
    Product,
    Region,
    Tart,
    Tour,
)

admin.site.register([Page, Tour, Product])


@admin.register(Fee)
class FeeAdmin(admin.ModelAdmin):
    mcp_exclude_fields = ("margin",)


class LinkWidget(forms.TextInput):
    """Leads to a page that nobody routed."""

    def render(self, name, value, attrs=None, renderer=None):
        return super().render(name, value, attrs, renderer) + reverse("bakery:preview")

    def value_from_datadict(self, data, files, name):
        reverse("bakery:preview")
        return super().value_from_datadict(data, files, name)


@admin.register(Notice)
class NoticeAdmin(admin.ModelAdmin):
    def formfield_for_dbfield(self, db_field, request, **kwargs):
        if db_field.name == "text":
            kwargs["widget"] = LinkWidget
        return super().formfield_for_dbfield(db_field, request, **kwargs)


@admin.register(Cake)
class CakeAdmin(PolymorphicParentModelAdmin):
    base_model = Cake
    child_models = [Pie, Tart]


@admin.register(Pie, Tart)
class ChildAdmin(PolymorphicChildModelAdmin):
    base_model = Cake


@admin.register(Category)
class CategoryAdmin(TreeAdmin):
    form = movenodeform_factory(Category)


@admin.register(Region)
class RegionAdmin(TreeAdmin):
    form = movenodeform_factory(Region)
