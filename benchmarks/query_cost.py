"""What a read costs beside the same read by hand in the ORM, as ratios of CPU time.

python -m benchmarks.query_cost            # MCP_TEST_DB=postgresql for PostgreSQL
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

import msgspec  # noqa: E402
from django.contrib.auth import get_user_model  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import RequestFactory  # noqa: E402
from django.test.utils import setup_databases, teardown_databases  # noqa: E402

from mcp_django.exposure.options import ModelExposure  # noqa: E402
from mcp_django.exposure.permissions import Rights  # noqa: E402
from mcp_django.exposure.query.find import find_records, get_record  # noqa: E402
from mcp_django.exposure.registry import Registry  # noqa: E402
from mcp_django.principal import READ, Principal  # noqa: E402
from tests.shop.models import Customer, Order  # noqa: E402

FIELDS = ["id", "number", "total", "placed_at", "margin", "customer__name"]
ROUNDS, TIMES = 25, 60
encode = msgspec.json.Encoder().encode


class OrderExposure(ModelExposure):
    fields = FIELDS
    filter_fields = ("status", "total")

    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request)


registry = Registry()
registry.register(Order, OrderExposure)
registry.register(
    Customer,
    type("CustomerExposure", (OrderExposure,), {"fields": ["name"], "filter_fields": None}),
)
exposure = registry.exposures[Order]
user = get_user_model()(pk=1, is_superuser=True)
request = RequestFactory().get("/")
request.user = user  # type: ignore[assignment]
principal = Principal(user=user, scopes=frozenset({READ}), method="benchmark")


def fill() -> int:
    ada = Customer.objects.create(name="Ada", country="FR")
    start = datetime(2026, 1, 1, tzinfo=UTC)
    Order.objects.bulk_create(
        Order(
            number=f"N{n}",
            customer=ada,
            status="paid" if n % 3 else "new",
            total=n,
            placed_at=start + timedelta(hours=n),
        )
        for n in range(3000)
    )
    return Order.objects.get(number="N77").pk


def our_page() -> bytes:
    rights = Rights(request, principal, registry=registry)
    arguments = {
        "filters": {"status": "paid", "total__gte": 100},
        "order_by": ["-total"],
        "limit": 50,
    }
    return find_records(rights, exposure, arguments).encoded_records


def plain_page() -> bytes:
    rows = Order.objects.filter(status="paid", total__gte=100).order_by("-total", "id")
    return encode(list(rows.values(*FIELDS)[:51]))


def our_record(pk: int) -> bytes:
    return get_record(Rights(request, principal, registry=registry), exposure, pk)


def plain_record(pk: int) -> bytes:
    return encode(Order.objects.values(*FIELDS).get(pk=pk))


def cost(function: Callable[..., Any], *arguments: Any) -> float:
    start = time.process_time()
    for _ in range(TIMES):
        function(*arguments)
    return (time.process_time() - start) / TIMES * 1e6


def compare(name: str, ours: Callable[..., Any], plain: Callable[..., Any], *given: Any) -> None:
    pairs = [(cost(ours, *given), cost(plain, *given)) for _ in range(ROUNDS)]
    ratio = statistics.median(one / other for one, other in pairs)
    mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    sys.stdout.write(f"{name:8} {ratio:5.2f}   ours {mine:7.0f} us   plain {theirs:7.0f} us\n")


if __name__ == "__main__":
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        key = fill()
        sys.stdout.write(f"Django {django.__version__}, {connection.vendor}\n")
        for _ in range(2):
            compare("page", our_page, plain_page)
            compare("record", our_record, plain_record, key)
    finally:
        teardown_databases(databases, verbosity=0)
