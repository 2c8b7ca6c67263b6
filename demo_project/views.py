from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.decorators import login_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from demo_project import clock
from demo_project.flights.models import Incident
from demo_project.flights.rights import visible
from demo_project.flights.seeding.users import DEMO_USERS


def start(request: HttpRequest) -> HttpResponse:
    """What this site is and how an assistant connects to it."""
    context = {
        "endpoint": f"{settings.PUBLIC_URL}/mcp",
        "demo_users": DEMO_USERS,
        "today": clock.today(),
    }
    return render(request, "start.html", context)


@login_required
def report(request: HttpRequest, name: str) -> FileResponse:
    """The report of an incident, for those who may see the incident in the admin."""
    if not admin.site.has_permission(request):
        raise Http404
    incident = get_object_or_404(visible(Incident, request), report=name)
    return FileResponse(incident.report.open(), content_type="text/plain; charset=utf-8")
