"""Answers from within the demo, a line of JSON for a line of JSON."""

from __future__ import annotations

import json
import sys
import traceback
from importlib import import_module

import django

django.setup()
inside = import_module("tests.official.inside")

for line in sys.stdin:
    name, arguments = json.loads(line)
    try:
        answer = {"answer": getattr(inside, name)(*arguments)}
    except Exception:
        answer = {"error": traceback.format_exc()}
    print(json.dumps(answer, default=str), flush=True)
