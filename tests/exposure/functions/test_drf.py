from __future__ import annotations

import json
import sys
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.utils.translation import gettext_lazy as _
from rest_framework import exceptions, serializers

import mcp_django as mcp
from mcp_django.exposure.functions.drf import MOST_CHOICES, SchemaOf
from mcp_django.exposure.functions.site_schemas import RawSchema
from tests.exposure.function_tools import (
    accepts,
    call,
    context_of,
    data_of,
    giving,
    refusal,
    rights_of,
    text_of,
    tool_of,
)
from tests.exposure.functions.test_signatures import Colour
from tests.shop.models import Customer, Order


class Line(serializers.Serializer):
    sku = serializers.CharField(max_length=3)
    amount = serializers.IntegerField(min_value=1, default=1)


class OrderForm(serializers.Serializer):
    id = serializers.IntegerField(read_only=True)
    number = serializers.CharField(max_length=20, help_text=_("Yes"))
    status = serializers.ChoiceField(choices=Order.Status.choices, default="new")
    total = serializers.DecimalField(5, 2, required=False, allow_null=True)
    lines = Line(many=True, allow_empty=False)
    secret = serializers.CharField(write_only=True, required=False, allow_blank=True)
    owner = serializers.HiddenField(default="me")

    def validate_number(self, value: str) -> str:
        if value == "TAKEN":
            raise serializers.ValidationError("This number is taken.")
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["status"] == "paid" and "total" not in attrs:
            raise serializers.ValidationError("A paid order has a total.")
        return attrs


VALID = {"number": "A-1", "lines": [{"sku": "x"}]}


def place(arguments: dict[str, Any]) -> Any:
    """Place an order."""
    return arguments


def place_bound(form: OrderForm) -> str:
    """Place an order."""
    return f"{type(form).__name__} {form.validated_data['number']}"


# The schema of arguments


class OwnField(serializers.IntegerField):
    def to_internal_value(self, data: Any) -> Any:
        return data

    def to_representation(self, value: Any) -> Any:
        return {"own": value}


ORDERS = {"queryset": Order.objects.all()}
DECIMAL = {
    "anyOf": [{"type": "number"}, {"type": "string", "format": "decimal"}, {"type": "null"}]
}
LINE = {
    "type": "object",
    "properties": {
        "sku": {"type": "string", "maxLength": 3, "minLength": 1},
        "amount": {"type": "integer", "minimum": 1, "default": 1},
    },
    "required": ["sku"],
}


