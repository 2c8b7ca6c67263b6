"""Writes `revisions.md` from the table of features: `python -m docs.revisions`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from mcp_django.protocol.methods import METHODS
from mcp_django.protocol.revisions import Era, Features, Revision

PAGE = Path(__file__).parent / "reference" / "revisions.md"
WORDS = {
    "batches": "Several messages in one request",
    "tool_annotations": "Hints on tools: read-only, destructive, idempotent, open world",
    "audio": "Sound as content; before, it travels as an embedded resource",
    "progress_message": "A message with the numbers of progress",
    "completions_capability": "Completion is announced; before, it only answers",
    "titles": "Titles of tools, resources and prompts",
    "structured_content": "Structured results and output schemas",
    "resource_links": "Links to resources in results; before, a line of text",
    "last_modified": "When content was last modified",
    "error_id_optional": "An error may leave out an id that could not be read",
    "elicitation": "A person can be asked with a form",
    "rich_elicitation": "Questions to a person have titled choices, several choices and defaults",
    "any_structured_content": "Structured results of any JSON type, not only objects",
    "result_type": "Results name their type, and the server in `_meta`",
    "input_required": "Tools, prompts and resources ask before they answer",
    "caching": "Lists and reads say how long they may be kept",
    "missing_resource_is_invalid_params": "A missing resource is -32602; before, -32002",
    "priming_events": "A stream that is lost at once can be resumed as well",
    "url_elicitation": "A person can be sent to a page",
    "disconnect_cancels": "Closing the connection cancels the call",
}
HEAD = """# What each revision can do

This page is made from the code: `python -m docs.revisions` writes it, and a test compares the
two. A tool, a resource or a prompt is written once; what a revision cannot say is left out for
clients that speak it.

"""


def table(head: str, rows: list[tuple[str, list[bool]]]) -> str:
    names = [revision.value for revision in Revision]
    lines = [f"| {head} | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    lines += [
        f"| {name} | {' | '.join('yes' if has else '' for has in values)} |"
        for name, values in rows
    ]
    return "\n".join(lines) + "\n"


def page() -> str:
    """The text of the page."""
    eras = {Era.LEGACY: "a handshake", Era.MODERN: "a `_meta` with every request"}
    features = [
        (WORDS[one.name], [getattr(revision.features, one.name) for revision in Revision])
        for one in fields(Features)
        if one.name != "era"
    ]
    methods = [
        (f"`{name}`", [revision.era in method.eras for revision in Revision])
        for name, method in METHODS.items()
    ]
    said = [(f"{words[:1].upper()}{words[1:]}", era) for era, words in eras.items()]
    connects = [(words, [one.era is era for one in Revision]) for words, era in said]
    return (
        HEAD
        + "## How a client says who it is\n\n"
        + table("", connects)
        + "\n## Methods\n\n"
        + table("Method", methods)
        + "\n## Features\n\n"
        + table("Feature", features)
    )


if __name__ == "__main__":
    PAGE.write_text(page())
