from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.protocol.uri_templates import URITemplate, decode, encode, parse_query
from tests.spec import requirement

OBJECT = URITemplate("django://objects/{model}/{pk}")
COLLECTION = URITemplate("django://objects/{model}{?filters*,search,order_by,cursor}")

values = st.text() | st.integers()


@given(values, values)
def test_path_values_come_back_from_an_expanded_template(model, pk):
    uri = OBJECT.expand({"model": model, "pk": pk})

    scheme, _, path = uri.partition("://")
    kind, *segments = path.split("/")
    assert (scheme, kind) == ("django", "objects")
    assert [decode(segment) for segment in segments] == [str(model), str(pk)]


@given(
    st.dictionaries(st.text(), values | st.lists(values, min_size=1)),
    st.none() | st.text(),
)
def test_query_values_come_back_from_an_expanded_template(filters, search):
    uri = COLLECTION.expand({"model": "shop.order", "filters": filters, "search": search})

    wanted = [
        (key, str(one))
        for key, value in filters.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    wanted += [("search", search)] if search is not None else []
    path, _, query = uri.partition("?")
    assert path == "django://objects/shop.order"
    assert parse_query(query) == wanted


@requirement("resources:templates")
@given(st.text())
def test_an_encoded_value_has_unreserved_characters_and_octets_only(text):
    assert decode(encode(text)) == text
    assert encode(text).isascii()
    assert not set(":/?#[]@!$&'()*+,;= \"<>") & set(encode(text))


@requirement("resources:templates")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{?x}", "?x=1"),
        ("{?x,y}", "?x=1"),
        ("{?y}", ""),
        ("{?list}", "?list=a%2C,b"),
        ("{?list*}", "?list=a%2C&list=b"),
        ("{?empty}", ""),
        ("{?empty*}", ""),
        ("{?none,blank}", "?blank="),
        ("{?keys*}", "?k%3D=v%26&l=1&l=2"),
        ("{?x*}", "?x=1"),
        ("{x}{y}", "1"),
        ("{list}", "a%2C,b"),
        ("{x,y,blank}", "1,"),
        ("no variables", "no variables"),
    ],
)
def test_expansion_follows_rfc_6570(text, expected):
    known = {
        "x": 1,
        "list": ["a,", "b"],
        "empty": [],
        "none": None,
        "blank": "",
        "keys": {"k=": "v&", "l": [1, 2], "m": None},
    }

    assert URITemplate(text).expand(known) == expected


def test_the_variables_of_a_template_stand_in_their_order():
    assert COLLECTION.variables == ("model", "filters", "search", "order_by", "cursor")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", []),
        ("&&", []),
        ("a", [("a", "")]),
        ("a=b=c", [("a", "b=c")]),
        ("a=1&a=2", [("a", "1"), ("a", "2")]),
        ("a=b+c", [("a", "b+c")]),
        ("%61=%C3%A9", [("a", "é")]),
        ("=x", [("", "x")]),
    ],
)
def test_a_query_is_its_pairs_in_order(query, expected):
    assert parse_query(query) == expected


@pytest.mark.parametrize("text", ["%", "a%2", "%zz", "100%", "%-1", "%ff", "%C3", "%ED%A0%80"])
def test_stray_percent_signs_and_octets_that_are_no_utf8_are_refused(text):
    with pytest.raises(ValueError, match=r"percent|utf-8"):
        decode(text)
    with pytest.raises(ValueError, match=r"percent|utf-8"):
        parse_query(f"a={text}")


@given(st.text(alphabet="%0aFg&=+é", max_size=12))
def test_any_query_is_parsed_or_raises_value_error(query):
    try:
        pairs = parse_query(query)
    except ValueError:
        pairs = []

    assert all(len(pair) == 2 for pair in pairs)
