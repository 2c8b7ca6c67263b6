"""Every requirement of a server, from the specification and from this project."""

from __future__ import annotations

from tests.spec.authorization import AUTHORIZATION
from tests.spec.discovery import DISCOVERY
from tests.spec.envelope import ENVELOPE
from tests.spec.http import HTTP
from tests.spec.http_sse import HTTP_SSE
from tests.spec.input import INPUT
from tests.spec.jsonrpc import JSONRPC
from tests.spec.lifecycle import LIFECYCLE
from tests.spec.model import Requirement
from tests.spec.prompts import PROMPTS
from tests.spec.resources import RESOURCES
from tests.spec.security import SECURITY
from tests.spec.sessions import SESSIONS
from tests.spec.stdio import STDIO
from tests.spec.subscriptions import SUBSCRIPTIONS
from tests.spec.tasks import TASKS
from tests.spec.tools import TOOLS
from tests.spec.utilities import UTILITIES

REQUIREMENTS: tuple[Requirement, ...] = (
    *JSONRPC,
    *LIFECYCLE,
    *HTTP,
    *SESSIONS,
    *HTTP_SSE,
    *STDIO,
    *ENVELOPE,
    *DISCOVERY,
    *TOOLS,
    *RESOURCES,
    *PROMPTS,
    *UTILITIES,
    *INPUT,
    *SUBSCRIPTIONS,
    *TASKS,
    *AUTHORIZATION,
    *SECURITY,
)
BY_ID = {one.id: one for one in REQUIREMENTS}
