from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.handlers.lists import page_after
from tests.spec import requirement

names = st.sets(st.text(alphabet="abc", max_size=3))


def identity(item):
    return item


@given(names, st.integers(1, 5))
def test_the_pages_of_a_list_are_the_list(items, size):
    ordered = sorted(items)
    seen: list[str] = []
    last: str | None = None
    while len(seen) < len(ordered):
        page, last = page_after(ordered, last, size=size, key=identity)
        assert 1 <= len(page) <= size
        seen += page

    assert seen == ordered
    assert last is None


@requirement("lists:pages")
@given(st.lists(names, min_size=1), st.integers(1, 3))
def test_a_list_that_changes_between_pages_neither_repeats_nor_skips_what_stayed(versions, size):
    """Each page is of another version of the list; the last version is read to its end."""
    seen: list[str] = []
    last: str | None = None
    taken = 0
    # As many pages as there can be, if none goes back.
    while taken == 0 or (last is not None and taken < 40 + len(versions)):
        version = sorted(versions[min(taken, len(versions) - 1)])
        page, last = page_after(version, last, size=size, key=identity)
        seen += page
        taken += 1

    stayed = set.intersection(*versions[:taken])
    assert last is None
    assert seen == sorted(set(seen))
    assert stayed <= set(seen)


@requirement("lists:pages")
@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (None, (["b", "d"], "d")),
        ("", (["b", "d"], "d")),
        ("a", (["b", "d"], "d")),
        ("b", (["d", "f"], None)),
        ("c", (["d", "f"], None)),
        ("f", ([], None)),
        ("z", ([], None)),
    ],
)
def test_a_page_begins_behind_its_position_and_only_the_last_has_no_next(last, expected):
    assert page_after(["b", "d", "f"], last, size=2, key=identity) == expected
