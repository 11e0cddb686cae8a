# SPDX-License-Identifier: Apache-2.0
"""Writes what only the owner knows (.ci/owner.toml) where it belongs; `--check` lists the places that still wait for it.

A place is `@owner:NAME@`. A line that begins with `#@owner:NAME ` belongs to its file once NAME is known.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = re.compile(r"@owner:([a-z]+)@")
WAITING = re.compile(r"^#@owner:([a-z]+) (.*)$", re.M)


def filled(text: str, facts: dict[str, str]) -> str:
    """Returns a text with the places that can be filled."""
    text = WAITING.sub(lambda line: line[2] if facts.get(line[1]) else line[0], text)
    return PLACE.sub(lambda place: facts.get(place[1]) or place[0], text)


def files(root: Path) -> Iterator[tuple[Path, str]]:
    """Yields each file with places, and its text."""
    listed = subprocess.run(["git", "grep", "-lIF", "@owner:"], cwd=root, capture_output=True, text=True).stdout
    for name in listed.splitlines():
        if not name.startswith((".ci/", "tests/")):
            yield root / name, (root / name).read_text("utf-8")


def main() -> int:
    """Fills or checks; returns 1 if a place waits."""
    facts = tomllib.loads((ROOT / ".ci" / "owner.toml").read_text("utf-8"))
    waiting = []
    for path, text in files(ROOT):
        new = text if "--check" in sys.argv else filled(text, facts)
        if new != text:
            path.write_text(new, "utf-8")
        waiting += [f"{path.relative_to(ROOT)}: {name}" for name in sorted(set(PLACE.findall(new)))]
    print(*waiting, sep="\n", end="\n" if waiting else "", file=sys.stderr)
    return bool(waiting)


if __name__ == "__main__":
    sys.exit(main())
