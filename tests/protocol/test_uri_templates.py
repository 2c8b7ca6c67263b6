from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.protocol.uri_templates import URITemplate, decode, encode, parse_query
from tests.spec import requirement


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
        *((text, "?x=1") for text in ("{?x}", "{?x,y}", "{?x*}")),
        *((text, "") for text in ("{?y}", "{?empty}")),
        ("{?list}", "?list=a%2C,b"),
        ("{?list*}", "?list=a%2C&list=b"),
        ("{?none,blank}", "?blank="),
        ("{?keys*}", "?k%3D=v%26&l=1&l=2"),
        ("{list}", "a%2C,b"),
        ("{x,y,blank}", "1,"),
        ("no variables", "no variables"),
    ],
)
def test_expansion_follows_rfc_6570(text, expected):
    known = {"x": 1, "list": ["a,", "b"], "empty": [], "none": None, "blank": ""}
    known["keys"] = {"k=": "v&", "l": [1, 2], "m": None}

    assert URITemplate(text).expand(known) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", []), ("a", [("a", "")]), ("a=b=c", [("a", "b=c")]),
        ("a=1&a=2", [("a", "1"), ("a", "2")]), ("a=b+c", [("a", "b+c")]),
        ("%61=%C3%A9", [("a", "é")]), ("=x", [("", "x")]),
    ],
)  # fmt: skip
def test_a_query_is_its_pairs_in_order(query, expected):
    assert parse_query(query) == expected


@pytest.mark.parametrize("text", ["%", "a%2", "%zz", "100%", "%-1", "%ff", "%C3", "%ED%A0%80"])
def test_stray_percent_signs_and_octets_that_are_no_utf8_are_refused(text):
    with pytest.raises(ValueError, match=r"percent|utf-8"):
        decode(text)
    with pytest.raises(ValueError, match=r"percent|utf-8"):
        parse_query(f"a={text}")


# Matching

RESERVED_NAMES = st.text(
    alphabet=st.characters(exclude_characters="/\\", exclude_categories=("Cs", "Cc")), min_size=1
).filter(lambda text: text not in (".", ".."))


NO_QUERY = RESERVED_NAMES.filter(lambda text: not set(text) & set("?#[]"))


@given(year=RESERVED_NAMES, month=RESERVED_NAMES, parts=st.lists(NO_QUERY, min_size=1))
def test_what_was_expanded_matches_with_the_same_values_and_a_path_keeps_its_slashes(
    year, month, parts
):
    template, pages = (
        URITemplate(text)
        for text in ("shop://reports/{year}/{month}.json", "shop://pages/{+path}")
    )

    uri = template.expand({"year": year, "month": month})
    path = pages.expand({"path": "/".join(parts)})

    assert template.match(uri) == {"year": year, "month": month}
    assert path.count("/") == len(parts) + 2
    assert pages.match(path) == {"path": "/".join(parts)}


@given(uri=st.text())
def test_any_text_matches_or_does_not(uri):
    for text in ("{one}", "{one}/{two}", "{+one}", "{one}-{two}-{three}x"):
        found = URITemplate(text).match(uri)

        values = (
            [] if found is None else [part for one in found.values() for part in one.split("/")]
        )
        assert not {"", ".", ".."} & set(values)


def test_a_text_without_variables_matches_itself_and_many_separators_are_not_all_tried():
    assert URITemplate("shop://x").match("shop://x") == {}
    assert URITemplate("shop://x").match("shop://xy") is None
    assert URITemplate("shop://{a}/x").match("shop://1/y") is None
    assert URITemplate("shop://{a}/x").literals == "shop:///x"
    assert URITemplate("shop://{a}{?b*,c}").variables == ("a", "b", "c")
    assert URITemplate("shop://{a}-{b}-{c}-{d}-{e}!").match("shop://" + "x-" * 2000) is None
