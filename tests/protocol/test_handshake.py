"""The handshake of the legacy era."""

from __future__ import annotations

import pytest

from mcp_django.protocol.errors import INVALID_PARAMS, ProtocolError
from mcp_django.protocol.negotiation import negotiate
from mcp_django.protocol.revisions import Revision
from tests.spec import requirement

CLIENT = {"name": "test", "version": "1"}


def params(**members):
    return {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT} | members


@requirement("lifecycle:version-agreed", "lifecycle:version-offered")
@pytest.mark.parametrize(
    ("requested", "answered"),
    [
        ("2024-11-05", Revision.V2024_11_05),
        ("2025-03-26", Revision.V2025_03_26),
        ("2025-06-18", Revision.V2025_06_18),
        ("2025-11-25", Revision.V2025_11_25),
        # The modern era has no handshake.
        ("2026-07-28", Revision.V2025_11_25),
        ("1.0.0", Revision.V2025_11_25),
        ("2099-01-01", Revision.V2025_11_25),
        ("", Revision.V2025_11_25),
        ("2025-06-18 ", Revision.V2025_11_25),
        ("\x00", Revision.V2025_11_25),
    ],
)
def test_the_requested_revision_is_agreed_on_or_else_the_newest_with_a_handshake(
    requested, answered
):
    assert negotiate(params(protocolVersion=requested)) is answered


@requirement("lifecycle:params-required")
@pytest.mark.parametrize("member", ["protocolVersion", "capabilities", "clientInfo"])
@pytest.mark.parametrize("value", ["absent", None, 1, [], True])
def test_a_required_member_that_is_missing_or_of_another_type_is_named(member, value):
    broken = params(**{member: value})
    if value == "absent":
        del broken[member]

    with pytest.raises(ProtocolError, match=rf"needs {member}\.") as caught:
        negotiate(broken)
    assert (caught.value.code, caught.value.status) == (INVALID_PARAMS, 200)


@pytest.mark.parametrize("member", ["name", "version"])
def test_a_client_has_a_name_and_a_version_and_what_it_says_besides_is_ignored(member):
    client = {**CLIENT, "title": "Test", "icons": []}

    with pytest.raises(ProtocolError, match=rf"needs clientInfo\.{member}\."):
        negotiate(params(clientInfo={**client, member: 1}))

    agreed = negotiate(params(clientInfo=client, capabilities={"x": 1}, more=1))
    assert agreed is Revision.V2025_06_18
