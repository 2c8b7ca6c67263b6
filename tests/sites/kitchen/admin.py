"""A form with rows within rows, of django-unfold where the site has it, and of django-nested-admin
elsewhere: they do not work in one process.
"""

from __future__ import annotations

from django.apps import apps
from django.contrib import admin

from tests.sites.kitchen.models import Course, Dish, Menu

if apps.is_installed("unfold"):
    from unfold.admin import ModelAdmin, StackedInline, TabularInline
else:
    from nested_admin import NestedModelAdmin as ModelAdmin
    from nested_admin import NestedStackedInline as StackedInline
    from nested_admin import NestedTabularInline as TabularInline


class DishInline(TabularInline):
    model = Dish
    extra = 0


class CourseInline(StackedInline):
    model = Course
    sortable_field_name = "position"
    extra = 0
    inlines = [DishInline]


@admin.register(Menu)
class MenuAdmin(ModelAdmin):
    list_display = ["name", "dishes"]
    inlines = [CourseInline]

    @admin.display(description="Dishes")
    def dishes(self, obj):
        return Dish.objects.filter(course__menu=obj).count()


@admin.register(Course, Dish)
class RowAdmin(admin.ModelAdmin):
    """So that staff can open the rows, too: only what has a page in the admin can be opened."""
