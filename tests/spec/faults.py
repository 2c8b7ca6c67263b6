"""One-line faults in the protocol layer. Each breaks a requirement, and a test must notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Fault:
    """`old` stands exactly once in the file, and becomes `new`."""

    requirement: str
    #: Below mcp_django/protocol.
    file: str
    old: str
    new: str


FAULTS: tuple[Fault, ...] = (
    Fault(
        requirement="jsonrpc:version-member",
        file="jsonrpc.py",
        old='if value.get("jsonrpc") != "2.0":',
        new='if "jsonrpc" not in value:',
    ),
    Fault(
        requirement="jsonrpc:request-id",
        file="jsonrpc.py",
        old="if type(value) is int:",
        new="if isinstance(value, int):",
    ),
    Fault(
        requirement="jsonrpc:id-repeated",
        file="jsonrpc.py",
        old='{"jsonrpc": "2.0", "id": request_id, "result": result}',
        new='{"jsonrpc": "2.0", "id": str(request_id), "result": result}',
    ),
    Fault(
        requirement="jsonrpc:result-or-error",
        file="jsonrpc.py",
        old='wire: dict[str, Any] = {"jsonrpc": "2.0"}',
        new='wire: dict[str, Any] = {"jsonrpc": "2.0", "result": {}}',
    ),
    Fault(
        requirement="jsonrpc:notification-unanswered",
        file="jsonrpc.py",
        old='if "id" not in value:',
        new='if "id" not in value and method.startswith("notifications/"):',
    ),
    Fault(
        requirement="jsonrpc:error-shape",
        file="jsonrpc.py",
        old='{"code": error.code, "message": error.message}',
        new='{"code": str(error.code), "message": error.message}',
    ),
    Fault(
        requirement="jsonrpc:parse-error",
        file="jsonrpc.py",
        old='ProtocolError(PARSE_ERROR, "The body is not valid JSON."',
        new='ProtocolError(INVALID_REQUEST, "The body is not valid JSON."',
    ),
    Fault(
        requirement="jsonrpc:hostile-json",
        file="jsonrpc.py",
        old="return keys if depth <= max_depth else None",
        new="return keys if depth <= max_depth + 1 else None",
    ),
    Fault(
        requirement="batch:length",
        file="jsonrpc.py",
        old="if not 1 <= len(value) <= max_batch:",
        new="if not 0 <= len(value) <= max_batch:",
    ),
    Fault(
        requirement="errors:id-echoed",
        file="jsonrpc.py",
        old="if error.request_id is not None or not id_optional:",
        new="if error.request_id or not id_optional:",
    ),
    Fault(
        requirement="errors:reserved-codes",
        file="errors.py",
        old="HEADER_MISMATCH = -32020",
        new="HEADER_MISMATCH = -32050",
    ),
    Fault(
        requirement="batch:refused",
        file="revisions.py",
        old="    batches=False,",
        new="    batches=True,",
    ),
    Fault(
        requirement="http:revision-assumed",
        file="revisions.py",
        old="ASSUMED = Revision.V2025_03_26",
        new="ASSUMED = LATEST_LEGACY",
    ),
    Fault(
        requirement="envelope:disconnect-cancels",
        file="revisions.py",
        old="    disconnect_cancels=True,",
        new="    disconnect_cancels=False,",
    ),
    Fault(
        requirement="lifecycle:version-offered",
        file="negotiation.py",
        old="if revision is None or revision.era is Era.MODERN:",
        new="if revision is None:",
    ),
    Fault(
        requirement="lifecycle:params-required",
        file="negotiation.py",
        old='if not isinstance(params.get("capabilities"), dict):',
        new='if not isinstance(params.get("capabilities", {}), dict):',
    ),
    Fault(
        requirement="envelope:meta-required",
        file="negotiation.py",
        old="CAPABILITIES_KEY: dict}",
        new="CAPABILITIES_KEY: object}",
    ),
    Fault(
        requirement="envelope:unsupported-revision",
        file="negotiation.py",
        old='{"supported": SUPPORTED, "requested": str(requested)[:80]}',
        new='{"supported": SUPPORTED}',
    ),
    Fault(
        requirement="envelope:method-header",
        file="negotiation.py",
        old="if headers.get(names.METHOD) != request.method:",
        new='if (headers.get(names.METHOD) or "").lower() != request.method.lower():',
    ),
    Fault(
        requirement="envelope:name-header",
        file="negotiation.py",
        old="matches = given is not None and",
        new="matches = given is None or",
    ),
    Fault(
        requirement="envelope:headers-once",
        file="negotiation.py",
        old="if headers.count(name) > 1:",
        new="if headers.count(name) > 2:",
    ),
    Fault(
        requirement="envelope:body-decides",
        file="negotiation.py",
        old="    if REVISION_KEY in meta_of(request):",
        new="    if REVISION_KEY in meta_of(request) and evidence_of(headers) is Evidence.MODERN:",
    ),
    Fault(
        requirement="envelope:header-whitespace",
        file="headers.py",
        old='value.decode("latin-1").strip(" \\t")',
        new='value.decode("latin-1")',
    ),
    Fault(
        requirement="envelope:malformed-names",
        file="headers.py",
        old="if base64.b64encode(decoded).decode() != encoded:",
        new="if encoded and not decoded:",
    ),
    Fault(
        requirement="envelope:method-not-found",
        file="methods.py",
        old="status = 404 if revision.era is Era.MODERN else 200",
        new="status = 200",
    ),
    Fault(
        requirement="envelope:removed-methods",
        file="methods.py",
        old='"ping": Method(eras=LEGACY, ',
        new='"ping": Method(',
    ),
    Fault(
        requirement="results:type",
        file="render.py",
        old="if features.result_type:",
        new="if features.result_type and wire:",
    ),
    Fault(
        requirement="caching:private",
        file="render.py",
        old='wire["cacheScope"] = "private"',
        new='wire["cacheScope"] = "public"',
    ),
    Fault(
        requirement="progress:message",
        file="render.py",
        old="if not revision.features.progress_message:",
        new="if revision.features.progress_message is None:",
    ),
    Fault(
        requirement="lists:pages",
        file="../handlers/lists.py",
        old="if key(item) > last]",
        new="if key(item) >= last]",
    ),
    Fault(
        requirement="logging:levels",
        file="methods.py",
        old='"info", "notice", "warning"',
        new='"info", "warning"',
    ),
    Fault(
        requirement="resumption:event-ids",
        file="sse.py",
        old='return f"{stream}.{number}"',
        new='return f"{stream}.{number // 2}"',
    ),
    Fault(
        requirement="resumption:priming-event",
        file="revisions.py",
        old="priming_events=True,",
        new="priming_events=False,",
    ),
    Fault(
        requirement="resumption:retry",
        file="sse.py",
        old="str(milliseconds).encode()",
        new="str(milliseconds // 1000).encode()",
    ),
    Fault(
        requirement="subscriptions:acknowledged",
        file="render.py",
        old='{"notifications": honoured}',
        new='{"notifications": {}}',
    ),
    Fault(
        requirement="subscriptions:id",
        file="render.py",
        old="SUBSCRIPTION_KEY: subscription}",
        new="SUBSCRIPTION_KEY: str(subscription)}",
    ),
)
