from __future__ import annotations

import pytest

from mcp_django.exposure.registry import registry


@pytest.fixture
def offer():
    """Register endpoints until the test ends."""
    before = {"tool": set(registry.tools), "resource": set(registry.resources)}
    yield
    for kind, now in (("tool", registry.tools), ("resource", registry.resources)):
        for name in set(now) - before[kind]:
            registry.remove(kind, name)
