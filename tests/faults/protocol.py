"""Faults in the protocol layer. Each breaks a requirement of the specification."""

from __future__ import annotations

from tests.faults.model import Fault, Room

PROTOCOL = Room(
    tests=(
        "tests/protocol",
        "tests/handlers/test_lists.py",
        "tests/transports/http/test_endpoint.py",
    ),
    faults=(
        Fault(
            requirement="jsonrpc:version-member",
            file="protocol/jsonrpc.py",
            old='if value.get("jsonrpc") != "2.0":',
            new='if "jsonrpc" not in value:',
        ),
        Fault(
            requirement="jsonrpc:request-id",
            file="protocol/jsonrpc.py",
            old="if type(value) is int:",
            new="if isinstance(value, int):",
        ),
        Fault(
            requirement="jsonrpc:id-repeated",
            file="protocol/jsonrpc.py",
            old='{"jsonrpc": "2.0", "id": request_id, "result": result}',
            new='{"jsonrpc": "2.0", "id": str(request_id), "result": result}',
        ),
        Fault(
            requirement="jsonrpc:result-or-error",
            file="protocol/jsonrpc.py",
            old='wire: dict[str, Any] = {"jsonrpc": "2.0"}',
            new='wire: dict[str, Any] = {"jsonrpc": "2.0", "result": {}}',
        ),
        Fault(
            requirement="jsonrpc:notification-unanswered",
            file="protocol/jsonrpc.py",
            old='if "id" not in value:',
            new='if "id" not in value and method.startswith("notifications/"):',
        ),
        Fault(
            requirement="jsonrpc:error-shape",
            file="protocol/jsonrpc.py",
            old='{"code": error.code, "message": error.message}',
            new='{"code": str(error.code), "message": error.message}',
        ),
        Fault(
            requirement="jsonrpc:parse-error",
            file="protocol/jsonrpc.py",
            old='ProtocolError(PARSE_ERROR, "The body is not valid JSON."',
            new='ProtocolError(INVALID_REQUEST, "The body is not valid JSON."',
        ),
        Fault(
            requirement="jsonrpc:hostile-json",
            file="protocol/jsonrpc.py",
            old="return keys if depth <= max_depth else None",
            new="return keys if depth <= max_depth + 1 else None",
        ),
        Fault(
            requirement="batch:length",
            file="protocol/jsonrpc.py",
            old="if not 1 <= len(value) <= max_batch:",
            new="if not 0 <= len(value) <= max_batch:",
        ),
        Fault(
            requirement="errors:id-echoed",
            file="protocol/jsonrpc.py",
            old="if error.request_id is not None or not id_optional:",
            new="if error.request_id or not id_optional:",
        ),
        Fault(
            requirement="errors:reserved-codes",
            file="protocol/errors.py",
            old="HEADER_MISMATCH = -32020",
            new="HEADER_MISMATCH = -32050",
        ),
        Fault(
            requirement="batch:refused",
            file="protocol/revisions.py",
            old="    batches=False,",
            new="    batches=True,",
        ),
        Fault(
            requirement="http:revision-assumed",
            file="protocol/revisions.py",
            old="ASSUMED = Revision.V2025_03_26",
            new="ASSUMED = LATEST_LEGACY",
        ),
        Fault(
            requirement="envelope:disconnect-cancels",
            file="protocol/revisions.py",
            old="    disconnect_cancels=True,",
            new="    disconnect_cancels=False,",
        ),
        Fault(
            requirement="lifecycle:version-offered",
            file="protocol/negotiation.py",
            old="if revision is None or revision.era is Era.MODERN:",
            new="if revision is None:",
        ),
        Fault(
            requirement="lifecycle:params-required",
            file="protocol/negotiation.py",
            old='if not isinstance(params.get("capabilities"), dict):',
            new='if not isinstance(params.get("capabilities", {}), dict):',
        ),
        Fault(
            requirement="envelope:meta-required",
            file="protocol/negotiation.py",
            old="CAPABILITIES_KEY: dict}",
            new="CAPABILITIES_KEY: object}",
        ),
        Fault(
            requirement="envelope:unsupported-revision",
            file="protocol/negotiation.py",
            old='{"supported": SUPPORTED, "requested": str(requested)[:80]}',
            new='{"supported": SUPPORTED}',
        ),
        Fault(
            requirement="envelope:method-header",
            file="protocol/negotiation.py",
            old="if headers.get(names.METHOD) != request.method:",
            new='if (headers.get(names.METHOD) or "").lower() != request.method.lower():',
        ),
        Fault(
            requirement="envelope:name-header",
            file="protocol/negotiation.py",
            old="matches = given is not None and",
            new="matches = given is None or",
        ),
        Fault(
            requirement="envelope:headers-once",
            file="protocol/negotiation.py",
            old="if headers.count(name) > 1:",
            new="if headers.count(name) > 2:",
        ),
        Fault(
            requirement="envelope:body-decides",
            file="protocol/negotiation.py",
            old="    if REVISION_KEY in meta_of(request):",
            new="    if REVISION_KEY in meta_of(request)"
            " and evidence_of(headers) is Evidence.MODERN:",
        ),
        Fault(
            requirement="envelope:header-whitespace",
            file="protocol/headers.py",
            old='value.decode("latin-1").strip(" \\t")',
            new='value.decode("latin-1")',
        ),
        Fault(
            requirement="envelope:malformed-names",
            file="protocol/headers.py",
            old="if base64.b64encode(decoded).decode() != encoded:",
            new="if encoded and not decoded:",
        ),
        Fault(
            requirement="envelope:method-not-found",
            file="protocol/methods.py",
            old="status = 404 if revision.era is Era.MODERN else 200",
            new="status = 200",
        ),
        Fault(
            requirement="envelope:removed-methods",
            file="protocol/methods.py",
            old='"ping": Method(eras=LEGACY, ',
            new='"ping": Method(',
        ),
        Fault(
            requirement="results:type",
            file="protocol/render.py",
            old="if features.result_type:",
            new="if features.result_type and wire:",
        ),
        Fault(
            requirement="caching:private",
            file="protocol/render.py",
            old='wire["cacheScope"] = "private"',
            new='wire["cacheScope"] = "public"',
        ),
        Fault(
            requirement="progress:message",
            file="protocol/render.py",
            old="if not revision.features.progress_message:",
            new="if revision.features.progress_message is None:",
        ),
        Fault(
            requirement="lists:pages",
            file="handlers/lists.py",
            old="if key(item) > last]",
            new="if key(item) >= last]",
        ),
        Fault(
            requirement="logging:levels",
            file="protocol/methods.py",
            old='"info", "notice", "warning"',
            new='"info", "warning"',
        ),
        Fault(
            requirement="resumption:event-ids",
            file="protocol/sse.py",
            old='return f"{stream}.{number}"',
            new='return f"{stream}.{number // 2}"',
        ),
        Fault(
            requirement="resumption:priming-event",
            file="protocol/revisions.py",
            old="priming_events=True,",
            new="priming_events=False,",
        ),
        Fault(
            requirement="resumption:retry",
            file="protocol/sse.py",
            old="str(milliseconds).encode()",
            new="str(milliseconds // 1000).encode()",
        ),
        Fault(
            requirement="subscriptions:acknowledged",
            file="protocol/render.py",
            old='{"notifications": honoured}',
            new='{"notifications": {}}',
        ),
        Fault(
            requirement="subscriptions:id",
            file="protocol/render.py",
            old="SUBSCRIPTION_KEY: subscription}",
            new="SUBSCRIPTION_KEY: str(subscription)}",
        ),
    ),
)
