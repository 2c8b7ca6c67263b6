"""How the code of a site refuses what it was asked, as sentences for a model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ObjectDoesNotExist, PermissionDenied, ValidationError
from django.http import Http404

from mcp_django.exceptions import ToolError

LONGEST_VALIDATION = 2000


@contextmanager
def refusals_in_words() -> Iterator[None]:
    """The ways of Django and its REST framework to refuse, as sentences that tell nothing else."""
    try:
        yield
    except PermissionDenied as error:
        raise ToolError("You may not do this.") from error
    except (Http404, ObjectDoesNotExist) as error:
        raise ToolError("There is no such object.") from error
    except ValidationError as error:
        raise ToolError(messages_of(error)[:LONGEST_VALIDATION]) from error
    except Exception as error:
        # Nobody raises what is not imported.
        if "rest_framework.exceptions" in sys.modules:
            from mcp_django.exposure.drf_refusals import refusal_of

            if sentence := refusal_of(error):
                raise ToolError(sentence) from error
        raise


def messages_of(error: ValidationError) -> str:
    if not hasattr(error, "error_dict"):
        return " ".join(error.messages)
    return " ".join(
        " ".join(messages) if field == "__all__" else f"{field}: {' '.join(messages)}"
        for field, messages in error.message_dict.items()
    )
