"""Generic foreign keys: the model of the other record has a name, and not only a number."""

from __future__ import annotations

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from tests.clients import CheckedClient
from tests.workshop.models import Comment, Job, Part, Tag
from tests.writes.calls import changed, update

pytestmark = [pytest.mark.django_db, pytest.mark.exposure(Job=None)]

MODEL = "workshop.comment"


@pytest.fixture(autouse=True)
def comments(thing, tags):
    """About a thing, about a tag, and about a job, which nobody may see."""

    fields = ["id", "content_type", "object_id", "text"]
    options = {"fields": fields, "computed": None, "level": Level.WRITE}
    registry.register(Comment, type("CommentExposure", (ModelExposure,), options))
    yield [
        Comment.objects.create(target=one, text="x")
        for one in (thing, tags[0], Job.objects.create())
    ]
    registry.unregister(Comment)


def type_of(model):
    return ContentType.objects.get_for_model(model).pk


def test_records_and_groups_name_the_models_that_the_caller_sees(client, comments):
    labels = {
        str(type_of(type(comments[0].target))): "workshop.thing",
        str(type_of(Tag)): "workshop.tag",
    }

    page = client.data("find_records", model=MODEL, fields=["content_type", "target"])
    groups = client.data("aggregate_records", model=MODEL, group_by=["content_type"])
    record = client.data("get_record", model=MODEL, pk=comments[1].pk)

    assert page["labels"]["contenttypes.contenttype"] == labels
    assert [row[1] for row in page["rows"]] == [str(one.target) for one in comments]
    assert groups["labels"] == page["labels"]
    assert record["content_type"] == {"pk": type_of(Tag), "label": "workshop.tag"}


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"content_type": "workshop.tag"}, [1]),
        ({"content_type": " Workshop.Tag"}, [1]),
        ({"content_type__in": ["workshop.tag", "workshop.thing"]}, [0, 1]),
        ({"content_type": "workshop.job"}, "no model is called 'workshop.job'"),
        ({"content_type": "a\0.b"}, "content_type"),
        ({"content_type": "nowhere"}, "no model is called 'nowhere'"),
    ],
    ids=repr,
)
def test_filters_take_the_name_of_a_model_that_the_caller_sees(client, comments, filters, found):
    answer = client.call_tool("find_records", model=MODEL, filters=filters, fields=["id"])

    if isinstance(found, str):
        assert found in answer.text
    else:
        assert answer.data["rows"] == [[comments[at].pk] for at in found]


def test_a_call_names_so_many_models_and_no_more(client):
    names = [f"shop.model{number}" for number in range(21)]

    refused = client.refusal("find_records", model=MODEL, filters={"content_type__in": names})
    known = client.refusal(
        "find_records", model=MODEL, filters={"content_type__in": ["workshop.tag"] * 21 + ["x.y"]}
    )

    assert "no model is called 'shop.model0'" in refused
    assert "no model is called 'x.y'" in known


def test_the_records_of_a_list_are_read_together(client, comments, thing):
    def statements():
        with CaptureQueriesContext(connection) as queries:
            client.data("find_records", model=MODEL, fields=["id", "target"])
        return len(queries)

    statements()
    before = statements()
    Comment.objects.bulk_create([Comment(target=thing, text=f"{at}") for at in range(9)])

    assert statements() == before


def test_writes_take_the_name_of_a_model_that_the_caller_sees(client, comments):
    changed(update(client, comments[0], content_type="workshop.part", object_id=7))
    refused = update(client, comments[1], content_type="workshop.job")

    comments[0].refresh_from_db()
    assert (comments[0].content_type_id, comments[0].object_id) == (type_of(Part), 7)
    assert "content_type: No model is called 'workshop.job'." in refused.text


def test_a_caller_without_a_right_learns_no_name(make_user, comments):
    user = make_user("clerk", "view_comment", "view_remark", "view_tag", is_staff=True)

    page = CheckedClient(user=user).data("find_records", model=MODEL)

    assert list(page["labels"]["contenttypes.contenttype"].values()) == ["workshop.tag"]
