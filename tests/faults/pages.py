"""Faults in admin and oauth."""

from __future__ import annotations

from tests.faults.model import Fault, Room

ADMIN_FAULTS: tuple[Fault, ...] = (
    Fault(
        file="admin/decisions/base.py",
        old='if cleaned.get("based_on") != digest_of_json(words):',
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
OAUTH_FAULTS: tuple[Fault, ...] = (
    Fault(
        file="oauth/bearer.py",
        old="token.resource != [endpoint_url()]",
        new="endpoint_url() not in token.resource",
    ),
    Fault(
        file="oauth/validators.py",
        old="return endpoint_url() not in token.resource or holds_consent(request)",
        new="return True",
    ),
    Fault(
        file="oauth/models.py",
        old="if earlier is None or not earlier.holds_for(user):",
        new="if earlier is None:",
    ),
    Fault(
        file="oauth/consent.py",
        old='is_all = self.cleaned_data["later_models"] and chosen.issuperset(self.labels)',
        new="is_all = chosen.issuperset(self.labels)",
    ),
    Fault(
        file="oauth/pages.py",
        old='case "not_read_only" if may_widen:',
        new='case "not_read_only":',
    ),
)
PAGES = Room(tests=("tests/admin",), faults=ADMIN_FAULTS)
OAUTH = Room(tests=("tests/oauth",), faults=OAUTH_FAULTS)