@pytest.mark.parametrize(
    ("field", "schema"),
    [
        (serializers.BooleanField(), {"type": "boolean"}),
        (serializers.BooleanField(allow_null=True), {"type": ["boolean", "null"]}),
        (
            serializers.FloatField(min_value=0.5, max_value=2),
            {"type": "number", "minimum": 0.5, "maximum": 2},
        ),
        (serializers.IntegerField(max_value=Decimal(7)), {"type": "integer", "maximum": 7.0}),
        (serializers.IntegerField(min_value=_("1")), {"type": "integer"}),
        (serializers.DateField(), {"type": "string", "format": "date"}),
        (serializers.DateField(input_formats=["%d.%m.%Y"]), {"type": "string"}),
        (serializers.DateTimeField(), {"type": "string", "format": "date-time"}),
        *(
            (kind(), {"type": "string"})
            for kind in (serializers.TimeField, serializers.DurationField)
        ),
        (serializers.UUIDField(), {"type": "string", "format": "uuid"}),
        (serializers.EmailField(), {"type": "string", "format": "email", "minLength": 1}),
        (serializers.URLField(allow_blank=True), {"type": "string", "format": "uri"}),
        (serializers.SlugField(min_length=2), {"type": "string", "minLength": 2}),
        (serializers.ChoiceField(["a"], allow_blank=True), {"enum": ["a", ""]}),
        (
            serializers.ChoiceField(["", "a"], allow_blank=True, allow_null=True),
            {"enum": ["", "a", None]},
        ),
        (serializers.ChoiceField([(Colour.RED, "Red"), (2, "Two")]), {"enum": ["red", 2]}),
        (serializers.ChoiceField([("Group", [("a", "A")])]), {"enum": ["a"]}),
        (serializers.ChoiceField([(n, n) for n in range(MOST_CHOICES + 1)]), {}),
        (
            serializers.MultipleChoiceField(choices=["a"]),
            {"type": "array", "items": {"enum": ["a"]}},
        ),
        (
            serializers.ListField(child=serializers.IntegerField(), min_length=2, max_length=3),
            {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3},
        ),
        (
            serializers.DictField(child=serializers.FloatField()),
            {"type": "object", "additionalProperties": {"type": "number"}},
        ),
        (serializers.JSONField(), {}),
        (serializers.CharField(allow_blank=True, default=print), {"type": "string"}),
        (serializers.CharField(allow_blank=True, default=object()), {"type": "string"}),
        (OwnField(help_text=_("Yes")), {"description": "Yes"}),
        (serializers.DecimalField(5, 2, required=False, allow_null=True), DECIMAL),
        (
            Line(many=True, allow_empty=False),
            {"type": "array", "items": {**LINE, "additionalProperties": False}, "minItems": 1},
        ),
        (serializers.PrimaryKeyRelatedField(**ORDERS), {"type": "integer"}),
        (
            serializers.PrimaryKeyRelatedField(**ORDERS, many=True),
            {"type": "array", "items": {"type": "integer"}},
        ),
        (serializers.PrimaryKeyRelatedField(**ORDERS, pk_field=serializers.CharField()), {}),
        (serializers.SlugRelatedField("number", **ORDERS), {}),
        (serializers.HyperlinkedRelatedField("order", **ORDERS), {"type": "string"}),
    ],
)
def test_each_kind_of_field_has_its_schema_and_no_query(field, schema):
    form = type("Form", (serializers.Serializer,), {"it": field})

    made = SchemaOf(reads=True).whole(form())

    assert made["properties"] == {"it": schema}
    assert RawSchema(made, what="The schema")


def test_what_a_model_means_is_read_by_the_schema_of_the_serializer():
    made = tool_of(place, serializer=OrderForm)
    schema = made.definition.input_schema
    empty = {"total": "", "status": None, "secret": ""}

    read = made.arguments.read(
        {"number": "A-1", "lines": '[{"sku": "x"}]', **empty}, context_of(rights_of())
    )

    assert [*schema["properties"]] == ["number", "status", "total", "lines", "secret"]
    assert accepts(schema, VALID)
    assert not accepts(schema, {"number": "A-1"})
    assert read["arguments"]["lines"] == [{"sku": "x", "amount": 1}]
    assert read["arguments"]["secret"] == ""
    assert read["arguments"]["status"] == "new"
    assert "total" not in read["arguments"]


def test_a_serializer_that_reads_in_its_own_way_takes_any_object():
    class Own(serializers.Serializer):
        def to_internal_value(self, data: Any) -> Any:
            return {"got": sorted(data)}

    made = tool_of(place, serializer=Own)

    assert made.definition.input_schema == {
        "type": "object",
        "properties": {},
        "required": [],
    }
    assert json.loads(text_of(call(made, {"b": 1, "a": 2}))) == {"got": ["a", "b"]}


# Arguments


def test_the_function_gets_what_the_serializer_has_read_with_its_request():
    class Asking(OrderForm):
        def validate(self, attrs: Any) -> Any:
            return {**super().validate(attrs), "user": str(self.context["request"].user)}

    result = call(tool_of(place, serializer=Asking), {**VALID, "total": "5.50"})

    read = {"number": "A-1", "status": "new", "total": "5.50", "owner": "me"}
    lines = [{"sku": "x", "amount": 1}]
    assert json.loads(text_of(result)) == {**read, "lines": lines, "user": "AnonymousUser"}


