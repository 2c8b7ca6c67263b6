"""Public usage that a type checker must accept. Never imported: `mypy --strict` reads it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, assert_type

import msgspec
from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

import mcp_django as mcp
from tests.shop.models import Order


@mcp.register(Order)
class OrderExposure(mcp.ModelExposure):
    fields = ["id", "status"]
    search_fields = ("status",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Order]:
        return Order.objects.all()


class Revenue(msgspec.Struct):
    total: Decimal
    days: int


@dataclass
class Count:
    number: int


@mcp.tool
def count(status: str = "paid") -> Count:
    """How many orders have a status."""
    return Count(number=Order.objects.filter(status=status).count())


@mcp.tool(read_only=True, permission="shop.view_order", title=_("Revenue"))
def revenue(
    request: HttpRequest,
    context: mcp.Context,
    since: date,
    limit: Annotated[int, msgspec.Meta(ge=1)] = 10,
) -> Revenue:
    """What was sold since a day.

    Args:
        since: The first day.
        limit: How many days at most.
    """
    context.progress(1, total=limit, message="counting")
    if not request.user.is_active:
        raise mcp.ToolError("Ask an administrator.")
    return Revenue(total=Decimal(0), days=limit)


@mcp.tool(destructive=True, permission=lambda request: request.user.is_superuser)
async def purge(context: mcp.Context | None = None) -> None:
    """Delete what nobody needs."""


@mcp.tool(description=_("Where an order is shown."), read_only=True, open_world=False)
def link(pk: int) -> mcp.ResourceLink:
    return mcp.ResourceLink(uri=f"django://objects/shop.order/{pk}", name=f"Order {pk}")


@mcp.tool(name="ship", destructive=False, idempotent=True, atomic=True)
def ship_order(pk: int) -> mcp.ToolResult:
    """Mark an order as shipped."""
    return mcp.ToolResult(structured={"pk": pk}, has_structured=True)


@mcp.prompt
def hello(city: str = "Bonn") -> str:
    """Say hello."""
    return f"Hello {city}"


def cities(request: HttpRequest, value: str) -> list[str]:
    return [value]


@mcp.prompt(title=_("Brief"), permission="shop.view_order", completions={"city": cities})
async def brief(context: mcp.Context, city: str, day: date | None = None) -> mcp.PromptMessage:
    """Brief somebody."""
    return mcp.PromptMessage(role="assistant", content=mcp.Text(f"{city} on {day}"))


assert_type(hello("Ulm"), str)


@mcp.resource(
    "shop://reports/{year}",
    title=_("Report"),
    annotations=mcp.Annotations(audience=["user"], priority=0.5),
    last_modified=lambda request: datetime.now(UTC),
    permission="shop.view_order",
    completions={"year": ["2026"], "month": lambda request, value, given: [given["year"]]},
)
def report(request: HttpRequest, year: int) -> Revenue:
    """What was sold in a year."""
    return Revenue(total=Decimal(0), days=year)


@mcp.resource("shop://logo", mime_type="image/png", size=3)
async def logo() -> list[mcp.ResourceContents]:
    """The logo of the shop."""
    return [mcp.ResourceContents(uri="shop://logo", mime_type="image/png", blob=b"png")]


assert_type(report(HttpRequest(), 2026), Revenue)


@mcp.tool(
    input_schema={"type": "object", "properties": {"pk": {"type": "integer"}}},
    output_schema={"type": "object"},
)
def raw(request: HttpRequest, arguments: dict[str, Any]) -> dict[str, Any]:
    """Take what a schema allows."""
    return arguments


class RefundForm(forms.Form):
    amount = forms.DecimalField()


@mcp.tool(asks=True, title=_("Refund"))
def refund(ctx: mcp.Context, number: str) -> str:
    """Refund an order."""
    try:
        with ctx.together():
            answer = ctx.ask("amount", RefundForm, _("How much?"))
            roots = ctx.roots()
    except mcp.Declined as declined:
        return "No." if declined.is_explicit else "Perhaps."
    assert_type(roots, list[mcp.Root])
    if ctx.can_sample:
        said = ctx.sample("letter", ["Write a letter."], max_tokens=100, temperature=0.5)
        assert_type(said, mcp.SampledMessage)
    if ctx.can_ask_url:
        ctx.ask_url("page", "https://shop.example.com/refund", _("Your account, please."))
    ctx.confirm(f"Refund {answer['amount']}?", digest=number)
    ctx.log("warning", {"refunded": number}, logger="shop")
    return "Done."


@mcp.tool(asks=True, destructive=True)
async def refund_later(ctx: mcp.Context, number: str) -> str:
    """Refund an order."""
    answer = await ctx.aask("amount", RefundForm(initial={"amount": 5}), "How much?")
    await ctx.aask_url("page", "https://shop.example.com/refund")
    await ctx.aconfirm(_("Refund it?"), digest=str(answer["amount"]))
    return "Done."


@mcp.prompt(asks=True)
def letter(ctx: mcp.Context) -> str:
    """Write a letter."""
    return str(ctx.ask("amount", RefundForm))


@mcp.resource("shop://asked", asks=True)
def asked(ctx: mcp.Context) -> str:
    """What a person says."""
    return str(ctx.ask("amount", RefundForm))


assert_type(raw(HttpRequest(), {}), dict[str, Any])
assert_type(count("open"), Count)
assert_type(ship_order(1), mcp.ToolResult)
options: dict[str, Any] = {"read_only": True}
mcp.unregister(Order)
assert_type(mcp.is_registered(Order), bool)

Order.objects.filter(status="new").update(status="paid")
mcp.touch(Order, Order.objects.filter(status="paid"), Order(), "shop://reports/2026")
mcp.touch(Order.objects, using="default")
assert_type(mcp.flush(), bool)
assert_type(mcp.flush(timeout=0.5), bool)
