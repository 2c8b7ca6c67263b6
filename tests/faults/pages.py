"""Faults in admin and oauth."""

from __future__ import annotations

from tests.faults.model import Room

PAGES = Room(
    tests=("tests/admin",),
    lines={
        "admin/decisions/base.py": [
            (
                'if cleaned.get("based_on") != digest_of_json(words):',
                'if not cleaned.get("based_on"):',
            )
        ],
        "admin/decisions/exposed_models.py": [
            (
                "*(choice for choice in Level.choices if choice[0] <= code.highest_level),",
                "*Level.choices,",
            )
        ],
        "admin/inspect/impersonation.py": [
            (
                "is_superuser or not person.get_all_permissions() <= viewer.get_all_permissions()",
                "is_superuser",
            )
        ],
        "admin/inspect/try_it.py": [
            ("if mime_type in PICTURES and", 'if str(mime_type).startswith("image/") and')
        ],
        "admin/calls.py": [
            (
                """[f"'{cell}" if cell[:1] in {*"=+-@\\t\\r"} else cell for""",
                "[cell for",
            )
        ],
        "admin/tokens.py": [("return found.filter(is_superuser=False)", "return found")],
        "admin/live.py": [("if not part.may_end(request):", "if not part.may_view(request):")],
        "admin/uploads.py": [('.filter(user=request.user.pk).defer("data")', '.defer("data")')],
        "admin/groups.py": [("if not limit or group.pk in limit", "if True")],
    },
)
OAUTH = Room(
    tests=("tests/oauth",),
    lines={
        "oauth/bearer.py": [
            ("token.resource != [endpoint_url()]", "endpoint_url() not in token.resource")
        ],
        "oauth/validators.py": [
            (
                "return endpoint_url() not in token.resource or holds_consent(request)",
                "return True",
            )
        ],
        "oauth/models.py": [
            ("if earlier is None or not earlier.holds_for(user):", "if earlier is None:")
        ],
        "oauth/consent.py": [
            (
                'is_all = self.cleaned_data["later_models"] and chosen.issuperset(self.labels)',
                "is_all = chosen.issuperset(self.labels)",
            )
        ],
        "oauth/pages.py": [('case "not_read_only" if may_widen:', 'case "not_read_only":')],
    },
)
