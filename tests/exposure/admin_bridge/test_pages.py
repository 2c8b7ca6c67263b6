"""Pages between choosing an action and running it are shown, and answered as a person would."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django import forms

from mcp_django.exposure.admin_bridge.pages import MOST_ERRORS, ActionPage, forms_in
from mcp_django.exposure.forms.html import LONGEST_TEXT, read_page
from mcp_django.exposure.tools.action_calls import NEEDS_ANSWER
from tests.browser.looks import SKIN
from tests.clients import call_with_token
from tests.depot import actions
from tests.depot.models import Driver, Van
from tests.depot.steps import call

# Of packages that were written for Django 6.0.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:Overriding get_action"),
]


PHOTO = {"filename": "a.txt", "data": "aGVsbG8="}


def confirmed(client, name, parcel, **arguments):
    """What comes of a call that the person agrees to."""
    return call_with_token(client, f"depot_parcel_{name}", pks=[parcel.pk], **arguments)


def status(parcel):
    parcel.refresh_from_db()
    return parcel.status


def test_a_page_tells_its_text_and_what_its_form_takes(boss, parcel):
    shown = call(boss, "ship", parcel).data

    assert shown["outcome"] == "asks"
    assert shown["page"]["title"] == "Ship parcels"
    assert "1 parcels leave." in shown["page"]["text"]
    assert shown["answer_schema"]["properties"]["carrier"]["oneOf"] == [
        {"const": "ups", "title": "UPS"},
        {"const": "dhl", "title": "DHL"},
    ]
    assert shown["answer_schema"]["properties"]["copies"]["maximum"] == 5
    assert shown["answer_schema"]["required"] == ["carrier"]
    assert shown["next"] == NEEDS_ANSWER
    assert "confirmation" not in shown
    assert status(parcel) == "waiting"


@pytest.mark.parametrize(
    ("name", "answer", "text"),
    [
        ("ship", {"carrier": "dhl", "copies": 2, "leaves_on": "2026-01-31"},
         "1 by dhl, 2 copies on 2026-01-31."),
        # What is left out stays as the page has it.
        ("ship", {"carrier": "ups"}, "1 by ups, 1 copies."),
        ("ship_declared", {"carrier": "ups"}, "1 by ups, 1 copies."),
        ("ship_html", {"carrier": "ups"}, "1 slow gift=False"),
        ("ship_html", {"carrier": "ups", "gift": True, "speed": "fast"}, "1 fast gift=True"),
        ("ship_html", {"carrier": "ups", "gift": False, "extras": ["bow", "card"]},
         "1 slow bow card gift=Fal"),
        ("remember", {}, "Remembered 1."),
        ("lead_within", {"stamp": "OK"}, "Stamped 1 with OK."),
        ("pack", {"inner-carrier": "ups", "outer-carrier": "dhl"}, "ups in dhl"),
        ("attach", {"photo": PHOTO, "driver": None, "vans": []}, "a.txt 5 nobody 0 None"),
    ],
)  # fmt: skip
def test_an_answer_with_the_confirmation_is_sent_as_a_browser_would(
    boss, parcel, name, answer, text
):
    done = confirmed(boss, name, parcel, **({"answer": answer} if answer else {}))

    assert " ".join(done.data["messages"][0]["text"].split()).startswith(text)


@pytest.mark.parametrize(
    ("name", "answer", "sentence"),
    [
        ("ship", {"carrier": "ups", "colour": 1},
         "answer: the page has no 'colour'. The page asks: carr"),
        ("ship", {"copies": 1},
         "answer: missing carrier. The page asks: carrier, copies, leaves_on."),
        ("ship", {"carrier": "fedex"}, "answer: carrier: 'fedex' is not one of: ups, dhl."),
        ("ship", {"carrier": "ups", "copies": "many"}, "answer: copies: 'many' is not a number."),
        ("ship", {"carrier": "ups", "_selected_action": "2"}, "has no '_selected_action'"),
        ("ship", {"carrier": "ups", "select_across": "1"}, "has no 'select_across'"),
        ("ship_declared", {"carrier": "ups", "copies": 9},
         "answer: the page has no 'copies'. The page asks: carrier."),
        ("ship_html", {"carrier": "fedex"}, "answer: carrier: "),
        ("ship_html", {"carrier": "ups", "gift": "false"}, "answer: gift: "),
        ("ship_html", {"carrier": "ups", "weight": "x"}, "answer: weight: "),
        ("pack", {"inner-carrier": "ups", "outer-carrier": "x"},
         "answer: outer-carrier: 'x' is not one of: ups, dhl."),
        ("attach", {"photo": PHOTO, "driver": 0}, "answer: driver: "),
        ("attach", {"photo": PHOTO, "vans": "A"}, "answer: vans: 'A' is not a list of keys."),
        ("attach", {"photo": PHOTO, "vans": [0]}, "answer: vans: "),
        ("attach", {"photo": "a.txt"}, "answer: photo: A file is "),
        ("attach", {"photo": {"filename": "?", "data": ""}},
         "answer: photo: This is not a name for a file."),
    ],
)  # fmt: skip
def test_an_answer_that_does_not_fit_is_refused_before_anything_is_sent(
    boss, parcel, name, answer, sentence
):
    refused = call(boss, name, parcel, answer=answer)

    assert refused.is_error
    assert sentence in refused.text
    assert status(parcel) == "waiting"


def test_what_the_form_finds_wrong_comes_back_before_anybody_is_asked(boss, parcel):
    again = call(boss, "ship", parcel, answer={"carrier": "ups", "copies": 9})
    done = confirmed(boss, "ship", parcel, answer={"carrier": "ups", "copies": 5})

    assert again.is_error
    assert again.data["outcome"] == "asks again"
    assert again.data["errors"] == {
        "copies": [
            {"message": "Ensure this value is less than or equal to 5.", "code": "max_value"}
        ]
    }
    assert not done.is_error
    assert status(parcel) == "shipped"


def test_records_that_are_filtered_are_confirmed_and_then_the_page_is_answered(boss, parcel):
    name, filters = "depot_parcel_ship", {"number": "n1"}
    shown = boss.call_tool(name, filters=filters)
    token = shown.data["confirmation"]
    page = boss.call_tool(name, filters=filters, confirmation=token)
    answer = {"carrier": "dhl", "copies": 3}
    done = call_with_token(boss, name, filters=filters, answer=answer)

    assert shown.data["outcome"] == "asks"
    assert page.data["outcome"] == "asks"
    assert done.data["messages"][0]["text"] == "1 by dhl, 3 copies."


def test_a_declared_form_is_told_in_the_list_and_before_the_page(boss, parcel):
    tool = boss.tools()["depot_parcel_ship_declared"]
    listed = tool["inputSchema"]["properties"]["answer"]
    shown = boss.call_tool("depot_parcel_ship_declared", filters={"number": "n1"})

    assert list(listed["properties"]) == ["carrier"]
    assert shown.data["outcome"] == "asks"
    assert shown.data["answer_schema"].items() >= listed.items()


def test_where_the_site_wants_no_confirmation_an_answer_is_enough(boss, parcel):
    shown = boss.call_tool("ship_now", pks=[parcel.pk])
    again = boss.call_tool("ship_now", pks=[parcel.pk], answer={"carrier": "ups", "copies": 7})
    done = boss.call_tool("ship_now", pks=[parcel.pk], answer={"carrier": "ups"})

    assert "confirmation" not in shown.data
    assert "confirmation" not in again.data
    assert again.is_error
    assert done.data["outcome"] == "done"


def test_html_alone_tells_what_a_page_asks(boss, parcel):
    shown = call(boss, "ship_html", parcel).data["answer_schema"]

    assert shown["properties"] == {
        "carrier": {
            "type": "string",
            "title": "Carrier",
            "oneOf": [{"const": "ups", "title": "UPS"}, {"const": "dhl", "title": "DHL"}],
        },
        "speed": {
            "type": "string",
            "oneOf": [{"const": "slow", "title": "Slow"}, {"const": "fast", "title": "Fast"}],
        },
        "gift": {"type": "boolean", "title": "Gift", "default": False},
        "extras": {
            "type": "array",
            "items": {
                "anyOf": [{"const": "bow", "title": "Bow"}, {"const": "card", "title": "Card"}]
            },
        },
        "weight": {"type": "number"},
        "day": {"type": "string", "format": "date"},
        "note": {"type": "string"},
    }
    assert shown["required"] == ["carrier"]


def test_a_page_that_only_asks_whether_needs_no_answer(boss, parcel):
    shown = call(boss, "confirm_only", parcel)
    before = status(parcel)
    done = call(boss, "confirm_only", parcel, confirmation=shown.data["confirmation"])

    assert "Lose 1 parcels?" in shown.data["page"]["text"]
    assert "answer_schema" not in shown.data
    assert before == "waiting"
    # The time on the page, which differs each time, is no part of what was confirmed.
    assert done.data["outcome"] == "done"
    assert status(parcel) == "lost"


def test_a_page_without_a_form_is_read_and_its_messages_are_heard(boss, parcel):
    answer = call(boss, "say_and_show", parcel)

    assert answer.data["outcome"] == "page"
    assert "Nothing to fill in, 1 parcels." in answer.data["page"]["text"]
    # The page showed the message, which takes it out of the queue.
    assert answer.data["messages"] == [{"level": "error", "text": "Said already."}]
    assert answer.is_error


@pytest.mark.thorough
@pytest.mark.needs("jazzmin")
def test_pages_of_a_skin_are_answered_all_the_same(boss, parcel, settings):
    settings.TEMPLATES = SKIN.templates(settings.TEMPLATES)

    shown = call(boss, "ship", parcel).data
    done = confirmed(boss, "ship", parcel, answer={"carrier": "dhl"})
    read = call(boss, "say_and_show", parcel).data
    stamped = confirmed(boss, "lead_within", parcel, answer={"stamp": "OK"})

    assert list(shown["answer_schema"]["properties"]) == ["carrier", "copies", "leaves_on"]
    assert done.data["messages"][0]["text"] == "1 by dhl, 1 copies."
    assert read["outcome"] == "page"
    assert stamped.data["messages"][0]["text"] == "Stamped 1 with OK."


def test_files_related_records_and_split_controls_are_answered(boss, parcel):
    driver = Driver.objects.create(name="Ada")
    vans = [Van.objects.create(plate=plate) for plate in "AB"]
    answer = {
        "photo": PHOTO,
        "driver": driver.pk,
        "vans": [van.pk for van in vans],
        "day": "2026-01-31T14:30:00+00:00",
    }

    shown = call(boss, "attach", parcel).data["answer_schema"]
    done = confirmed(boss, "attach", parcel, answer=answer)

    assert list(shown["properties"]) == ["photo", "driver", "vans", "day"]
    assert done.data["messages"][0]["text"] == "a.txt 5 Ada 2 2026-01-31T14:30:00+00:00"


@pytest.mark.filterwarnings("ignore:The 'get_valid_export_item_pks")
def test_an_export_of_import_export_brings_its_file(boss):
    vans = [Van.objects.create(plate=plate) for plate in ("A 1", "B 2", "C 3")]
    arguments = {"pks": [van.pk for van in vans[:2]]}

    shown = boss.call_tool("depot_van_export_admin_action", **arguments)
    formats = shown.data["answer_schema"]["properties"]["format"]["oneOf"]
    csv = next(one["const"] for one in formats if one["title"] == "csv")
    arguments = {**arguments, "answer": {"format": csv}}
    token = boss.call_tool("depot_van_export_admin_action", **arguments).data["confirmation"]
    result = boss.request(
        "tools/call",
        {
            "name": "depot_van_export_admin_action",
            "arguments": {**arguments, "confirmation": token},
        },
    )

    embedded = result["content"][1]["resource"]
    assert embedded["mimeType"] == "text/csv"
    assert embedded["uri"].startswith("django://actions/depot.van/export_admin_action/Van-")
    assert "A 1" in embedded["text"]
    assert "B 2" in embedded["text"]
    assert "C 3" not in embedded["text"]


# The parts


def test_forms_are_found_where_templates_have_them():
    form, formset = actions.ShipForm(), forms.formset_factory(actions.ShipForm, extra=2)()
    too_deep = {"down": {"here": form}}
    context = {
        "adminform": SimpleNamespace(form=form),
        "forms": [form],
        "too": too_deep,
        "text": "",
    }

    assert list(forms_in(context)) == [form, form]
    assert [row.prefix for row in forms_in({"formset": formset})] == ["form-0", "form-1"]


def test_the_text_of_a_page_is_that_of_its_content():
    html = (
        "<head><title>T</title></head><body><div>Menu</div><div id=content><script>x</script>"
        "<div>One</div> two <select><option>a</select></div><div>Footer</div>"
    )

    assert read_page(html).text == "One two"
    assert read_page("<p>All</p> of it").text == "All of it"
    assert len(read_page("word " * 1000).text) == LONGEST_TEXT + 1


def test_only_so_many_errors_are_told():
    fields = {f"f{n}": forms.CharField() for n in range(MOST_ERRORS + 5)}
    form = type("Long", (forms.Form,), fields)({})
    page = ActionPage(title="", text="", form=None, path="", forms={"": form})

    found = page.errors(rights=None)

    assert len(found) == MOST_ERRORS + 1
    assert found[""] == [{"message": "There are 5 more.", "code": "more"}]
