"""Nothing that a process keeps between calls is kept without saying for whom and where."""

from __future__ import annotations

from tests.children import finished

#: Each entry names the place that its rows are in, or the tenant of the caller.
BY_PLACE = {
    "audit.records.records.writer._waiting",
    "auth.authenticate.cache._values",
    "auth.throttles.calls._windows",
    "auth.throttles.completions._windows",
    "auth.throttles.dry_run_seconds._windows",
    "auth.throttles.dry_runs._windows",
    "auth.throttles.failed_calls._windows",
    "auth.throttles.refusals._windows",
    "auth.throttles.tool_calls._windows",
    "auth.throttles.trying_now",
    "exposure.decisions._decisions._kept",
    "stores.cache_version.generations._readings",
    "exposure.prompts.stored._prompts._kept",
    "exposure.registry.registry.in_force._kept",
    "stores.last_used.uses._waiting",
    "subscriptions.outbox.outbox._waiting._gone",
    "subscriptions.outbox.outbox._waiting._later",
    "subscriptions.outbox.outbox._waiting._ready",
}
KEPT = {
    "a place": BY_PLACE,
    "all that the value is made of, rights included": {
        "exposure.decisions.restricted",
        "exposure.query.access._access._values",
        "exposure.query.paths_by_rule._extended._values",
        "exposure.tools.actions.fitting_definition",
        "principal.satisfies",
        "subscriptions.topics._affected_topics._kept",
        "transports.endpoint.is_own_host",
        "transports.event_stream.changed",
    },
    "code, settings and files": {
        "auth.authenticators._authenticators._kept",
        "auth.resource._routed",
        "conf.get_config",
        "connections.has_tenants",
        "exposure.admin_bridge.dry_runs.install",
        "exposure.admin_bridge.requests.change_path",
        "exposure.decisions._declared._kept",
        "exposure.fields.bounds_of",
        "exposure.fields.kind_of_class",
        "exposure.fields.logged",
        "exposure.permissions.is_plain_class",
        "exposure.query.guard.as_table",
        "exposure.query.guard.guarded_compiler",
        "exposure.prompts.files._files._kept",
        "exposure.registry.registry.code_prompts",
        "exposure.registry.registry.resources",
        "exposure.resources.models.FILES.encodings",
        "exposure.tools.actions._action_names._kept",
        "exposure.tools.actions.arguments_of",
        "exposure.tools.records.page_definition",
        "stores.sessions._stores",
        "handlers.telemetry.durations",
        "subscriptions.receivers._watched._kept",
        "transports.threads.lanes._lanes",
        "transports.exchanges.ranges_of",
        "transports.endpoint.endpoint_template",
        "transports.middleware.loaded._chains",
        "transports.middleware.with_endpoint",
    },
    "one thread, loop, call or stream": {
        "auth.throttles.calls.shared.documents._of_thread",
        "connections._last_use",
        "context._running",
        "exposure.admin_bridge.dry_runs.current",
        "oauth.validators.consent_page",
        "stores.transactions.turns._mine",
        "transports.call.async_calls",
        "transports.call.running_calls",
        "transports.middleware.served",
        "transports.hub.hubs",
    },
    "an address, or a credential, and says nothing but whose share of the threads it takes": {
        "auth.authenticate.last_users._values",
        "auth.throttles.failures._windows",
        "auth.throttles.registrations._windows",
    },
    "nothing: it stays empty": {
        "exposure.decisions.NOTHING_DECIDED.models",
        "exposure.decisions.NOTHING_DECIDED.prompts",
        "exposure.decisions.NOTHING_DECIDED.tools",
        "protocol.negotiation.NO_HEADERS._values",
        "transports.serving.NO_INPUT.answers",
    },
}


def test_whatever_outlives_a_call_is_listed_with_what_it_is_kept_by():
    printed = finished("-m", "tests.memory")

    assert printed.returncode == 0, printed.stderr
    assert set(printed.stdout.split()) == set().union(*KEPT.values())
