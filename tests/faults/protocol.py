"""Faults in the protocol layer. Each breaks a requirement of the specification."""

from __future__ import annotations

from tests.faults.model import Room

PROTOCOL = Room(
    tests=(
        "tests/protocol",
        "tests/handlers/test_lists.py",
        "tests/transports/test_endpoint.py",
    ),
    lines={
        "protocol/jsonrpc.py": [
            (
                'if value.get("jsonrpc") != "2.0":',
                'if "jsonrpc" not in value:',
                "jsonrpc:version-member",
            ),
            ("if type(value) is int:", "if isinstance(value, int):", "jsonrpc:request-id"),
            (
                '{"jsonrpc": "2.0", "id": request_id, "result": result}',
                '{"jsonrpc": "2.0", "id": str(request_id), "result": result}',
                "jsonrpc:id-repeated",
            ),
            (
                'wire: dict[str, Any] = {"jsonrpc": "2.0"}',
                'wire: dict[str, Any] = {"jsonrpc": "2.0", "result": {}}',
                "jsonrpc:result-or-error",
            ),
            (
                'if "id" not in value:',
                'if "id" not in value and method.startswith("notifications/"):',
                "jsonrpc:notification-unanswered",
            ),
            (
                '{"code": error.code, "message": error.message}',
                '{"code": str(error.code), "message": error.message}',
                "jsonrpc:error-shape",
            ),
            (
                'ProtocolError(PARSE_ERROR, "The body is not valid JSON."',
                'ProtocolError(INVALID_REQUEST, "The body is not valid JSON."',
                "jsonrpc:parse-error",
            ),
            (
                "return keys if depth <= max_depth else None",
                "return keys if depth <= max_depth + 1 else None",
                "jsonrpc:hostile-json",
            ),
            (
                "if not 1 <= len(value) <= max_batch:",
                "if not 0 <= len(value) <= max_batch:",
                "batch:length",
            ),
            (
                "if error.request_id is not None or not id_optional:",
                "if error.request_id or not id_optional:",
                "errors:id-echoed",
            ),
        ],
        "protocol/errors.py": [
            ("HEADER_MISMATCH = -32020", "HEADER_MISMATCH = -32050", "errors:reserved-codes")
        ],
        "protocol/revisions.py": [
            ("    batches=False,", "    batches=True,", "batch:refused"),
            ("ASSUMED = Revision.V2025_03_26", "ASSUMED = LATEST_LEGACY", "http:revision-assumed"),
            (
                "    disconnect_cancels=True,",
                "    disconnect_cancels=False,",
                "envelope:disconnect-cancels",
            ),
            ("priming_events=True,", "priming_events=False,", "resumption:priming-event"),
        ],
        "protocol/negotiation.py": [
            (
                "if revision is None or revision.era is Era.MODERN:",
                "if revision is None:",
                "lifecycle:version-offered",
            ),
            (
                'if not isinstance(params.get("capabilities"), dict):',
                'if not isinstance(params.get("capabilities", {}), dict):',
                "lifecycle:params-required",
            ),
            ("CAPABILITIES_KEY: dict}", "CAPABILITIES_KEY: object}", "envelope:meta-required"),
            (
                '{"supported": SUPPORTED, "requested": str(requested)[:80]}',
                '{"supported": SUPPORTED}',
                "envelope:unsupported-revision",
            ),
            (
                "if headers.get(names.METHOD) != request.method:",
                'if (headers.get(names.METHOD) or "").lower() != request.method.lower():',
                "envelope:method-header",
            ),
            (
                "matches = given is not None and",
                "matches = given is None or",
                "envelope:name-header",
            ),
            (
                "if headers.count(name) > 1:",
                "if headers.count(name) > 2:",
                "envelope:headers-once",
            ),
            (
                "    if REVISION_KEY in meta_of(request):",
                "    if REVISION_KEY in meta_of(request)"
                " and evidence_of(headers) is Evidence.MODERN:",
                "envelope:body-decides",
            ),
        ],
        "protocol/headers.py": [
            (
                'value.decode("latin-1").strip(" \\t")',
                'value.decode("latin-1")',
                "envelope:header-whitespace",
            ),
            (
                "if base64.b64encode(decoded).decode() != encoded:",
                "if encoded and not decoded:",
                "envelope:malformed-names",
            ),
        ],
        "protocol/methods.py": [
            (
                "status = 404 if revision.era is Era.MODERN else 200",
                "status = 200",
                "envelope:method-not-found",
            ),
            ('"ping": Method(eras=LEGACY, ', '"ping": Method(', "envelope:removed-methods"),
            ('"info", "notice", "warning"', '"info", "warning"', "logging:levels"),
        ],
        "protocol/render.py": [
            ("if features.result_type:", "if features.result_type and wire:", "results:type"),
            ('wire["cacheScope"] = "private"', 'wire["cacheScope"] = "public"', "caching:private"),
            (
                "if not revision.features.progress_message:",
                "if revision.features.progress_message is None:",
                "progress:message",
            ),
            ('{"notifications": honoured}', '{"notifications": {}}', "subscriptions:acknowledged"),
            (
                "SUBSCRIPTION_KEY: subscription}",
                "SUBSCRIPTION_KEY: str(subscription)}",
                "subscriptions:id",
            ),
        ],
        "handlers/lists.py": [("if key(item) > last]", "if key(item) >= last]", "lists:pages")],
        "protocol/sse.py": [
            (
                'return f"{stream}.{number}"',
                'return f"{stream}.{number // 2}"',
                "resumption:event-ids",
            ),
            (
                "str(milliseconds).encode()",
                "str(milliseconds // 1000).encode()",
                "resumption:retry",
            ),
        ],
    },
)
