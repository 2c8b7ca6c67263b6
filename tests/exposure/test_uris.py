from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_django.exceptions import NotFound
from mcp_django.exposure.uris import (
    COLLECTION,
    RESERVED,
    Address,
    object_uri,
    parse_uri,
    query_arguments,
)


@pytest.mark.parametrize(
    ("query", "arguments"),
    [
        # Reserved keys are arguments, and their exact form is a filter.
        (
            "search=x%20y&order_by=-a,b&fields=a&fields=b&cursor=c&search__exact=z",
            {
                "search": "x y",
                "order_by": ["-a", "b"],
                "fields": ["a", "b"],
                "cursor": "c",
                "filters": {"search__exact": "z"},
            },
        ),
        ("fields=&order_by=&search=&cursor=&limit=&filters=", {}),
        ("fields=a,,b&search=x", {"fields": ["a", "b"], "search": "x"}),
        *(
            (query, {"filters": filters})
            for query, filters in {
                "a=new&a=paid&b__gte=5": {"a__in": ["new", "paid"], "b__gte": "5"},
                "a__in=1": {"a__in": ["1"]},
                "a__range=1&a__range=2": {"a__range": ["1", "2"]},
                "a__exact=1&a__exact=2": {"a__in": ["1", "2"]},
                "a=": {"a": ""},
                # Of clients that write all filters as the value of one variable.
                "filters=a%3D1%26b__in%3D2%26b__in%3D3": {"a": "1", "b__in": ["2", "3"]},
                "filters=%7B%22a%22%3A%201%2C%20%22b__in%22%3A%20%5B%222%22%5D%7D": {
                    "a": 1,
                    "b__in": ["2"],
                },
                "filters=a": {"filters": "a"},
                "filters__exact=a%3D1": {"filters__exact": "a=1"},
            }.items()
        ),
    ],
)
def test_a_query_is_read_as_the_arguments_of_find_records(query, arguments):
    assert query_arguments(parse_uri(f"django://objects/a.b?{query}").query) == arguments


@pytest.mark.parametrize(
    "uri",
    [
        "", "file:///etc/passwd", "django://objects/a.b#fragment", "django://objects/a%2",
        "django://objects/a%ff", "django://objects/" + "a" * 5000,
    ],
)  # fmt: skip
def test_what_is_no_uri_of_ours_is_not_found(uri):
    with pytest.raises(NotFound):
        parse_uri(uri)


@given(st.text(max_size=100))
def test_any_text_is_an_address_or_not_found(text):
    with suppress(NotFound):
        parse_uri("django://" + text)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=3))
def test_every_key_survives_its_uri(parts):
    address = parse_uri(object_uri("a.b", parts))

    assert address == Address(kind="objects", segments=("a.b", *parts))


@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=4))
@example({"in": "", "range": "x"})
def test_every_filter_survives_the_template(filters):
    names = filters.keys() - {*RESERVED, "filters"}
    filters = {name: filters[name] for name in names if not name.endswith(("__in", "__range"))}

    address = parse_uri(COLLECTION.expand({"model": "a.b", "filters": filters}))

    assert query_arguments(address.query).get("filters", {}) == filters
