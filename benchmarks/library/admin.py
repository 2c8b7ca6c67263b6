from __future__ import annotations

from django.contrib import admin

from benchmarks.library.models import Author, Book

admin.site.register([Author, Book])
