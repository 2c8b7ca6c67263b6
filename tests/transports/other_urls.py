"""URLs of a subdomain, which has no endpoint, and one view for whatever it does not have."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpResponse
from django.urls import path, re_path


def page(request):
    return HttpResponse("a page")


urlpatterns = [
    path("admin/", admin.site.urls),
    path("shop/", page, name="shop"),
    re_path("^.*$", page, name="anything"),
]


def handler404(request, exception):
    return HttpResponse("It was here once.", status=410)
