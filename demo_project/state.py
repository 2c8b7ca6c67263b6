"""Everything that the demo keeps: one directory, private to its owner and unknown to git."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STATE = Path(os.environ.get("DEMO_STATE") or ROOT / ".demo").resolve()


def keep(name: str, make: Callable[[], str]) -> str:
    """The text kept under `name`; made and kept at first use, also when two processes start."""
    path = STATE / name
    if not path.exists():
        fresh = write_private(f"{name}.{token_hex(4)}", make())
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass  # Another process was first: its text counts.
        except OSError:
            fresh.replace(path)  # Some network file systems have no links.
        finally:
            fresh.unlink(missing_ok=True)
    return path.read_text().strip()


def read_json(name: str) -> dict[str, Any]:
    """What was kept under `name`; nothing where the file is missing or was damaged."""
    try:
        found = json.loads((STATE / name).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_json(name: str, data: dict[str, Any]) -> None:
    fresh = write_private(f"{name}.{token_hex(4)}", json.dumps(data, indent=2) + "\n")
    fresh.replace(STATE / name)


def write_private(name: str, text: str) -> Path:
    STATE.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = STATE / name
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    return path
