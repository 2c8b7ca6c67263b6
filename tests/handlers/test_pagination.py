from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcp_django.handlers.lists import page_after
from tests.spec import requirement

names = st.sets(st.text(alphabet="abc", max_size=3))


def identity(item):
    return item


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
        assert len(page) <= size
        seen += page
        taken += 1

    stayed = set.intersection(*versions[:taken])
    assert last is None
    assert seen == sorted(set(seen))
    assert stayed <= set(seen)
