"""Faults in handlers, audit, subscriptions and auth."""

from __future__ import annotations

from tests.faults.model import Fault, Room

#: Pages, limits, and what is kept of a call.
HANDLERS = Room(
    tests=("tests/handlers", "tests/transports/streams/test_listening.py"),
    faults=(
        Fault(
            file="handlers/lists.py",
            old="bound_to=context.principal.key, max_age=LIFETIME",
            new="bound_to=context.principal.key, max_age=365 * 86400",
        ),
        Fault(
            file="handlers/completion.py",
            old="has_more=len(found.values) > MOST_VALUES",
            new="has_more=len(found.values) >= MOST_VALUES",
        ),
        Fault(
            file="handlers/dispatch.py",
            old="tool_calls.add(self.context.counted_as, -1)",
            new="tool_calls.add(self.context.counted_as, 0)",
        ),
        Fault(
            file="handlers/recording.py",
            old="wait=context.may_write or outcome in DENIALS",
            new="wait=context.may_write",
        ),
        Fault(
            file="handlers/recording.py",
            old="return Outcome.CANCELLED if self.context.cancelled.is_set() else otherwise",
            new="return otherwise",
        ),
        Fault(
            file="handlers/subscriptions.py",
            old="found = tuple(uri for uri in uris if verdicts.get(uri) is Verdict.VISIBLE)",
            new="found = tuple(uri for uri in uris if uri in verdicts)",
        ),
    ),
)
#: Nothing that a record must not hold, and none lost that could be kept.
AUDIT = Room(
    tests=("tests/audit",),
    faults=(
        Fault(
            file="audit/entries.py",
            old="names_credential(name) or name == ARGUMENT or",
            new="names_credential(name) or",
        ),
        Fault(
            file="audit/reasons.py",
            old="is not None and found[1] in keys:",
            new="is not None:",
        ),
        Fault(
            file="audit/records.py",
            old="if len(self._waiting) >= self.room or not self._start():",
            new="if not self._start():",
        ),
    ),
)
#: Who hears of what, and when.
SUBSCRIPTIONS = Room(
    tests=("tests/subscriptions",),
    faults=(
        Fault(
            file="subscriptions/admission.py",
            old="if existence is None or not has_every_row(rights, exposure.model):",
            new="if existence is None:",
        ),
        Fault(
            file="subscriptions/outbox.py",
            old="if due <= now or is_control(change.topic):",
            new="if due <= now:",
        ),
        Fault(
            file="subscriptions/receivers.py",
            old="frozenset(sender._meta.get_field(name).name for name in update_fields)",
            new="frozenset(update_fields)",
        ),
        Fault(
            file="subscriptions/receivers.py",
            old='set(update_fields or ("any",)) != {"last_login"}',
            new='bool(set(update_fields or ("any",)))',
        ),
        Fault(
            file="subscriptions/topics.py",
            old="yield Change(topic=object_topic(model, key), is_hidden=not is_seen)",
            new="yield Change(topic=object_topic(model, key), is_hidden=False)",
        ),
    ),
)
#: Who somebody is, for how long, and how often.
AUTH = Room(
    tests=("tests/auth",),
    faults=(
        Fault(
            file="auth/authenticate.py",
            old="if by_header_only and (now := cache_version()).own == before:",
            new="if by_header_only and (now := cache_version()):",
        ),
        Fault(
            file="auth/authenticators.py",
            old="return not rules or any(rule(user) for rule in rules)",
            new="return True",
        ),
        Fault(
            file="auth/jwt_bearer.py",
            old='if {"at_hash", "c_hash"} & claims.keys() or use not in',
            new="if use not in",
        ),
        Fault(
            file="auth/redaction.py",
            old="if len(items) == 2 and names_credential(items[0]):",
            new="if len(items) == 3 and names_credential(items[0]):",
        ),
        Fault(
            file="handlers/tools.py",
            old="if scope in principal.scopes.union(needed)]",
            new="if scope in needed]",
        ),
        Fault(
            file="auth/throttles.py",
            old="IPv6Network((int(address), 64), strict=False)",
            new="IPv6Network((int(address), 128), strict=False)",
        ),
    ),
)
