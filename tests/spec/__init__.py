"""What the specification asks of a server, and which tests show it."""

from __future__ import annotations

import pytest

#: `@requirement("jsonrpc:request-id", ...)`: the test shows these requirements of the manifest.
requirement = pytest.mark.requirement
