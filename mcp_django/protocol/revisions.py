"""The revisions of MCP, and what each one can express.

Code elsewhere asks a revision for a feature. It never compares dates.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace


class Era(enum.Enum):
    """The specification's own words: per-request `_meta`, or a handshake."""

    LEGACY = "legacy"
    MODERN = "modern"


# There is one of each revision, and dictionaries by features are looked into often.
@dataclass(frozen=True, kw_only=True, eq=False)
class Features:
    """What a revision can say. Named for the thing, true where the revision has it."""

    era: Era = Era.LEGACY
    batches: bool = False
    tool_annotations: bool = False
    audio: bool = False
    progress_message: bool = False
    completions_capability: bool = False
    titles: bool = False
    structured_content: bool = False
    resource_links: bool = False
    last_modified: bool = False
    #: A JSON-RPC error may leave out an id that could not be read; before, it is null.
    error_id_optional: bool = False
    #: A person may be asked with a form.
    elicitation: bool = False
    #: In questions to a person: titles of choices, several choices, and defaults.
    rich_elicitation: bool = False
    #: structuredContent and outputSchema may have any root, not only an object.
    any_structured_content: bool = False
    result_type: bool = False
    #: An answer may be questions to the client, which sends the request again with the answers.
    input_required: bool = False
    caching: bool = False
    missing_resource_is_invalid_params: bool = False
    #: Clients understand an event without a message, which tells them how to come back.
    priming_events: bool = False
    #: A person may be sent to a page of the site.
    url_elicitation: bool = False
    disconnect_cancels: bool = False


V24 = Features()
V2503 = replace(
    V24,
    batches=True,
    tool_annotations=True,
    audio=True,
    progress_message=True,
    completions_capability=True,
)
V2506 = replace(
    V2503,
    batches=False,
    elicitation=True,
    titles=True,
    structured_content=True,
    resource_links=True,
    last_modified=True,
)
V2511 = replace(
    V2506,
    error_id_optional=True,
    rich_elicitation=True,
    priming_events=True,
    url_elicitation=True,
)
V26 = replace(
    V2511,
    era=Era.MODERN,
    any_structured_content=True,
    result_type=True,
    input_required=True,
    priming_events=False,
    caching=True,
    missing_resource_is_invalid_params=True,
    disconnect_cancels=True,
)


class Revision(enum.Enum):
    V2024_11_05 = "2024-11-05"
    V2025_03_26 = "2025-03-26"
    V2025_06_18 = "2025-06-18"
    V2025_11_25 = "2025-11-25"
    V2026_07_28 = "2026-07-28"

    @classmethod
    def parse(cls, text: object) -> Revision | None:
        """The revision that a peer named, or None for one that this server does not know."""
        return BY_TEXT.get(text) if isinstance(text, str) else None

    @property
    def features(self) -> Features:
        return FEATURES[self]

    @property
    def era(self) -> Era:
        return FEATURES[self].era


BY_TEXT = {revision.value: revision for revision in Revision}
FEATURES = dict(zip(Revision, (V24, V2503, V2506, V2511, V26), strict=True))
LEGACY = tuple(revision for revision in Revision if revision.era is Era.LEGACY)
MODERN = tuple(revision for revision in Revision if revision.era is Era.MODERN)
LATEST_LEGACY = LEGACY[-1]
#: A legacy message without any evidence (2025-06-18 transports: "SHOULD assume 2025-03-26").
ASSUMED = Revision.V2025_03_26
