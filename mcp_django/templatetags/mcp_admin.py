"""What our pages in the admin take from it, whichever version of Django runs."""

from __future__ import annotations

from typing import Any

import django
from django import template

register = template.Library()

#: Since Django 6.1 breadcrumbs are a list, and its stylesheets know no others.
IS_LIST = django.VERSION >= (6, 1)


@register.inclusion_tag("admin/mcp_django/breadcrumbs.html")
def breadcrumbs(*steps: Any) -> dict[str, Any]:
    """The way to a page: address and text of each step, and last the name of the page itself.
    A step without an address is left out.
    """
    *links, title = steps
    pairs = zip(links[::2], links[1::2], strict=True)
    return {
        "links": [{"url": url, "text": text} for url, text in pairs if url],
        "title": title,
        "is_list": IS_LIST,
    }
