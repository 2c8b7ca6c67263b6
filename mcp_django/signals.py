"""Signals of calls. Receivers run before the answer leaves, outside of the tool's transaction.

Each is sent with `sender=CallRecord`, and with

- `record`: a `mcp_django.models.CallRecord` that is not saved: who, what, how it ended;
- `context`: the call itself, as tools get it: `request`, `principal`, `client`.

They are sent with `send_robust`: what a receiver raises is logged by Django and changes nothing.
A receiver that is slow makes the call slow.
"""

from __future__ import annotations

from django.dispatch import Signal

#: A tool was called and done, failed or crashed: see `record.outcome`.
tool_called = Signal(use_caching=True)
#: The contents of a resource were read.
resource_read = Signal(use_caching=True)
#: A prompt was rendered.
prompt_rendered = Signal(use_caching=True)
#: A call was refused: the thing is not there for this caller, or a limit was reached.
call_denied = Signal(use_caching=True)
