"""`update_records`: one change of many records, shown and confirmed before it is made."""

from __future__ import annotations

from typing import Any

import msgspec

from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_bridge import writes
from mcp_django.exposure.admin_bridge.rights import CHANGE, model_admin_for
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.arguments import Filters, UpdateRecords, or_default
from mcp_django.exposure.query.find import check_shows_records
from mcp_django.exposure.questions.conversation import approve
from mcp_django.exposure.tools.action_selections import selected_records

#: Records that one call may change.
MOST_UPDATED = 200


def update_each(context: CallContext, rights: Rights, given: UpdateRecords) -> dict[str, Any]:
    """The answer of `update_records`. Raises ToolError if nothing was changed."""
    exposure = rights.exposure(given.model)
    model_admin_for(rights, exposure, CHANGE)
    check_shows_records(exposure)
    if not given.values:
        raise ToolError("values: name at least one field and its value. Nothing was changed.")
    asked = Filters(filters=given.filters, exclude=given.exclude, search=given.search)
    selection = selected_records(rights, exposure, or_default(given.pks), asked)
    if len(selection.keys) > MOST_UPDATED:
        raise ToolError(
            f"These are {len(selection.keys)} records, and one call changes {MOST_UPDATED} at "
            "most. Nothing was changed. Name fewer, and call again for the others."
        )
    return writes.save_each(
        context,
        rights,
        exposure,
        # Two calls that change the same records must not wait for each other.
        sorted(selection.keys, key=str),
        given.values,
        agree=lambda question: approve(
            context,
            rights,
            tool="update_records",
            arguments=msgspec.to_builtins(given),
            question=question,
            digest=selection.digest,
            preview=lambda: {"records": len(selection.keys)},
        ),
        dry_run=given.dry_run,
    )
