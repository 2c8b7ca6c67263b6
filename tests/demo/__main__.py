"""Answers from within the demo, a line of JSON for a line of JSON, with functions of a module."""

from __future__ import annotations

import json
import sys
import traceback
from contextlib import redirect_stdout
from importlib import import_module

import django
from django.test.utils import setup_test_environment

django.setup()
setup_test_environment()
inside = import_module(sys.argv[1])

for line in sys.stdin:
    name, arguments = json.loads(line)
    try:
        with redirect_stdout(sys.stderr):
            answer = {"answer": getattr(inside, name)(*arguments)}
    except Exception:
        answer = {"error": traceback.format_exc()}
    print(json.dumps(answer, default=str), flush=True)
