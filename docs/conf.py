"""Sphinx builds these pages with `make docs`. A warning is an error."""

from __future__ import annotations

project = "django-mcp-orm"
author = "The authors of django-mcp-orm"
extensions = ["myst_parser"]
exclude_patterns = ["_build", "examples"]
html_theme = "furo"
html_title = "django-mcp-orm"
# Headings that other pages link to with `page.md#heading`, as code hosts do.
myst_heading_anchors = 3
