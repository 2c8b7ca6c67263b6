"""The pages on which staff write prompts, in a browser without scripts."""

from __future__ import annotations

import json

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from mcp_django.exposure.prompts.documents import document_of, encode
from mcp_django.models import ExposedModel, PromptTemplate, PromptVersion
from tests.admin.looking import page_of
from tests.clients import browser_of
from tests.exposure.stored import ORDER, TONE, make_prompt, say

pytestmark = pytest.mark.django_db

LIST = reverse("admin:mcp_django_prompttemplate_changelist")
ADD = reverse("admin:mcp_django_prompttemplate_add")
UPLOAD = reverse("admin:mcp_django_prompttemplate_upload")


@pytest.fixture
def writer(make_user):
    verbs = ("view", "add", "change", "delete")
    names = [f"{verb}_prompttemplate" for verb in verbs]
    return make_user("writer", *names, "view_order", is_staff=True)


@pytest.fixture
def browser(writer):
    return browser_of(writer)


def rows(prefix, *given, initial=0):
    """The controls of a formset."""
    found = {
        f"{prefix}-TOTAL_FORMS": str(len(given)),
        f"{prefix}-INITIAL_FORMS": str(initial),
        f"{prefix}-MIN_NUM_FORMS": "0",
        f"{prefix}-MAX_NUM_FORMS": "20",
    }
    for at, row in enumerate(given):
        found |= {f"{prefix}-{at}-{name}": value for name, value in row.items()}
    return found


OF_ORDER = {"name": "order", "type": "object", "model": "shop.order"}


def controls(*messages, arguments=(), initial=(0, 0), **fields):
    made = [
        {"role": "user", **(one if isinstance(one, dict) else {"text": one})} for one in messages
    ]
    given = [{"type": "text", **one} for one in arguments]
    return {
        "name": "late",
        "enabled": "on",
        "based_on": "0",
        **rows("arguments", *given, initial=initial[0]),
        **rows("messages", *made, initial=initial[1]),
        **fields,
    }


def successful(page):
    """What a browser would send back from this page as it is."""
    form = page.context["adminform"].form
    found = {name: form[name].value() for name in ("name", "title", "description", "based_on")}
    found["enabled"] = "on" if form["enabled"].value() else ""
    for part in ("arguments", "messages"):
        widget = form.fields[part].widget
        formset = widget.formset_class(prefix=part, initial=form[part].value())
        for one in (formset.management_form, *formset):
            for bound in one:
                value = bound.value()
                if value is not None and value is not False:
                    found[bound.html_name] = "on" if value is True else value
    return {name: value for name, value in found.items() if value not in (None, "")}


def errors(response):
    """Everything that the page says is wrong."""
    form = response.context["adminform"].form
    found = [message for messages in form.errors.values() for message in messages]
    for part in ("arguments", "messages"):
        for one in form[part].value().forms:
            found += [message for messages in one.errors.values() for message in messages]
    return found


# Writing


def test_a_prompt_is_written_without_any_json(browser, writer):
    make_prompt("late", "Hi", server="other")
    sent = controls(
        "Draft a {{ tone }} mail\r\nabout {{ order.number }}.",
        {"role": "assistant", "resource": " django://objects/shop.order/{order} "},
        {"text": ""},
        arguments=[
            {"name": "order", "type": "object", "model": "shop.order", "required": "on"},
            {"name": "tone", "type": "choice", "choices": " warm \r\n\r\nfirm", "title": "Tone"},
            {"name": "note", "choices": "of another type", "model": "shop.order"},
            {},
        ],
        comment="First.",
    )

    page = browser.get(ADD)

    response = browser.post(ADD, sent)

    assert "beginning with a letter" in page.content.decode()
    assert response.status_code == 302, errors(response)
    template = PromptTemplate.objects.get(server="default")
    version = template.versions.get()
    assert (version.number, version.created_by, version.comment) == (1, writer, "First.")
    note = {"name": "note", "type": "text"}
    assert version.arguments == [ORDER, {**TONE, "title": "Tone"}, note]
    assert version.messages == [
        {"role": "user", "text": "Draft a {{ tone }} mail\nabout {{ order.number }}."},
        {"role": "assistant", "resource": "django://objects/shop.order/{order}"},
    ]


def test_a_page_that_is_sent_back_as_it_is_makes_no_version(browser):
    template = make_prompt(
        "late",
        "Hi {{ order }}",
        {"role": "assistant", "resource": "django://site"},
        arguments=[ORDER, TONE, {"name": "day", "type": "date", "description": "When."}],
        title="Late",
    )
    page = browser.get(page_of(template))

    response = browser.post(page_of(template), successful(page))

    assert response.status_code == 302, errors(response)
    assert template.versions.count() == 1
    assert LogEntry.objects.get().get_change_message() == "No fields changed."


