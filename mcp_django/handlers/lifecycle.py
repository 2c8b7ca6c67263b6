"""Before anything else: the legacy handshake, ping, and modern discovery."""

from __future__ import annotations

from typing import Any

from mcp_django.context import CallContext
from mcp_django.exposure.decisions import Decisions, decisions
from mcp_django.protocol.results import DiscoverResult, EmptyResult, InitializeResult
from mcp_django.protocol.session import negotiate


def initialize(context: CallContext, params: dict[str, Any]) -> InitializeResult:
    return InitializeResult(
        protocol_version=negotiate(params).value, instructions=instructions(context)
    )


def ping(context: CallContext, params: dict[str, Any]) -> EmptyResult:
    return EmptyResult()


def discover(context: CallContext, params: dict[str, Any]) -> DiscoverResult:
    return DiscoverResult(instructions=instructions(context))


def instructions(context: CallContext) -> str:
    """Those of staff, if they wrote some."""
    # An event loop has put there what is known, and cannot ask for more.
    known: Decisions | None = context.principal.kept.get(Decisions)
    return (known or decisions(context.principal.server)).instructions
