"""CPU milliseconds of one `select_related().get()`, printed. Knows neither us nor the floor."""

from __future__ import annotations

import statistics
import time

import django

django.setup()

from benchmarks.calls import ROWS  # noqa: E402
from benchmarks.library.models import Book  # noqa: E402

TIMES, ROUNDS = 500, 9


def cost() -> float:
    before = time.process_time()
    for number in range(TIMES):
        Book.objects.select_related("author").get(pk=number * 37 % ROWS + 1)
    return (time.process_time() - before) * 1000 / TIMES


if __name__ == "__main__":
    cost()
    print(statistics.median(cost() for _ in range(ROUNDS)))
