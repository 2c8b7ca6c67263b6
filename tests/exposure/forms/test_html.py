"""HTML becomes what a browser would send of it."""

from __future__ import annotations

import pytest

from mcp_django.exposure.forms.html import read_page


@pytest.mark.parametrize(
    ("html", "pairs"),
    [
        ('<input name="a" value="&lt;&quot;&#x27;">', [("a", "<\"'")]),
        ('<input name="a">', [("a", "")]),
        ("<input value='nameless'>", []),
        ('<input name="a" value="1" disabled>', []),
        ('<input type="checkbox" name="a">', []),
        ('<input type="checkbox" name="a" checked>', [("a", "on")]),
        ('<input type="radio" name="a" value="1"><input type="radio" name="a" value="2" checked>',
         [("a", "2")]),
        ('<input type="file" name="a" value="x">', []),
        ('<input type="submit" name="a" value="x"><button name="b">x</button>', []),
        ('<textarea name="a">\n\n two\n</textarea>', [("a", "\n two\n")]),
        ('<textarea name="a"></textarea>', [("a", "")]),
        ('<select name="a"><option value="1">x<option value="2">y</select>', [("a", "1")]),
        ('<select name="a"><option value="1">x</option><option selected> two  words </option>'
         "</select>", [("a", "two words")]),
        ('<select name="a"><option value="" disabled>-</option><option value="2">y</option>'
         "</select>", [("a", "2")]),
        ('<select name="a"><option value="" disabled selected>-</option><option>y</option>'
         "</select>", []),
        ('<select name="a"></select>', []),
        ('<select name="a" multiple><option selected>1</option><option>2</option>'
         '<option selected>3</option></select>', [("a", "1"), ("a", "3")]),
        ('<select name="a" multiple><optgroup disabled><option selected>1</option></optgroup>'
         '<optgroup><option selected>2</option></optgroup></select>', [("a", "2")]),
        # An end tag that may be left out.
        ("<select name=a><optgroup disabled><option>1</select><input name=b>", [("b", "")]),
        ('<fieldset disabled><fieldset><input name="a"></fieldset></fieldset><input name="b">',
         [("b", "")]),
        ('<template><input name="a"></template><input name="b">', [("b", "")]),
        ("</fieldset></template></select></optgroup></label></form><option>x</option>", []),
    ],
)  # fmt: skip
def test_only_successful_controls_are_sent(html, pairs):
    assert read_page(html).loose.pairs() == pairs


def test_controls_belong_to_the_form_around_them_or_to_the_one_they_name():
    page = read_page(
        '<form id="first" method="POST" action="/go"><input name="a"></form>'
        '<form><button form="first" name="b" value="1">Do <b>it</b></button></form>'
        '<input name="loose"><input name="astray" form="none">'
    )

    first, second = page.forms
    assert (first.method, first.action, first.pairs()) == ("post", "/go", [("a", "")])
    assert [(one.name, one.value, one.label) for one in first.buttons] == [("b", "1", "Do it")]
    assert second.controls == []
    assert second.method == "get"
    assert page.loose.pairs() == [("loose", ""), ("astray", "")]


def test_controls_know_their_labels():
    page = read_page(
        '<label for="x">For\n x</label><input id="x" name="a" required>'
        '<label><input type="radio" name="b" value="1"> After it </label>'
        '<input name="c" aria-label="Spoken"><template><label>hidden</label></template>'
    )

    controls = page.loose.controls
    assert [one.label for one in controls] == ["For x", "After it", "Spoken"]
    assert [one.is_required for one in controls] == [True, False, False]
