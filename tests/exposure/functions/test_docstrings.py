from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.exposure.functions.signatures import parse_docstring

GOOGLE = """What was sold
    between two days.

    Refunds are left out.

    Args:
        since: The first day,
            inclusive.
        until (date, optional): The last day. Note: inclusive, too.

        **country: ISO code.

    Returns:
        One line per day.
    """

REST = """What was sold.

    :param since: The first day,
        inclusive.
    :type since: date
    :param date until: The last day.
    :arg country: ISO code
    :returns: One line per day.
    :raises ValueError:

    Refunds are left out.
    """


@pytest.mark.parametrize(
    ("docstring", "text", "parameters"),
    [
        (
            GOOGLE,
            "What was sold between two days.\n\nRefunds are left out.\n\n"
            "Returns: One line per day.",
            {
                "since": "The first day, inclusive.",
                "until": "The last day. Note: inclusive, too.",
                "country": "ISO code.",
            },
        ),
        (
            REST,
            "What was sold.\n\nRefunds are left out.",
            {
                "since": "The first day, inclusive.",
                "until": "The last day.",
                "country": "ISO code",
            },
        ),
        ("", "", {}),
        ("Sum.\n:param: nothing", "Sum.", {}),
        ("Sum.\n:param a: The day.\nMore.", "Sum.\n\nMore.", {"a": "The day."}),
        ("Sum.\n\nArgs:\n    all of them\n    a: The day.", "Sum.", {"a": "The day."}),
        ("A.\nArgs:\n    a: The day.\n        format: ISO.", "A.", {"a": "The day. format: ISO."}),
        ("Args:\n    a: 1\n:param b: 2\n    c: still 2", "", {"a": "1", "b": "2 c: still 2"}),
    ],
)
def test_the_text_is_told_from_what_is_said_about_each_parameter(docstring, text, parameters):
    read = parse_docstring(docstring)

    assert (read.text, read.parameters) == (text, parameters)


@given(st.text(alphabet=":*() \n\tArgsparam_x"))
def test_any_text_is_read(text):
    read = parse_docstring(text)

    assert "  " not in read.text
