"""Faults in admin."""

from __future__ import annotations

from tests.faults.model import Fault, Room

ADMIN_FAULTS = (
    Fault(
        file="admin/decisions/base.py",
        old='if cleaned.get("based_on") != fingerprint(words):',
        new='if not cleaned.get("based_on"):',
    ),
    Fault(
        file="admin/decisions/exposed_models.py",
        old="*(choice for choice in Level.choices if choice[0] <= code.highest_level),",
        new="*Level.choices,",
    ),
    Fault(
        file="admin/inspect/impersonation.py",
        old="is_superuser or not person.get_all_permissions() <= viewer.get_all_permissions()",
        new="is_superuser",
    ),
    Fault(
        file="admin/inspect/try_it.py",
        old="if mime_type in PICTURES and",
        new='if str(mime_type).startswith("image/") and',
    ),
    Fault(
        file="admin/calls.py",
        old="""yield [f"'{cell}" if cell[:1] in {*"=+-@\\t\\r"} else cell for cell in cells]""",
        new="yield cells",
    ),
    Fault(
        file="admin/tokens.py",
        old="return found.filter(is_superuser=False)",
        new="return found",
    ),
    Fault(
        file="admin/live.py",
        old="if not part.may_end(request):",
        new="if not part.may_view(request):",
    ),
    Fault(
        file="admin/uploads.py",
        old='.filter(user=request.user.pk).defer("data")',
        new='.defer("data")',
    ),
    Fault(
        file="admin/groups.py",
        old="if not limit or group.pk in limit",
        new="if True",
    ),
)
PAGES = Room(tests=("tests/admin",), faults=ADMIN_FAULTS)