LINES = ("Message 2, line", "Line")


@pytest.mark.parametrize(
    ("sent", "sentences"),
    [
        (
            controls("Fine.", "Hi\n\n{% load static %}"),
            [f"{line} 3: there is no tag 'load'; there are: " for line in LINES],
        ),
        (
            controls("Hi", arguments=[{"name": "a"}, {"name": "request"}]),
            ["Argument 2, name: 'request' cannot be the name of an argument"],
        ),
        (controls(), ["messages: write at least one"]),
        (controls("", arguments=[{"title": "x"}]), ["Correct the arguments below.", "This fiel"]),
        (controls("Hi", arguments=[{"name": "a", "type": "choice"}]), ["write the choices"]),
        (
            controls("Hi", arguments=[{"name": "a", "type": "object", "model": "shop.ledger"}]),
            ["is not one of the available choices"],
        ),
        (controls("Hi", name="Late order"), ["single underscores"]),
        (controls("Hi", name="taken"), ["There is a prompt of this name already."]),
        (controls(*["Hi"] * 21), ["Please submit at most 20 forms."]),
        ({"name": "late"}, ["ManagementForm data is missing"]),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_what_cannot_be_used_is_not_saved_and_the_page_says_where(browser, sent, sentences):
    make_prompt("taken", "Hi")

    response = browser.post(ADD, sent)

    assert response.status_code == 200
    found = errors(response)
    for sentence in sentences:
        assert any(sentence in one for one in found), found
    assert PromptTemplate.objects.count() == 1
    page = response.content.decode()
    assert "Please correct the error" in page


def test_a_model_that_is_exposed_no_more_stays_until_somebody_chooses_another(browser):
    template = make_prompt("late", "Hi", arguments=[ORDER])
    ExposedModel.objects.create(label="shop.order", level=0)
    page = browser.get(page_of(template))

    response = browser.post(page_of(template), {**successful(page), "messages-0-text": "Ho"})

    assert "shop.order (not exposed)" in page.content.decode()
    assert response.status_code == 302, errors(response)
    assert template.versions.first().arguments == [ORDER]


def test_of_two_who_write_at_once_both_are_versions_and_the_second_is_told(browser):
    template = make_prompt("late", "one", "two", arguments=[TONE, {"name": "a"}])
    sent = successful(browser.get(page_of(template)))
    say(template, "between")
    # Rows are ordered and removed.
    sent |= {"messages-0-text": "mine", "messages-0-ORDER": "9", "arguments-0-DELETE": "on"}

    response = browser.post(page_of(template), sent, follow=True)

    assert response.redirect_chain, errors(response)
    texts = [[one["text"] for one in version.messages] for version in template.versions.all()]
    assert texts == [["two", "mine"], ["between"], ["one", "two"]]
    assert [one["name"] for one in template.versions.first().arguments] == ["a"]
    assert LogEntry.objects.get().get_change_message().startswith("Changed arguments")
    assert "Somebody saved version 2 while you were writing." in response.content.decode()


def test_the_page_says_which_names_messages_can_print_and_of_what_type_arguments_are(
    browser, make_user
):
    reader = browser_of(make_user("reader", "view_prompttemplate", is_staff=True))
    template = make_prompt("late", "Hi", arguments=[ORDER, TONE])

    page = browser.get(page_of(template)).content.decode()

    for name in ("order", "order.number", "order.get_status_display", "tone"):
        assert f"<code>{{{{ {name} }}}}</code>" in page
    assert "margin" not in page
    assert "argument tone: choice, optional" in reader.get(page_of(template)).content.decode()


# The list


def test_the_list_says_who_gets_what_and_what_nobody_gets(browser, add_prompt, writer):
    def hidden():
        """Of code."""
        return "code"

    add_prompt(hidden)
    group = Group.objects.create(name="Support")
    for name in ("shop_greeting", "hidden", "fine"):
        make_prompt(name, "Hi")
    make_prompt("off", "Hi", enabled=False, groups=[group])
    PromptTemplate.objects.create(name="empty")
    broken = PromptTemplate.objects.create(name="broken")
    PromptVersion.objects.create(template=broken, number=7, messages=[], created_by=writer)

    page = browser.get(LIST)
    by_name = {one.name: one for one in page.context["cl"].result_list}
    admin = page.context["cl"].model_admin

    assert {name: admin.state(one) for name, one in by_name.items()} == {
        "shop_greeting": "Hidden: there is a prompt of this name in a file, and that one is used.",
        "hidden": "Hidden: there is a prompt of this name in code, and that one is used.",
        "fine": "On",
        "off": "Off",
        "empty": "Nobody gets it: it says nothing yet.",
        "broken": "Nobody gets it: messages: write at least one",
    }
    assert admin.audience(by_name["off"]) == "Support"
    assert admin.audience(by_name["fine"]) == "everybody"
    assert admin.newest(by_name["empty"]) == "none"
    assert admin.newest(by_name["broken"]).endswith("by writer")
    assert "Hidden: there is a prompt" in browser.get(page_of(by_name["hidden"])).content.decode()


def test_prompts_are_switched_on_and_off_in_the_list(browser):
    one, two = make_prompt("one", "Hi"), make_prompt("two", "Hi", enabled=False)

    def run(action):
        chosen = [one.pk, two.pk]
        return browser.post(LIST, {"action": action, "_selected_action": chosen}, follow=True)

    assert "Prompts switched off: 1." in run("disable_selected").content.decode()
    assert not PromptTemplate.objects.filter(enabled=True).exists()
    run("enable_selected")
    assert PromptTemplate.objects.filter(enabled=True).count() == 2
    assert LogEntry.objects.first().get_change_message() == "Switched on."


# Versions


def test_versions_show_what_changed_and_any_of_them_comes_back(browser, writer):
    day = {"name": "day", "type": "date", "title": "Day", "description": "When."}
    template = make_prompt("late", "one <b>", arguments=[TONE])
    say(template, "two", {"role": "assistant", "resource": "django://site"}, arguments=[TONE, day])

    page = browser.get(page_of(template, "versions")).content.decode()
    response = browser.post(page_of(template, "versions"), {"restore": "1"}, follow=True)

    lines = ["  choice: warm", "+argument day: date, optional", "+  title: Day"]
    lines += ["+  description: When.", "-  one &lt;b&gt;", "+  two", "+assistant:"]
    lines += ["+  resource django://site"]
    assert [line for line in lines if line not in page] == []
    assert "Restore version 1" in page
    assert "Restore version 2" not in page
    assert "Restored version 1 as version 3." in response.content.decode()
    version = template.versions.first()
    assert version.messages == [{"role": "user", "text": "one <b>"}]
    assert (version.created_by, version.comment) == (writer, "Version 1 again.")
    assert LogEntry.objects.get().get_change_message() == "Restored version 1 as version 3."


@pytest.mark.parametrize("number", ["1", "3", "9", "0", "-1", "x", "", "9" * 30])
def test_what_is_there_already_or_is_no_version_of_a_prompt_changes_nothing(browser, number):
    template = PromptTemplate.objects.create(name="late")
    PromptVersion.objects.create(template=template, number=1, messages=[{"text": "{% x %}"}])
    say(template, "two")
    say(template, "three")

    response = browser.post(page_of(template, "versions"), {"restore": number}, follow=True)

    is_version = number in ("1", "3")
    assert response.status_code == (200 if is_version else 404)
    broken = "Version 1 cannot be used any more. Message 1, line 1:"
    assert (broken in response.content.decode()) is (number == "1")
    assert template.versions.count() == 3
    assert not LogEntry.objects.exists()


def test_many_versions_have_pages_and_none_has_a_sentence(browser):
    template = PromptTemplate.objects.create(name="late")
    assert (
        "There is no version yet." in browser.get(page_of(template, "versions")).content.decode()
    )
    for number in range(25):
        say(template, str(number))

    first = browser.get(page_of(template, "versions")).content.decode()
    second = browser.get(page_of(template, "versions") + "?page=2").content.decode()

    assert "Earlier versions" in first
    assert "Version 25 " in first
    assert "Later versions" in second
    assert "What changed since version 4" in second
    assert 'id="version-1"' in second


@pytest.mark.parametrize("page", ["versions", "preview", "download"])
def test_a_page_of_no_prompt_is_not_there(browser, make_user, page):
    address = reverse(f"admin:mcp_django_prompttemplate_{page}", args=[99])
    stranger = browser_of(make_user("stranger", is_staff=True))

    assert browser.get(address).status_code == 404
    assert stranger.get(address).status_code == 403
    assert Client().get(address).status_code == 302


# Files


def post_file(browser, content, **fields):
    file = SimpleUploadedFile("prompts.json", content, content_type="application/json")
    return browser.post(UPLOAD, {"file": file, **fields}, follow=True)


def test_a_download_can_be_uploaded_elsewhere(browser):
    template = make_prompt("late", "Hi {{ order }}", arguments=[ORDER])
    other = make_prompt("other", "Ho")
    response = browser.get(page_of(template, "download"))
    both = browser.post(
        LIST, {"action": "download_selected", "_selected_action": [template.pk, other.pk]}
    )
    PromptTemplate.objects.all().delete()

    assert response["Content-Disposition"] == 'attachment; filename="late.json"'
    assert [one["name"] for one in json.loads(both.content)] == ["late", "other"]
    page = post_file(browser, response.content)
    assert "Uploaded. late: new." in page.content.decode()
    post_file(browser, both.content, replace="on")
    assert set(PromptTemplate.objects.values_list("name", flat=True)) == {"late", "other"}
    assert PromptTemplate.objects.get(name="late").versions.count() == 1
    assert LogEntry.objects.count() == 2


def test_an_upload_never_replaces_without_being_told_to(browser, writer, make_user):
    other = make_prompt("late", "There", server="other")
    template = make_prompt("late", "Hi", title="Late", description="Old")
    # As Windows begins files.
    content = b"\xef\xbb\xbf" + encode({"name": "late", "messages": [{"text": "Ho"}]})
    renamed = encode({**document_of(template), "title": "New"})

    refused = post_file(browser, content).content.decode()
    assert "There are prompts of these names already: late. Nothing was changed." in refused
    assert template.versions.count() == 1
    adder = make_user("adder", "view_prompttemplate", "add_prompttemplate", is_staff=True)
    assert post_file(browser_of(adder), content, replace="on").status_code == 403
    assert template.versions.count() == 1
    post_file(browser, renamed, replace="on")
    template.refresh_from_db()
    assert (template.title, template.versions.count()) == ("New", 1)
    page = post_file(browser, content, replace="on").content.decode()

    template.refresh_from_db()
    assert "late: changed" in page
    assert (template.title, template.description) == ("", "")
    # What was said before stays, and that of another server.
    assert [one.messages[0]["text"] for one in template.versions.all()] == ["Ho", "Hi"]
    assert other.versions.get().messages[0]["text"] == "There"
    assert template.versions.first().created_by == writer
    assert LogEntry.objects.first().get_change_message() == "Replaced by an upload."


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"{", "This is not JSON"),
        (b'[{"name": "a", "messages": [{"text": "Hi"}]}, {"name": "b", "messages": []}]', "write"),
        (b"", "The submitted file is empty."),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_an_upload_that_cannot_be_used_changes_nothing(browser, content, sentence):
    page = post_file(browser, content).content.decode()

    assert sentence in page
    assert not PromptTemplate.objects.exists()
    assert not LogEntry.objects.exists()


# Names after the dot


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Hi\n{{ order.nmber }}", "no nmber that prompts may use; did you mean order.number?"),
        ("{% if order.customer.nme %}x{% endif %}", "no customer.nme that prompts may use"),
        ("{{ order|default:order.zzz }}", "no zzz that prompts may use; it has: pk, id, number,"),
        ("{{ order.number.upper }}", "no number.upper that prompts may use"),
        ("{{ order.__class__ }}", "underscores"),
        *(
            (text, "")
            for text in (
                "{{ order }} {{ order.pk }} {{ order.number }} {{ order.get_status_display }}",
                "{{ order.customer }} {{ order.customer.pk }}",
                "{% if order.total > 5 %}{{ order.placed_at|date:'Y' }}{% endif %}",
                "{% with order='mine' %}{{ order.whatever }}{% endwith %}",
                "{% for order in order.customer %}{{ order.whatever }}{% endfor %}",
                "{{ note.whatever }}",
            )
        ),
    ],
)
def test_a_name_that_prints_nothing_is_not_saved_and_others_are(browser, text, sentence):
    response = browser.post(ADD, controls(text, arguments=[OF_ORDER, {"name": "note"}]))

    if not sentence:
        assert response.status_code == 302, errors(response)
        return
    line = 1 + text.count("\n")
    assert sentence in errors(response)[0]
    assert errors(response)[0].startswith(f"Message 1, line {line}: ")
    assert not PromptTemplate.objects.exists()


def test_a_hidden_field_and_a_missing_one_are_refused_in_the_same_words(browser):
    ExposedModel.objects.create(label="shop.order", fields=["number"])
    sentences = {}
    # Staff took the total out, code does not show the margin, and there is no marfin.
    for name in ("total", "margin", "marfin"):
        response = browser.post(ADD, controls(f"{{{{ order.{name} }}}}", arguments=[OF_ORDER]))
        sentences[name] = [text.replace(name, "NAME") for text in errors(response)]

    assert sentences["total"] == sentences["margin"] == sentences["marfin"]
    assert "shop.order has no NAME that prompts may use" in sentences["margin"][0]
    assert not PromptTemplate.objects.exists()
