"""What staff switched off: the whole server, or all assistants of a user."""

from __future__ import annotations

from mcp_django.exceptions import AuthenticationFailed, Closed
from mcp_django.exposure.decisions import Decisions, decisions
from mcp_django.principal import Principal


def check_switches(principal: Principal) -> None:
    """Return if the principal may be answered. No query while what staff decided is known.

    Raises AuthenticationFailed for a user who is blocked, as for any credential that is not good,
    and Closed where nobody is answered.
    """
    decided = decisions(principal.server)
    if principal.user.pk in decided.blocked_users:
        raise AuthenticationFailed
    if decided.closed:
        raise Closed


def lets_in(decided: Decisions, principal: Principal) -> bool:
    """The same as a question, for event loops."""
    return not decided.closed and principal.user.pk not in decided.blocked_users
