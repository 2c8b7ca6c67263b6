"""Packages from npm, each in a folder of its own, which git ignores."""

from __future__ import annotations

import subprocess
from pathlib import Path


def install(package: str, target: Path) -> Path:
    """Install a package and its version where they are missing. Return the folder of all."""
    stamp = target / "stamp"
    if not stamp.exists() or stamp.read_text() != package:
        target.mkdir(parents=True, exist_ok=True)
        (target / "package.json").write_text('{"name": "x", "version": "0.0.0", "private": true}')
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", package],
            cwd=target,
            check=True,
        )
        stamp.write_text(package)
    return target / "node_modules"
