from __future__ import annotations

from django.contrib import admin

from tests.library.models import Author, Book, Copy, Genre


class Copies(admin.TabularInline):
    model = Copy
    extra = 0


class AuthorAdmin(admin.ModelAdmin):
    search_fields = ["name", "^country", "salary"]


class GenreAdmin(admin.ModelAdmin):
    search_fields = ["code"]


class BookAdmin(admin.ModelAdmin):
    inlines = [Copies]
    search_fields = ["title"]
    autocomplete_fields = ["editor"]
    filter_horizontal = ["keywords"]


site = admin.AdminSite(name="library")
site.register(Author, AuthorAdmin)
site.register(Genre, GenreAdmin)
site.register(Book, BookAdmin)
