from __future__ import annotations

from mcp_django.protocol import errors
from tests.spec import requirement

#: JSON-RPC keeps these for itself and for what stands on it.
RESERVED = range(-32768, -31999)
JSON_RPC = {-32700, -32600, -32601, -32602, -32603}
#: Of the specification: before 2026-07-28, and since.
LEGACY, MODERN = {-32002, -32042}, {-32020, -32021, -32022}


@requirement("errors:own-codes", "errors:reserved-codes")
def test_every_reserved_code_is_one_that_somebody_gave_a_meaning():
    codes = {value for value in vars(errors).values() if isinstance(value, int)}

    assert codes >= JSON_RPC
    assert codes & set(RESERVED) <= JSON_RPC | LEGACY | MODERN