def test_the_function_may_take_the_serializer_itself_and_one_may_hold_its_own_kind():
    def any_serializer(form: serializers.Serializer) -> str:
        """Take any."""
        return type(form).__name__

    bound = tool_of(place_bound, serializer=OrderForm)
    nested = json.dumps(tool_of(place, serializer=Node).definition.input_schema)

    assert text_of(call(bound, VALID)) == "OrderForm A-1"
    assert text_of(call(tool_of(any_serializer, serializer=OrderForm), VALID)) == "OrderForm"
    # It ends somewhere.
    assert 3 < nested.count('"kids"') < 10


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"number": None}, "Argument number: This field may not be null."),
        ({"number": "TAKEN"}, "Argument number: This number is taken."),
        ({"status": "paid"}, "A paid order has a total."),
        ({"status": "x" * 9000}, "Argument status:"),
        ({"lines": []}, "Argument lines: This list may not be empty."),
        ({"lines": [{"sku": "x"}, {"sku": "long", "amount": 0}]}, "Argument lines[1].amount:"),
        ({"lines": {"sku": "x"}}, "Argument lines: Expected a list of items"),
        ({"lines": ["x"]}, "Argument lines[0]: Invalid data."),
        ({"lines": [{"sku": "x" * 5000}] * 500}, "Argument lines[9].sku:"),
        ({"nubmer": "x"}, "Unknown argument 'nubmer'. It takes: number, status, total, lines"),
        ({"lines": [{"skew": 1}]}, "Unknown argument 'skew' in lines[0]. It takes: sku, amount."),
        *(({name: 5}, f"Unknown argument '{name}'.") for name in ("id", "owner")),
        *(({"total": total}, "number out of range") for total in (float("nan"), 10**4000)),
    ],
)
def test_what_the_serializer_refuses_is_said_field_by_field(changed, sentence):
    said = refusal(call, tool_of(place, serializer=OrderForm), {**VALID, **changed})

    assert sentence in said
    assert len(said) < 4000


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (DjangoPermissionDenied("canary"), "You may not do this."),
        (exceptions.PermissionDenied("canary"), "You may not do this."),
        (exceptions.NotAuthenticated("canary"), "You may not do this."),
        (exceptions.NotFound("canary"), "There is no such object."),
        (exceptions.ValidationError("Not so."), "Not so."),
        (
            exceptions.ValidationError({"a": ["No.", "Never."], "b": {"c": "x"}}),
            "Argument a: No. Never. Argument b.c: x",
        ),
        (
            exceptions.ValidationError({"a": [], "lines": [{}, {"amount": ["No."]}]}),
            "Argument lines[1].amount: No.",
        ),
        (exceptions.Throttled(), "Request was throttled."),
        # A bug of the site.
        (exceptions.APIException("canary"), None),
    ],
)
@pytest.mark.parametrize("where", ["validate", "function"])
def test_exceptions_of_the_framework_are_refusals_wherever_they_come_from(error, sentence, where):
    class Form(serializers.Serializer):
        def validate(self, attrs: Any) -> Any:
            if where == "validate":
                raise error
            return attrs

    def act(arguments: dict[str, Any]) -> None:
        """Act."""
        raise error

    if sentence is not None:
        assert refusal(call, tool_of(act, serializer=Form), {}) == sentence
    else:
        with pytest.raises(exceptions.APIException):
            call(tool_of(act, serializer=Form))


# Results


class Buyer(serializers.ModelSerializer):
    class Meta:
        model = Customer
        fields = ["name", "country"]


class OrderView(serializers.ModelSerializer):
    customer = Buyer()
    label = serializers.SerializerMethodField()
    scan = serializers.FileField(required=False)

    class Meta:
        model = Order
        fields = ["id", "number", "customer", "status", "total", "placed_at", "label", "scan"]

    def get_label(self, order: Order) -> str:
        return f"Order {order.number}"


@pytest.fixture
def order(db):
    buyer = Customer.objects.create(name="Ada", country="GB", credit_rating=7)
    return Order.objects.create(number="A-1", customer=buyer, total="9.50", margin=3)


