"""What a tool or a prompt may be called."""

from __future__ import annotations

import re

from django.core.exceptions import ImproperlyConfigured

LONGEST_NAME = 40
# Clients put prefixes before names and cut at 64; hyphens, dots and doubled underscores are their
# own separators. One name that a client dislikes can cost the site the whole connector.
TOOL_NAME = re.compile(rf"[a-z][a-z0-9_]{{0,{LONGEST_NAME - 1}}}")


def check_tool_name(name: str) -> str:
    """The name, if every client accepts it. Raises ImproperlyConfigured with a name that is."""
    return check_name(name, kind="tool")


def check_name(name: str, *, kind: str) -> str:
    if TOOL_NAME.fullmatch(name) and "__" not in name:
        return name
    raise ImproperlyConfigured(
        f"{name!a} cannot be the name of a {kind}: use a-z, 0-9 and single underscores, a "
        f"letter first, at most {LONGEST_NAME} characters. "
        f'For example @mcp.{kind}(name="{suggest_tool_name(name)}").'
    )


def suggest_tool_name(name: str) -> str:
    """A name near to this one that `check_tool_name` accepts."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    plain = re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_0123456789")
    return plain[:LONGEST_NAME].rstrip("_") or "my_tool"
