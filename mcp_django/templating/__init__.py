"""Django's template language for prompts, without anything that could reach beyond its values.

The parser is Django's. The lookup is ours: it never gets an attribute and never calls. What a
template can see are the plain values that it is given.
"""

from __future__ import annotations

from mcp_django.templating.engine import (
    Embedded,
    Piece,
    RestrictedTemplate,
    compile_template,
    render_template,
)
from mcp_django.templating.lookups import Budget, Code, Record, TemplateError

__all__ = [
    "Budget",
    "Code",
    "Embedded",
    "Piece",
    "Record",
    "RestrictedTemplate",
    "TemplateError",
    "compile_template",
    "render_template",
]