def test_an_object_is_answered_as_its_serializer_shows_it(order):
    made = giving(order, output_serializer=OrderView)

    data = data_of(call(made))

    schema = made.definition.output_schema
    assert data["customer"] == {"name": "Ada", "country": "GB"}
    assert (data["label"], data["total"], data["placed_at"]) == ("Order A-1", "9.50", None)
    assert schema["properties"]["id"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert schema["properties"]["placed_at"] == {
        "anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]
    }
    assert schema["required"] == ["number", "customer"]
    assert "margin" not in schema["properties"]
    assert accepts(schema, data)


def test_many_objects_are_a_list_in_a_result_and_what_is_only_written_is_not_shown(order):
    made = giving(lambda: Order.objects.all(), output_serializer=OrderView(many=True))

    data = data_of(call(made))

    assert [one["number"] for one in data["result"]] == ["A-1"]
    assert accepts(made.definition.output_schema, data)
    assert not accepts(made.definition.output_schema, {"result": [{}]})
    shown = SchemaOf(reads=False).whole(OrderForm())["properties"]
    assert set(shown) == {"id", "number", "status", "total", "lines"}
    # What is stored need not be one of today's choices.
    assert shown["status"] == {}


def test_a_serializer_that_writes_in_its_own_way_shows_any_object():
    class Own(serializers.Serializer):
        number = serializers.CharField()
        own = OwnField()

    class Wholly(Own):
        def to_representation(self, instance: Any) -> Any:
            return {"anything": 1}

    made = giving(SimpleNamespace(number="1", own=2), output_serializer=Own)

    assert SchemaOf(reads=False).whole(Own())["properties"]["own"] == {}
    assert data_of(call(made)) == {"number": "1", "own": {"own": 2}}
    assert SchemaOf(reads=False).whole(Wholly()) == {"type": "object"}
    assert data_of(call(giving(1, output_serializer=Wholly))) == {"anything": 1}


@pytest.mark.parametrize(
    "value", [None, SimpleNamespace(sku=None, amount=1), mcp.ToolResult(structured={"sku": 5})]
)
def test_what_breaks_the_promise_is_a_mistake_of_the_function(value):
    with pytest.raises(TypeError, match="promises what Line shows"):
        call(giving(value, output_serializer=Line))


@pytest.mark.parametrize(
    "field",
    [
        serializers.MultipleChoiceField(choices=["a"]),
        serializers.ListField(child=serializers.IntegerField(), min_length=5),
        serializers.DateTimeField(format="%Y"),
        # What is stored may be empty, or no address any more.
        serializers.EmailField(),
        serializers.URLField(),
    ],
)
def test_a_limit_of_what_is_read_is_none_of_what_is_shown(field):
    form = type("Form", (serializers.Serializer,), {"it": field})

    schema = SchemaOf(reads=False).whole(form())["properties"]["it"]

    assert "minItems" not in schema
    assert "format" not in schema
    assert schema.get("items", {}).get("enum") is None


# Registration


class Upload(serializers.Serializer):
    scan = serializers.FileField()


class Node(serializers.Serializer):
    name = serializers.CharField()

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "kids": Node(many=True, required=False)}


def takes_text(a: str) -> None: ...
def takes_two(a: dict[str, Any], b: int) -> None: ...
def takes_another(a: Line) -> None: ...


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (place, {"serializer": OrderForm()}, "must be a Serializer class"),
        (place, {"serializer": OrderForm(many=True)}, "must be a Serializer class"),
        (place, {"serializer": dict}, "must be a Serializer class"),
        (place, {"output_serializer": OrderForm()}, "or one made with many=True"),
        (
            place,
            {"output_serializer": serializers.ListSerializer(child=serializers.CharField())},
            "many=True",
        ),
        (
            takes_text,
            {"serializer": OrderForm},
            r"a: dict\[str, Any\], or, for the serializer itself, a: OrderForm",
        ),
        (takes_another, {"serializer": OrderForm}, "for the serializer itself"),
        (takes_two, {"serializer": OrderForm}, "exactly one parameter"),
        (place, {"serializer": OrderForm, "input_schema": {"type": "object"}}, "One must decide"),
        (place, {"output_serializer": Line, "output_schema": {}}, "One must decide"),
        (place, {"serializer": Upload}, "scan of Upload is a file"),
    ],
)
def test_a_mistake_is_told_when_the_tool_is_registered(function, options, message):
    with pytest.raises(ImproperlyConfigured, match=message):
        tool_of(function, **options)


@pytest.mark.parametrize("option", ["serializer", "output_serializer"])
def test_without_the_framework_the_site_is_told_what_to_install(monkeypatch, option):
    monkeypatch.setitem(sys.modules, "rest_framework", None)

    with pytest.raises(ImproperlyConfigured, match=r"Install \"django-mcp-orm\[drf\]\""):
        tool_of(place, **{option: OrderForm})
