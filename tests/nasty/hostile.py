"""What callers try: paths that are not theirs, values no database takes, calls of odd shapes."""

from __future__ import annotations

from typing import Any

PATHS_TEXT = """
api_token api_token__startswith api_token__exact api_token__isnull api_token__in api_token__gt
margin margin__gte blob blob__isnull owner owner_id owner__pk owner__id owner__password
owner__password__startswith owner__username owner__salary__gt owner__manager__password
owner__orders__api_token owner__isnull customer__credit_rating customer__credit_rating__gte
customer__account_manager customer__account_manager__password customer__account_manager_id
customer__tenant customer__tenant_id customer__tenant__name customer__region__budget
customer__region customer__orders customer__orders__api_token customer__orders__number
customer__orders__isnull tags__internal_note tags__internal_note__startswith
tags__parent__internal_note tags__parent tags__parent_id tags__order tags__parent__parent__slug
lines__cost lines__order__api_token lines__order lines__order_id lines__cost__gt watch
watch__secret_reason watch__isnull watchers__password watchers__salary
watchers__manager__username notes__author__password notes__object_id notes__content_type
notes__content_type__model rushorder rushorder__order_ptr rushorder__order_ptr_id rushorder__pk
rushorder__api_token paidorder order_ptr tricky tricky__order tricky__order__api_token
number__regex number__iregex number__search number__trigram_similar number__unaccent
number__length number__lower number__backwards number__md5 number__contains__contains
number__exact__exact number__in__in number__isnull__isnull number__year number__date number__gt
number__range number__0 status__regex total__contains total__regex total__year
placed_at__date__year placed_at__time placed_at__second placed_at__iso_week placed_at__iso_year
placed_at__year__month placed_at__year__isnull placed_at__date__in placed_at__tzname
placed_at__regex placed_at__contains due__date due__hour payload__password payload__a__b
payload__0 payload__has_keys payload__contained_by
payload__exact payload payload__password__isnull attachment attachment__startswith
attachment__contains gift__in ref__contains ref__startswith ip__contains ip__startswith
took__year weight__regex pk__contains pk__regex id__customer customer__contains
customer__startswith customer__name__name customer__pk__pk__pk customer__customer
customer_id_id customer_id__name customer__country__customer customer__country__country
double__double objects _meta __class__ _state __dict__ _connector _negated children connector
negated self pk__pk content_type __ ____ _ number__ __number number____exact ___number
number___exact NUMBER Number n\xfcmber number\u200b \x00 number\x00 number;-- number"
number'OR'1'='1 number% %s %(x)s {0} {number} ${number} number.exact number/exact number:exact
order_by filter exclude annotate raw extra F('api_token') Q(api_token='x') lines__count
tags__count count Count number__isnull__exact __init__ delete DoesNotExist
"""
PATHS = PATHS_TEXT.split()
PATHS += ["", " ", "number\n", "number\t", "number\r\nstatus", " number", "number ", "a" * 199,
          "a" * 100_000, "__" * 90, "lines__order__" * 30 + "number",
          "customer__orders__" * 10 + "number", "\ud800", "number\ud800"]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, -1, 2**31, 2**31 - 1, 2**63, 2**63 - 1, -(2**63) - 1, 2**64, 10**30,
    10**400, 10**5000, 1.5, 1e308, -0.0, float("nan"), float("inf"), "", " ", "x", "\x00",
    "a\x00b", "\ud800", "\U0001f600", "a" * 101, "a" * 10**6, "%", "_", "\\", "%%%%", "'", '"',
    "--", ";", "' OR 1=1 --", "1; DROP TABLE nasty_order", "1e400", "1E-400", "NaN",
    "-Infinity", "sNaN", "0x10", "1_000", "١٢", "²", "½", "+1", " 1", "1 ", "1" * 70,
    "-" * 50, ".", "1.2.3", "9" * 19, "-9223372036854775809", "2026-02-30", "0001-01-01",
    "9999-12-31", "2026-13-01", "2026-01-01T00:00:00+99:00", "9999-12-31T23:59:59-12:00",
    "0001-01-01T00:00:00+12:00", "2026-01-01T25:00", "2026-03-29T02:30:00",
    "2026-10-25T02:30:00", "20260101", "2026-W01-1", "now", "today", "infinity", "-infinity",
    "epoch", "10000-01-01", "-0001-01-01", "2026-01-01 BC", "24:00", "12:00+01:00", "12:61",
    "P1Y", "P99999999999D", "-P1D", "999999999999 00:00:00", "1:2:3:4", "PT1e9S",
    "12345678123456781234567812345678", "{12345678-1234-5678-1234-567812345678}",
    "urn:uuid:12345678-1234-5678-1234-567812345678", "not-a-uuid", "1" * 33, "::1",
    "::ffff:1.2.3.4", "1.2.3.4/8", "fe80::1%eth0", "999.1.1.1", "0127.0.0.1", "1.2.3",
    [], [None], [[]], [1, 2], [1], ["x"] * 101, list(range(100)), [2**70], ["a", 1, None],
    [{}], {}, {"a": 1}, {"__class__": 1}, {"expression": "F"}, ["\x00"], ["\ud800"], [True],
    ["2026-01-01", "x"], "paid", ["paid"], "F('api_token')", "{{ x }}", "api_token", "\u202e",
    "İ", "ß", "\r\n", "a" * 100, "\U0001f600" * 100, b"x", (1, 2),
]  # fmt: skip
KEYS_TEXT = """
number number__in number__icontains number__startswith number__isnull status status__in total
total__gte total__range total__in quantity quantity__in quantity__lt quantity__range double
weight weight__gt weight__in gift gift__isnull placed_at placed_at__date placed_at__date__range
placed_at__year placed_at__month__in placed_at__range placed_at__hour placed_at__year__range
due due__in due__year due__week_day at at__gte at__hour took took__range ref ref__in ip ip__in
payload__isnull customer customer__in customer__isnull customer__name customer__country__in
tags tags__in tags__isnull tags__slug tags__slug__in lines lines__amount lines__amount__in
lines__sku__iexact watchers__username notes__text__contains pk id__in id__gt tricky__year
tricky__contains rushorder__courier tags__parent__slug due__week due__quarter placed_at__week__in
"""
KEYS = KEYS_TEXT.split()

ARGUMENTS: dict[str, list[Any]] = {
    "limit": [0, -1, True, "x", 1.5, [], -(10**30), -(10**5000)],
    "order_by": [
        "number", {"number": 1}, ["?"], [None], [1], [10**5000], ["--number"], ["-"], [""],
        ["+number"], ["number"] * 5, [["number"]], ["-?"], ["number desc"], ["payload"],
    ],
    "fields": [
        "number", [], [None], ["*"], ["number as x"], {"number": 1}, ["number"] * 65,
        [["number"]], 5,
    ],
    "filters": [
        "x", ["number"], 5, {1: 2}, {("a",): 1}, {f"k{n}": 1 for n in range(99)}, {None: 1},
    ],
    "any_of": [
        {"number": 1}, "x", [[]], [{}], [], [{"number": "a"}] * 9, [None], [{"any_of": []}],
    ],
    "search": [{}, ["a"], "\x00", "\ud800", "a" * 101, "a b c d e f g h i", True],
    "exclude": ["x", [1]],
    "cursor": ["", "x", "é", 5, [], {}, "a" * 9999, "a:b:c", "::"],
    "raw": ["x"], "using": ["other"], "model": [1], "": [1],
}  # fmt: skip
SHAPES = [{name: value} for name, values in ARGUMENTS.items() for value in values]
