"""Faults in exposure/functions, prompts, questions, resources and tools."""

from __future__ import annotations

from tests.faults.model import Fault, Room

TOOLS = Room(
    tests=(
        "tests/exposure/functions",
        "tests/exposure/prompts",
        "tests/exposure/resources",
        "tests/exposure/tools",
        "tests/exposure/questions",
        "tests/exposure/query/test_aggregates_only.py",
        "tests/writes/test_create.py",
        "tests/writes/test_deleted_rows.py",
        "tests/writes/test_update_records.py",
    ),
    faults=(
        # Confirmations, questions and keys
        Fault(
            file="exposure/questions/confirmations.py",
            old="if expires <= time.time():",
            new="if expires <= time.time() - LIFETIME:",
        ),
        Fault(
            file="exposure/questions/confirmations.py",
            old="bound_to=rights.principal.key",
            new='bound_to=""',
        ),
        Fault(
            file="exposure/questions/conversation.py",
            old="self._take(key, once=tick)",
            new="self._take(key)",
        ),
        Fault(
            file="exposure/questions/conversation.py",
            old='"url": checked_url(url)',
            new='"url": url',
        ),
        Fault(
            file="exposure/questions/conversation.py",
            old="fits = answer.question == wanted",
            new="fits = True",
        ),
        Fault(
            file="exposure/questions/conversation.py",
            old="ends_at.timestamp() < time.time() + SHORTEST_TIME",
            new="ends_at.timestamp() < time.time()",
        ),
        Fault(
            file="exposure/questions/words.py",
            old="lines = cut_short(str(value), LONGEST_SAID).splitlines()",
            new="lines = [cut_short(str(value), LONGEST_SAID)]",
        ),
        Fault(
            file="exposure/questions/idempotency.py",
            old="if row.digest != digest:",
            new="if not row.digest:",
        ),
        # Tools of ours, of staff and of the admin
        Fault(
            file="exposure/tools/decisions.py",
            old="return tool.deletes_rows(arguments)",
            new="return False",
        ),
        Fault(
            file="exposure/tools/decisions.py",
            old="tool.check(context, rights, bare)",
            new="pass",
        ),
        Fault(
            file="exposure/tools/action_calls.py",
            old="is_risky = self._filters() != Filters() or ",
            new="is_risky = ",
        ),
        Fault(
            file="exposure/tools/action_calls.py",
            old="(asked.search and asked.search.split())",
            new="asked.search",
        ),
        Fault(
            file="exposure/tools/records.py",
            old="if len(keys) > MOST_UPDATED:",
            new="if len(keys) > MOST_UPDATED + 1:",
        ),
        Fault(
            file="exposure/tools/actions.py",
            old="is_held = self.rights.is_read_only and not tool.is_read_only",
            new="is_held = False",
        ),
        Fault(
            file="exposure/tools/actions.py",
            old="return bool(verbs) and PLAIN_VERBS.issuperset(verbs)",
            new="return PLAIN_VERBS.issuperset(verbs)",
        ),
        Fault(
            file="exposure/tools/records.py",
            old='is_shown = set(answer["record"]) <= set(msgspec.json.decode(record))',
            new="is_shown = True",
        ),
        Fault(
            file="exposure/tools/functions.py",
            old="if rights.is_read_only and not self._definition.annotations.read_only:",
            new="if rights.is_read_only and self._definition.annotations.destructive:",
        ),
        # Arguments and results of functions
        Fault(
            file="exposure/functions/arguments.py",
            old="partial(deepcopy, signature.defaults[name])",
            new="partial(lambda value: value, signature.defaults[name])",
        ),
        Fault(
            file="exposure/functions/arguments.py",
            old="value = text if has_too_many_values(body) else",
            new="value = text if not body else",
        ),
        Fault(
            file="exposure/functions/results.py",
            old="if isinstance(inner, (str, Promise)):",
            new="if isinstance(inner, (str, Promise, Model)):",
        ),
        Fault(
            file="exposure/functions/drf.py",
            old="faults = [*unknown_names(serializer, declared)]",
            new="faults: list[str] = []",
        ),
        # Prompts
        Fault(
            file="exposure/prompts/contents.py",
            old="PLAIN_TYPES = frozenset({NUMBER, DATE, CHOICE})",
            new="PLAIN_TYPES = frozenset({NUMBER, DATE, CHOICE, TEXT})",
        ),
        Fault(
            file="exposure/prompts/documents.py",
            old='[f"there is no group {one!r}" for one in document.groups if one not in known]',
            new="[]",
        ),
        Fault(
            file="exposure/prompts/stored.py",
            old="is_code = is_code and not is_login and",
            new="is_code = is_code and",
        ),
        # Resources
        Fault(
            file="exposure/resources/completion.py",
            old="if not own.exists_for(rights):",
            new="if own.exists_for(rights) is None:",
        ),
        Fault(
            file="exposure/resources/models.py",
            old="if number is None or (exposure.aggregates_only and number < floor_of(exposure)):",
            new="if number is None:",
        ),
        Fault(
            file="exposure/resources/functions.py",
            old="check_plain(list(values.values()), deepest=get_config().max_depth)",
            new="pass",
        ),
    ),
)
