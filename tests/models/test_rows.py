"""How rows of ours are called where people see them, and what their forms refuse."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from mcp_django.models import (
    CallRecord,
    ExposedModel,
    ExposedPrompt,
    ExposedTool,
    ExposureGeneration,
    IdempotentAnswer,
    PromptTemplate,
    PromptVersion,
    ServerSettings,
    SpentConfirmation,
    UserRestriction,
)


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (CallRecord(method="tools/call", target="echo"), "tools/call echo"),
        (CallRecord(method="ping"), "ping"),
        (ExposedModel(label="shop.order"), "shop.order"),
        (ExposedTool(name="echo"), "echo"),
        (ExposedPrompt(name="hello"), "hello"),
        (ServerSettings(), "default"),
        (ExposureGeneration(number=7), "default: 7"),
        (UserRestriction(user=User(username="ada")), "ada"),
        (IdempotentAnswer(tool="create_record", key="k1"), "create_record k1"),
        (PromptTemplate(name="greet"), "greet"),
        (PromptVersion(template=PromptTemplate(name="greet"), number=3), "greet 3"),
        (SpentConfirmation(digest="0" * 64, expires_at=timezone.now()), "0" * 12),
    ],
)
def test_a_row_is_called_by_what_it_is_about(row, name):
    assert str(row) == name


@pytest.mark.parametrize("names", ["status", [1], {"status": 1}])
def test_names_of_fields_are_a_list_of_texts(names):
    row = ExposedModel(label="shop.order", fields=names)

    with pytest.raises(ValidationError, match="Give names as a list"):
        row.clean_fields()


@pytest.mark.django_db
def test_a_level_that_does_not_exist_is_refused_by_the_database():
    with pytest.raises(IntegrityError), transaction.atomic():
        ExposedModel.objects.create(label="shop.order", level=6)


def test_what_is_right_is_accepted():
    ExposedModel(label="shop.order", fields=["id", "number"]).clean_fields()
    ExposedTool(name="echo", annotations={"readOnlyHint": False}).clean_fields()
