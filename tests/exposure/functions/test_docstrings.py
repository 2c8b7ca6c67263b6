from __future__ import annotations

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


def test_the_parts_of_googles_style_are_told_apart():
    read = parse_docstring(GOOGLE)

    assert read.text == (
        "What was sold between two days.\n\nRefunds are left out.\n\nReturns: One line per day."
    )
    assert read.parameters == {
        "since": "The first day, inclusive.",
        "until": "The last day. Note: inclusive, too.",
        "country": "ISO code.",
    }


def test_the_fields_of_rest_are_told_apart():
    read = parse_docstring(REST)

    assert read.text == "What was sold.\n\nRefunds are left out."
    assert read.parameters == {
        "since": "The first day, inclusive.",
        "until": "The last day.",
        "country": "ISO code",
    }


def test_a_continuation_with_a_colon_is_not_a_parameter():
    read = parse_docstring("Sum.\n\nArgs:\n    since: The day.\n        format: ISO.")

    assert read.parameters == {"since": "The day. format: ISO."}


def test_text_before_the_first_entry_of_a_section_is_dropped():
    read = parse_docstring("Sum.\n\nArgs:\n    all of them\n    since: The day.")

    assert (read.text, read.parameters) == ("Sum.", {"since": "The day."})


def test_text_right_after_a_section_stays_a_paragraph_of_its_own():
    read = parse_docstring("Sum.\n:param since: The day.\nMore.")

    assert (read.text, read.parameters) == ("Sum.\n\nMore.", {"since": "The day."})


def test_a_field_ends_a_section():
    read = parse_docstring("Args:\n    a: one\n:param b: two\n    c: still two")

    assert read.parameters == {"a": "one", "b": "two c: still two"}


def test_a_parameter_field_without_a_name_is_dropped():
    assert parse_docstring("Sum.\n:param: nothing").parameters == {}


def test_no_docstring_says_nothing():
    read = parse_docstring("")

    assert (read.text, read.parameters) == ("", {})


@given(st.text(alphabet=":*() \n\tArgsparam_x"))
def test_any_text_is_read(text):
    read = parse_docstring(text)

    assert "  " not in read.text
