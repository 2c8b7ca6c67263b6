"""What is wrong with what a caller wanted to save, said at once and field by field."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_form_schemas import errors_of
from mcp_django.exposure.function_arguments import shown
from mcp_django.exposure.permissions import Rights

#: Sentences in one answer, and those of them about names that nobody knows.
MOST_SENTENCES, MOST_UNKNOWN = 20, 5
#: What Django says there has the `str()` of records in it.
OURS = {"deleting_protected": "This row cannot be deleted: other records refer to it."}
#: Names that a sentence offers.
MOST_NAMES = 60


class Faults:
    """By path: the name of a field, `parts-0.qty` in a row, `parts` for rows, "" for all."""

    def __init__(self, names: Collection[str], *, sent: Collection[str]) -> None:
        #: What this caller can set. Nothing else is named.
        self.names = names
        self.sent = sent
        #: By prefix of a formset, the same for its rows.
        self.row_names: dict[str, Collection[str]] = {}
        #: Each sentence once, in the order in which they were said.
        self._found: dict[str, dict[str, None]] = {}

    def add(self, path: str, sentence: str) -> None:
        self._found.setdefault(path, {})[sentence] = None

    def refuse_unknown(
        self,
        given: Iterable[str],
        allowed: Iterable[str],
        *,
        what: str = "a field",
        path: str = "",
    ) -> None:
        """The same sentence for a field that is hidden, read-only, or was never there."""
        names = list(allowed)
        unknown = [name for name in given if name not in names]
        can = ", ".join(names[:MOST_NAMES]) or "nothing"
        for name in unknown[:MOST_UNKNOWN]:
            close = get_close_matches(name[:60], names, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            self.add(
                path, f"{shown(name)} is not {what} that you can set.{hint} You can set: {can}."
            )
        if unknown[MOST_UNKNOWN:]:
            self.add(path, f"Nor are {len(unknown) - MOST_UNKNOWN} more.")

    def collect(self, context: Mapping[str, Any], rights: Rights) -> None:
        """Take the faults of a form that the admin shows again."""
        if "adminform" not in context:
            return
        formsets = [one.formset for one in context.get("inline_admin_formsets", ())]
        for path, errors in errors_of(context["adminform"].form, formsets, rights=rights).items():
            for error in errors:
                self._take(path, error)

    def _take(self, path: str, error: Mapping[str, Any]) -> None:
        if not self._is_theirs(path):
            self.add("", "The form of the admin refuses this for a field that you cannot set.")
            return
        sentence = OURS.get(error["code"]) or str(error["message"])
        if "allowed" in error:
            sentence += f" Use one of: {', '.join(map(str, error['allowed']))}."
        if path in self.names and path not in self.sent:
            sentence += " (You did not send this field.)"
        self.add(path, sentence)

    def _is_theirs(self, path: str) -> bool:
        if not path or path in self.names or path in self.row_names:
            return True
        place, _, name = path.partition(".")
        prefix = place.rpartition("-")[0]
        return prefix in self.row_names and (not name or name in self.row_names[prefix])

    def raise_any(self) -> None:
        if not self._found:
            return
        told = [
            f"{path}: {sentence}" if path else sentence
            for path, sentences in self._found.items()
            for sentence in sentences
        ]
        if len(told) > MOST_SENTENCES:
            told = [*told[:MOST_SENTENCES], f"There are {len(told) - MOST_SENTENCES} more faults."]
        raise ToolError("\n".join(["Nothing was saved.", *told]))
