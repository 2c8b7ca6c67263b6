"""Run the official conformance suite against the fixture site.

    python -m tests.conformance_site.run            each revision over each transport
    python -m tests.conformance_site.run 2026-07-28 stdio -v

Whatever fails, and whatever gives no verdict, is an error. `plan.py` names what says nothing
about a revision or a transport, and why. The suite speaks Streamable HTTP, and wants its newest
revision; for all else there is a bridge.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial

from tests.conformance_site import suite
from tests.conformance_site.bridge import Bridge
from tests.conformance_site.fronts import Front, Negotiator, Witness
from tests.conformance_site.plan import EXTENSIONS, HTTP, HTTP_SSE, RUNS, Run
from tests.conformance_site.serve import USER, Site, serve
from tests.conformance_site.suite import Verdict
from tests.conformance_site.upstreams import Children, EventSource

#: The suite waits for some messages for half a second: more at a time would be late.
AT_A_TIME = 3
#: The oldest that the suite has a schema for.
OLDEST_SCHEMA = "2025-03-26"


@contextmanager
def front(run: Run, site: Site) -> Iterator[Front]:
    """What the suite asks instead of the site."""
    if run.is_direct:
        yield Witness(site.url, revision=run.revision)
    elif run.transport == HTTP:
        yield Negotiator(site.url, revision=run.revision)
    elif run.transport == HTTP_SSE:
        yield Bridge(partial(EventSource, site.url), site.url, revision=run.revision)
    else:
        with closing(Children(site.environment, user=USER)) as children:
            yield Bridge(children.take, revision=run.revision)


def verdicts(run: Run, url: str) -> dict[str, Verdict]:
    """By the names of all scenarios that count."""
    left_out = run.left_out
    wanted = [name for name in suite.names(run.scenarios_of) if name not in left_out]
    if run.is_forced:
        found: dict[str, Verdict] = {}
        for name in wanted:
            found |= suite.run_one(url, name, schema=OLDEST_SCHEMA)
    else:
        found = suite.run_all(url, revision=run.revision)
    silent = Verdict(checks=[])
    return {name: counted(found.get(name, silent), name, left_out=left_out) for name in wanted}


def counted(verdict: Verdict, name: str, *, left_out: dict[str, str]) -> Verdict:
    return Verdict(checks=[one for one in verdict.checks if f"{name}:{one['id']}" not in left_out])


def report(run: Run, *, site: Site) -> tuple[bool, list[str]]:
    """Whether the site conforms, and what to print."""
    began = time.monotonic()
    with front(run, site) as between, between.serving() as url:
        found, agreed = verdicts(run, url), between.agreed
    lines = [line for name, verdict in found.items() for line in complaints(name, verdict)]
    if agreed != {run.revision}:
        lines.append(f"  the revisions that were agreed to: {sorted(agreed)}")
    shown = sum(verdict.is_shown for verdict in found.values())
    took = time.monotonic() - began
    headline = f"{run}: {shown} of {len(found)} scenarios pass ({took:.0f} s)"
    return not lines and shown > 0, [headline, *lines]


def complaints(name: str, verdict: Verdict) -> Iterator[str]:
    for check in verdict.failures:
        yield f"  {name}: {check['id']}: {check.get('errorMessage', '')[:300]}"
    if not verdict.failures and not verdict.is_shown:
        yield f"  {name}: no verdict"


def explanations(run: Run) -> list[str]:
    names = suite.names(run.scenarios_of)
    return [
        f"  left out: {name}: {reason}"
        for name, reason in run.left_out.items()
        if name.partition(":")[0] in names
    ]


def other_scenarios(
    names: Callable[[str | None], Sequence[str]],
) -> tuple[dict[str, str], list[str]]:
    """The scenarios that no run asks, with the reason, and those that have none. `names` gives
    those of a revision, or all.
    """
    asked = {name for run in RUNS for name in names(run.scenarios_of)}
    extensions, unplanned = {}, []
    for name in names(None):
        reasons = [EXTENSIONS[start] for start in EXTENSIONS if name.startswith(start)]
        if name not in asked and reasons:
            extensions[name] = reasons[0]
        elif name not in asked:
            unplanned.append(name)
    return extensions, unplanned


def main() -> int:
    words = set(sys.argv[1:]) - {"-v"}
    runs = [run for run in RUNS if words <= {run.revision, *run.transport.split()}]
    suite.install()
    extensions, unplanned = other_scenarios(suite.names)
    for name in unplanned:
        print(f"{name}: in no run, and not in the plan")
    is_good = bool(runs) and not unplanned
    with serve() as site, ThreadPoolExecutor(AT_A_TIME) as pool:
        # The longest first. What is printed has the order of the plan.
        started = sorted(runs, key=lambda run: not run.is_slow)
        results = {run: pool.submit(report, run, site=site) for run in started}
        for run in runs:
            conforms, lines = results[run].result()
            is_good &= conforms
            print("\n".join(lines + explanations(run) * ("-v" in sys.argv)), flush=True)
    for name, reason in extensions.items():
        print(f"Not asked: {name}: {reason}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
