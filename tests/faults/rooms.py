"""All faults, by the part of the package that they are in."""

from __future__ import annotations

from tests.faults.calls import CALLS
from tests.faults.core import AUDIT, AUTH, HANDLERS, SUBSCRIPTIONS
from tests.faults.http import HTTP
from tests.faults.model import Room
from tests.faults.pages import OAUTH, PAGES
from tests.faults.protocol import PROTOCOL
from tests.faults.query import QUERY
from tests.faults.records import RECORDS
from tests.faults.tools import TOOLS
from tests.faults.top import TOP

ROOMS: dict[str, Room] = {
    "protocol": PROTOCOL,
    "query": QUERY,
    "records": RECORDS,
    "tools": TOOLS,
    "calls": CALLS,
    "http": HTTP,
    "handlers": HANDLERS,
    "audit": AUDIT,
    "subscriptions": SUBSCRIPTIONS,
    "auth": AUTH,
    "oauth": OAUTH,
    "pages": PAGES,
    "top": TOP,
}
