# SPDX-License-Identifier: Apache-2.0
"""A page of docs/ that is made from the code by a script docs/make_*.py."""

from __future__ import annotations

import sys
from pathlib import Path


def main(path: Path, page: str) -> int:
    """Writes the page; with the only argument --check, says whether it is up to date. Returns the exit code."""
    if sys.argv[1:] != ["--check"]:
        path.write_text(page)
        return 0
    if path.exists() and path.read_text() == page:
        return 0
    print(f"docs/{path.name} is out of date: python {sys.argv[0]}", file=sys.stderr)
    return 1
