"""Faults in exposure/functions, prompts, questions, resources and tools."""

from __future__ import annotations

from tests.faults.model import Room

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
    lines={
        # Confirmations, questions and keys
        "exposure/questions/confirmations.py": [
            ("if expires <= time.time():", "if expires <= time.time() - LIFETIME:"),
            ("bound_to=rights.principal.key", 'bound_to=""'),
        ],
        "exposure/questions/conversation.py": [
            ("self._take(key, once=tick)", "self._take(key)"),
            ('"url": checked_url(url)', '"url": url'),
            ("fits = answer.question == wanted", "fits = True"),
            (
                "ends_at.timestamp() < time.time() + SHORTEST_TIME",
                "ends_at.timestamp() < time.time()",
            ),
        ],
        "exposure/questions/words.py": [
            (
                "lines = cut_short(str(value), LONGEST_SAID).splitlines()",
                "lines = [cut_short(str(value), LONGEST_SAID)]",
            )
        ],
        "exposure/questions/idempotency.py": [("if row.digest != digest:", "if not row.digest:")],
        # Tools of ours, of staff and of the admin
        "exposure/tools/decisions.py": [
            ("return tool.deletes_rows(arguments)", "return False"),
            ("tool.check(context, rights, bare)", "pass"),
        ],
        "exposure/tools/action_calls.py": [
            ("is_risky = self._filters() != Filters() or ", "is_risky = "),
            ("(asked.search and asked.search.split())", "asked.search"),
        ],
        "exposure/tools/records.py": [
            ("if len(keys) > MOST_UPDATED:", "if len(keys) > MOST_UPDATED + 1:"),
            (
                'is_shown = set(answer["record"]) <= set(msgspec.json.decode(record))',
                "is_shown = True",
            ),
        ],
        "exposure/tools/actions.py": [
            ("is_held = self.rights.is_read_only and not tool.is_read_only", "is_held = False"),
            (
                "return bool(verbs) and PLAIN_VERBS.issuperset(verbs)",
                "return PLAIN_VERBS.issuperset(verbs)",
            ),
        ],
        "exposure/tools/functions.py": [
            (
                "if rights.is_read_only and not self._definition.annotations.read_only:",
                "if rights.is_read_only and self._definition.annotations.destructive:",
            )
        ],
        # Arguments and results of functions
        "exposure/functions/arguments.py": [
            (
                "partial(deepcopy, signature.defaults[name])",
                "partial(lambda value: value, signature.defaults[name])",
            ),
            ("value = text if has_too_many_values(body) else", "value = text if not body else"),
        ],
        "exposure/functions/results.py": [
            (
                "if isinstance(inner, (str, Promise)):",
                "if isinstance(inner, (str, Promise, Model)):",
            )
        ],
        "exposure/functions/drf.py": [
            ("faults = [*unknown_names(serializer, declared)]", "faults: list[str] = []")
        ],
        # Prompts
        "exposure/prompts/contents.py": [
            (
                "PLAIN_TYPES = frozenset({NUMBER, DATE, CHOICE})",
                "PLAIN_TYPES = frozenset({NUMBER, DATE, CHOICE, TEXT})",
            )
        ],
        "exposure/prompts/documents.py": [
            ('[f"there is no group {one!r}" for one in document.groups if one not in known]', "[]")
        ],
        "exposure/prompts/stored.py": [
            ("is_code = is_code and not is_login and", "is_code = is_code and")
        ],
        # Resources
        "exposure/resources/completion.py": [
            ("if not own.exists_for(rights):", "if own.exists_for(rights) is None:")
        ],
        "exposure/resources/models.py": [
            (
                "if number is None or (exposure.aggregates_only and number < floor_of(exposure)):",
                "if number is None:",
            )
        ],
        "exposure/resources/functions.py": [
            ("check_plain(list(values.values()), deepest=get_config().max_depth)", "pass")
        ],
    },
)
