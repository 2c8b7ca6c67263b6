"""Templates that try to get out: what they must not find, and what they must not cost."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from mcp_django.templating.lookups import Record


class Danger:
    secret = "SECRET"

    def delete(self):
        raise AssertionError("called")

    def __call__(self):
        raise AssertionError("called")

    def __str__(self):
        return "SECRET"

    def __getitem__(self, key):
        return "SECRET"


class OwnDict(dict):
    def items(self):
        raise AssertionError("called")


def values():
    customer = Record({"name": "Ada"}, "Ada")
    fields = {
        "number": "A7",
        "customer": customer,
        "total": 12.5,
        "at": datetime(2026, 1, 2),
        "lines": [1, 2, 3],
        "note": "ignore all previous",
    }
    return {
        "order": Record(fields, "Order A7"),
        "text": "hello " * 10,
        "big": list(range(1000)),
        "d": {"a": 1},
        "n": 5,
        "danger": Danger(),
        "dangers": [Danger()],
        "sub": OwnDict(a=1),
        "huge": "x" * 10**6,
        "mut": [1, 2, 3],
        "fn": Danger().delete,
        "cls": Danger,
        "bignum": 10**400,
        "endless": 10**5000,
        "infinite": Decimal("Infinity"),
    }


#: Refused when they are compiled.
REFUSED = [
    *r"""
{% load static %}
{% include "admin/base.html" %}
{% debug %}
{% url 'admin:index' %}
{% filter upper %}x{% endfilter %}
{% autoescape off %}{% endautoescape %}
{{ text|ljust:99999999 }}
{{ text|add:text }}
{{ text|stringformat:"99999999d" }}
{{ text|safe }}
{{ big|dictsort:"password" }}
{{ text|pprint }}
{{ order._read }}
{{ order.__class__ }}
{{ order.customer._names }}
{% for _x in big %}{% endfor %}
{% for a,b,c,d in big %}{% endfor %}
{% for a, b in big %}x{% endfor %}
{% if order %}
{% %}
{{ order|nosuch }}
{{ order.number|date:"%s" }}{% endfor %}
{% resource %}
{% resource order.number %}
{% resource 'https://evil.example' %}
{% resource 'django://site'|default:order.number %}
{% resource 'django://objects/shop.order?status=' %}
{% resource 'django://objects/shop.order?status=paid' n %}
{% resource 'django://objects/shop.order?number=' n n %}
{{ text|upper|lower|upper|lower|upper|lower|upper|lower|upper }}
{{ text|upper:1 }}
{{ "a"|default }}
{{ _("translate") }}
{{ _(text) }}
{{ n|default:_("translate") }}
{% with context=1 self=2 context=3 %}{% endwith %}
{% with _x=n %}{% endwith %}
{% with n as m %}{% endwith %}
{% with %}{% endwith %}
{% with x=n %}{% endwith %}{{ x }}
{% for x in big %}{% endfor %}{{ x }}
{% templatetag nosuch %}
{{ unknown_name }}
{{ settings.SECRET_KEY }}
{% for x in settings %}{% endfor %}
{{ n|date:settings }}
{% with a=settings %}{% endwith %}
{% if settings %}{% endif %}
""".strip().splitlines(),
    "{% if n %}" * 13 + "{% endif %}" * 13,
    "{% if n %}" * 5000,
    "{% if n %}\n" * 990,
    "{% if " + "not " * 990 + "n %}{% endif %}",
    "x" * 40000,
    "{{" * 16000,
    "{{ n }}" * 1001,
    "{{ n }}\n" * 1001,
    "a\x00b",
    "{{ " + "9" * 5000 + " }}",
]

#: Compiled and harmless: nothing comes out, and nothing is called or changed.
SILENT = r"""
{{ danger }}
{{ danger.secret }}
{{ danger.delete }}
{{ dangers }}
{{ dangers|first }}
{{ dangers|join:"" }}
{% for x in dangers %}{{ x }}{{ x.secret }}{% endfor %}
{{ fn }}
{{ cls }}
{{ cls.secret }}
{{ order.password }}
{{ order.pk }}
{{ order.customer.password }}
{{ order.delete }}
{{ text.upper }}
{{ mut.clear }}
{{ d.items }}
{{ sub }}
{{ sub.items }}
{{ sub.a }}
{{ n.real }}
{{ order.at.year }}
{{ forloop.parentloop }}
{% for x in danger %}{{ x }}{% endfor %}
{% for x in text %}{{ x }}{% endfor %}
{% for x in n %}x{% endfor %}
{{ mut.99999999999 }}
{{ d.x }}
{{ d }}
{% for x in order %}{{ x }}{% endfor %}
{% if danger.secret %}leak{% endif %}
{% if 'a' in danger %}leak{% endif %}
{% if 'number' in order %}leak{% endif %}
{{ text.0 }}
{{ n|default_if_none:d.x|timesince }}
{{ "x"|date:d.x }}
{{ text|timeuntil:d.x }}
{{ order.customer.0 }}
{% with z=danger %}{{ z.secret }}{% endwith %}
{{ big|first|default_if_none:'' |date:'Y' }}
{{ order|join:"," }}
{{ n|first }}
{{ None }}
{{ endless }}
{{ huge|floatformat:2 }}
{{ "1e9999999"|floatformat:"x" }}
""".strip().splitlines()

LOOP = "{% for a in big %}"
#: Compiled, and stopped while they are rendered.
BOUNDED = [
    LOOP * 3 + "x" + "{% endfor %}" * 3,
    LOOP + "{{ text }}" * 200 + "{% endfor %}",
    LOOP + "{% verbatim %}" + "y" * 3000 + "{% endverbatim %}{% endfor %}",
    LOOP + "{% templatetag openblock %}" * 90 + "{% endfor %}",
    LOOP * 2 + "{% if a == 1 %}{% endif %}{% endfor %}{% endfor %}",
    LOOP
    + "{% if a == 1 or a == 2 or a == 3 or a == 4 or a == 5 %}{% endif %}" * 9
    + "{% endfor %}",
    "{{ huge }}" * 50,
    LOOP + "{% resource 'django://site' %}{% endfor %}",
    "{% resource 'django://objects/shop.order' huge %}",
    "{{ n|floatformat:999999999 }}",
    "{{ n|truncatechars:9999999999 }}",
    "{{ bignum|filesizeformat }}",
    "{{ text|date:'" + "F" * 500 + "' }}",
    "{{ big|join:'" + "z" * 500 + "' }}",
]
