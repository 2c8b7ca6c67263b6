"""Faults in handlers, audit, subscriptions and auth."""

from __future__ import annotations

from tests.faults.model import Room

#: Pages, limits, and what is kept of a call.
HANDLERS = Room(
    tests=("tests/handlers", "tests/transports/test_listening.py"),
    lines={
        "handlers/lists.py": [
            (
                "bound_to=context.principal.key, max_age=LIFETIME",
                "bound_to=context.principal.key, max_age=365 * 86400",
            )
        ],
        "handlers/completion.py": [
            (
                "has_more=len(found.values) > MOST_VALUES",
                "has_more=len(found.values) >= MOST_VALUES",
            )
        ],
        "handlers/dispatch.py": [
            (
                "tool_calls.add(self.context.counted_as, -1)",
                "tool_calls.add(self.context.counted_as, 0)",
            )
        ],
        "handlers/recording.py": [
            ("wait=context.may_write or outcome in DENIALS", "wait=context.may_write"),
            (
                "return Outcome.CANCELLED if self.context.cancelled.is_set() else otherwise",
                "return otherwise",
            ),
        ],
        "handlers/subscriptions.py": [
            (
                "found = tuple(uri for uri in uris if verdicts.get(uri) is Verdict.VISIBLE)",
                "found = tuple(uri for uri in uris if uri in verdicts)",
            )
        ],
    },
)
#: Nothing that a record must not hold, and none lost that could be kept.
AUDIT = Room(
    tests=("tests/audit",),
    lines={
        "audit/entries.py": [
            ("names_credential(name) or name == ARGUMENT or", "names_credential(name) or")
        ],
        "audit/reasons.py": [("is not None and found[1] in keys:", "is not None:")],
        "audit/records.py": [
            ("if len(self._waiting) >= self.room or not self._start():", "if not self._start():")
        ],
    },
)
#: Who hears of what, and when.
SUBSCRIPTIONS = Room(
    tests=("tests/subscriptions",),
    lines={
        "subscriptions/admission.py": [
            (
                "if existence is None or not has_every_row(rights, exposure.model):",
                "if existence is None:",
            )
        ],
        "subscriptions/outbox.py": [
            ("if due <= now or is_control(change.topic):", "if due <= now:")
        ],
        "subscriptions/receivers.py": [
            (
                "frozenset(sender._meta.get_field(name).name for name in update_fields)",
                "frozenset(update_fields)",
            ),
            (
                'set(update_fields or ("any",)) != {"last_login"}',
                'bool(set(update_fields or ("any",)))',
            ),
        ],
        "subscriptions/topics.py": [
            (
                "yield Change(topic=object_topic(model, key), is_hidden=not is_seen)",
                "yield Change(topic=object_topic(model, key), is_hidden=False)",
            )
        ],
    },
)
#: Who somebody is, for how long, and how often.
AUTH = Room(
    tests=("tests/auth",),
    lines={
        "auth/authenticate.py": [
            (
                "if by_header_only and (now := cache_version()).own == before:",
                "if by_header_only and (now := cache_version()):",
            )
        ],
        "auth/authenticators.py": [
            ("return not rules or any(rule(user) for rule in rules)", "return True")
        ],
        "auth/jwt_bearer.py": [
            ('if {"at_hash", "c_hash"} & claims.keys() or use not in', "if use not in")
        ],
        "auth/redaction.py": [
            (
                "if len(items) == 2 and names_credential(items[0]):",
                "if len(items) == 3 and names_credential(items[0]):",
            )
        ],
        "handlers/tools.py": [
            ("if scope in principal.scopes.union(needed)]", "if scope in needed]")
        ],
        "auth/throttles.py": [
            (
                "IPv6Network((int(address), 64), strict=False)",
                "IPv6Network((int(address), 128), strict=False)",
            )
        ],
        "auth/windows.py": [
            ("max(0, totals.get(digest, count) - count)", "0"),
            ("totals.get(digest, 0) + count - window.sent", "totals.get(digest, 0) + count"),
        ],
    },
)
