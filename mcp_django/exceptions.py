"""What can go wrong, in the words of this package."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from mcp_django.protocol.results import InputRequired, ToolResult


class ToolError(Exception):
    """The tool ran and failed. A model reads the sentence, so say what to do next."""


class QueryError(ToolError):
    """The caller's query cannot run. The sentence says what to change and names nothing hidden."""


class UnknownName(QueryError):
    """A name that the caller cannot use there, whether it is hidden or was never there."""


class InvalidArguments(ToolError):
    """The arguments do not fit the schema of the tool."""


class ValuesRefused(ToolError):
    """Values were refused, which may tell of other records that have them."""


class FormRefused(ValuesRefused):
    """A form of the admin refused values. The sentence has its errors by field."""


class NotFound(ToolError):
    """There is no such thing for this caller: missing and forbidden raise this, word for word."""


class Limited(ToolError):
    """Too many calls. The sentence says when to come back."""


class NotAskable(Exception):
    """A form holds what a person cannot be asked for: a file, a list, JSON, a secret."""


class Leak(Exception):
    """A query holds a column, join or node that no declared path explains. Always our bug."""


class NotDone(ToolError):
    """Nothing was done, and the same call is not to be made again."""


class Declined(NotDone):
    """A person was asked, and did not agree. Not caught, it ends the call."""

    def __init__(self, *, is_explicit: bool, outcome: str = "") -> None:
        """`outcome` is a sentence about what was done, where that is known."""
        said = "The person declined." if is_explicit else "The person closed the question."
        parts = [said, outcome, "Do not try again unless they want you to."]
        super().__init__(" ".join(part for part in parts if part))
        #: False: the question was closed without a choice.
        self.is_explicit = is_explicit


class InputNeeded(Exception):
    """The call ends here with a question, which is `result`, and starts again with the answer."""

    def __init__(self, result: InputRequired | ToolResult) -> None:
        super().__init__("The client has to be asked.")
        self.result = result


class Busy(Exception):
    """No thread is free and the queue is full."""


class Cancelled(Exception):
    """Nobody waits for this call any more."""


class AuthenticationFailed(Exception):
    """A credential was presented and is not valid. Final: no other authenticator is asked."""

    def __init__(self, description: str = "The credential is not valid.") -> None:
        super().__init__(description)
        self.description = description


#: What somebody reads who sends none.
NO_CREDENTIAL = (
    "No credential was sent. Send a header such as Authorization: Bearer <personal token>."
)


class NotAuthenticated(AuthenticationFailed):
    """No credential was presented, and this server answers nobody without one."""

    def __init__(self, description: str = NO_CREDENTIAL) -> None:
        super().__init__(description)


class TooManyRequests(Exception):
    """Too many calls, or too many wrong credentials. Come back in `retry_after` seconds."""

    def __init__(self, retry_after: float) -> None:
        super().__init__("Too many requests. Try again later.")
        self.retry_after = retry_after


class ServiceUnavailable(Exception):
    """Nobody can be recognized. The sentence is for the site's log, not for the peer."""

    #: What the peer reads.
    description = "This server is not set up."


class IssuerUnavailable(ServiceUnavailable):
    """The authorization server that signed a token does not answer, so nobody can check it."""

    description = "The token cannot be checked at the moment. Try again in a minute."


class Closed(Exception):
    """Staff closed the server: nobody is answered."""


class AlreadyRegistered(Exception):
    """The model or the tool name is taken."""


class NotRegistered(Exception):
    """The model is not registered."""


def unknown(name: object, allowed: Iterable[str], what: str) -> QueryError:
    """The same sentence whether `name` is hidden, forbidden or was never there."""
    shown = ascii(name)[:60]
    names = sorted(allowed)
    close = get_close_matches(str(name)[:60], names, n=3, cutoff=0.5)
    if close:
        hint = f"Did you mean {', '.join(close)}?"
    elif names:
        hint = f"Use one of: {', '.join(names[:30])}."
    else:
        hint = "Nothing can be used there."
    return UnknownName(f"{shown} cannot be used in {what}. {hint}")
