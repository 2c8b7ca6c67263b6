"""The admin as the documentation of each package writes it."""

from __future__ import annotations

from adminsortable2.admin import SortableAdminMixin, SortableTabularInline
from django.contrib import admin
from django.db.models import Count
from django.shortcuts import redirect
from django.urls import reverse
from modeltranslation.admin import (
    TabbedTranslationAdmin,
    TranslationAdmin,
    TranslationTabularInline,
)
from mptt.admin import DraggableMPTTAdmin
from parler.admin import TranslatableAdmin, TranslatableTabularInline
from solo.admin import SingletonModelAdmin
from unfold.admin import ModelAdmin, TabularInline
from unfold.contrib.filters.admin import RangeNumericFilter
from unfold.decorators import action, display

from tests.sites.festival.models import (
    Act,
    Area,
    Article,
    Banner,
    Caption,
    Concert,
    Extra,
    HouseRules,
    Song,
    Stage,
    Ticket,
)


class ExtraInline(TabularInline):
    model = Extra
    extra = 0
    tab = True


@admin.register(Ticket)
class TicketAdmin(ModelAdmin):
    list_display = ["holder", "colored_status", "price", "total", "is_invited"]
    list_filter = ["status", ("seats", RangeNumericFilter)]
    list_filter_submit = True
    list_editable = ["is_invited"]
    search_fields = ["holder"]
    readonly_fields = ["total"]
    inlines = [ExtraInline]
    actions = ["void"]
    actions_detail = ["pay"]
    mcp_actions = ["void"]
    fieldsets = [
        (None, {"fields": ["holder", ("price", "seats"), "total"]}),
        ("State", {"classes": ["tab"], "fields": ["status", "is_invited", "valid_from"]}),
        ("Notes", {"classes": ["tab"], "fields": ["notes"]}),
    ]
    conditional_fields = {"valid_from": "is_invited == true"}

    @display(
        description="Status",
        ordering="status",
        label={"new": "info", "paid": "success", "void": "danger"},
    )
    def colored_status(self, obj):
        return obj.status

    @display(description="Total")
    def total(self, obj):
        return obj.price * obj.seats

    @admin.action(description="Void the tickets", permissions=["change"])
    def void(self, request, queryset):
        count = queryset.exclude(status=Ticket.Status.PAID).update(status=Ticket.Status.VOID)
        self.message_user(request, f"{count} tickets are void.")

    @action(description="Mark as paid", url_path="pay", permissions=["change"])
    def pay(self, request, object_id):
        Ticket.objects.filter(pk=object_id).update(status=Ticket.Status.PAID)
        return redirect(reverse("admin:festival_ticket_change", args=[object_id]))


@admin.register(Area)
class AreaAdmin(DraggableMPTTAdmin):
    list_display = ["tree_actions", "indented_title", "name", "parent", "size"]
    list_display_links = ["indented_title"]

    @admin.display(description="Areas below")
    def size(self, obj):
        return obj.get_descendant_count()


class ConcertInline(SortableTabularInline):
    model = Concert
    extra = 0


@admin.register(Stage)
class StageAdmin(SortableAdminMixin, admin.ModelAdmin):
    list_display = ["name", "rank", "concert_count"]
    ordering = ["rank"]
    list_per_page = 3
    inlines = [ConcertInline]

    def get_queryset(self, request):
        return super().get_queryset(request).annotate(count=Count("concerts"))

    @admin.display(description="Concerts", ordering="count")
    def concert_count(self, obj):
        return obj.count


class CaptionInline(TranslationTabularInline):
    model = Caption
    extra = 0


@admin.register(Article)
class ArticleAdmin(ModelAdmin, TabbedTranslationAdmin):
    list_display = ["title", "is_published", "languages"]
    inlines = [CaptionInline]
    actions = ["publish"]
    mcp_actions = ["publish"]

    @admin.display(description="Languages")
    def languages(self, obj):
        return ", ".join(code for code in ("en", "de") if getattr(obj, f"title_{code}"))

    @admin.action(permissions=["change"])
    def publish(self, request, queryset):
        self.message_user(request, f"Published {queryset.update(is_published=True)}.")


@admin.register(Extra, Concert)
class RowAdmin(admin.ModelAdmin):
    """So that staff can open the rows, too: only what has a page in the admin can be opened."""


@admin.register(Caption)
class CaptionAdmin(TranslationAdmin):
    list_display = ["text", "article"]


class SongInline(TranslatableTabularInline):
    model = Song
    extra = 0


@admin.register(Song)
class SongAdmin(TranslatableAdmin):
    list_display = ["name", "act"]


@admin.register(Act)
class ActAdmin(TranslatableAdmin):
    list_display = ["title", "fee"]
    search_fields = ["translations__title"]
    inlines = [SongInline]


admin.site.register(HouseRules, SingletonModelAdmin)


@admin.register(Banner)
class BannerAdmin(admin.ModelAdmin):
    """As it is written by hand in many projects."""

    def has_add_permission(self, request):
        return False

    def has_delete_permission(self, request, obj=None):
        return False

    def changelist_view(self, request, extra_context=None):
        return redirect(reverse("admin:festival_banner_change", args=[1]))

    def change_view(self, request, object_id, form_url="", extra_context=None):
        Banner.objects.get_or_create(pk=1)
        return super().change_view(request, object_id, form_url, extra_context)
