"""What both searches have in common: their options, their processes, and what the site offers."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence

from mcp_django.testing import Client
from tests.fuzz.cases import Knowledge


def options_of(text: str, *, count: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=text.partition("\n")[0])
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the index of the first case")
    parser.add_argument("--only", type=int, help="the index of a single case")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    return parser


def run_jobs(module: str, options: argparse.Namespace, *, batch: int = 1) -> int:
    """The same in several processes, each with a share and a database of its own."""
    share = -(-options.count // options.jobs // batch) * batch
    started = []
    for first in range(options.first, options.first + options.count, share):
        count = min(share, options.first + options.count - first)
        arguments = ["--seed", options.seed, "--first", first, "--count", count]
        command = [sys.executable, "-m", module, *map(str, arguments)]
        started.append(subprocess.Popen(command))
    return max([one.wait() for one in started])


def learn(
    client: Client,
    tokens: dict[str, str],
    *,
    labels: Sequence[str] = (),
    tools_left_out: Sequence[str] = (),
    uris_left_out: tuple[str, ...] = (),
) -> Knowledge:
    """What the site offers to the client, or some of it. Without `labels`: all of its models."""
    if not labels:
        labels = [one["model"] for one in client.call_tool("list_models").data["models"]]
    names = {}
    for label in labels:
        described = client.call_tool("describe_model", model=label).data
        names[label] = [one["name"] for one in described.get("fields", ())]
        names[label] += described.get("more_filters", [])
    uris = [one["uri"] for one in client.list_resources()]
    templates = client.list_all("resources/templates/list", "resourceTemplates")
    return Knowledge(
        tools={
            one["name"]: one["inputSchema"]
            for one in client.list_tools()
            if one["name"] not in tools_left_out
        },
        prompts={one["name"]: one for one in client.list_prompts()},
        uris=[uri for uri in uris if not uri.split("/")[-1].startswith(uris_left_out)],
        templates=[one["uriTemplate"] for one in templates],
        labels=[*labels],
        names=names,
        tokens=tokens,
    )
