"""Where actions of the admin come from, for packages that keep actions of their own.

    from mcp_django.admin_actions import SOURCES, AdminAction

    def reports(model_admin, request):
        for report in getattr(model_admin, "reports", ()):
            yield AdminAction(name=report.name, function=report.run, description=report.title)

    SOURCES.append(reports)

A source is called with a `ModelAdmin` and the request of a user, and yields the actions that this
user is offered. Where two sources yield the same name, the earlier source wins. Append to
`SOURCES` in the `ready()` of an app.
"""

from __future__ import annotations

from mcp_django.exposure.admin_bridge.compat import SOURCES, AdminAction, Place, Source

__all__ = ["SOURCES", "AdminAction", "Place", "Source"]
