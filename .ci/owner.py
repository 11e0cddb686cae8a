# SPDX-License-Identifier: Apache-2.0
"""Writes what only the owner knows (.ci/owner.toml) where it belongs; `--check` lists the places that still wait for it.

A place is `@owner:NAME@`, or the text in STANDING where a file must be valid before. A line that begins with `#@owner:NAME `
belongs to its file once NAME is known.
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
STANDING = {"maintainer": "The wiretale maintainers <maintainers@wiretale.invalid>"}
WAITING = re.compile(r"^#@owner:([a-z]+) (.*)$", re.M)


def filled(text: str, facts: dict[str, str]) -> str:
    """Returns a text with the places that can be filled."""
    text = WAITING.sub(lambda line: line[2] if facts.get(line[1]) else line[0], text)
    for name, stands in STANDING.items():
        text = text.replace(stands, facts.get(name) or stands)
    return PLACE.sub(lambda place: facts.get(place[1]) or place[0], text)


def places(text: str) -> set[str]:
    """Returns the names of the facts that a text waits for."""
    return {*PLACE.findall(text), *(name for name, stands in STANDING.items() if stands in text)}


def files(root: Path) -> Iterator[tuple[Path, str]]:
    """Yields each file with places, and its text."""
    sought = [word for text in ("@owner:", *STANDING.values()) for word in ("-e", text)]
    listed = subprocess.run(["git", "grep", "-lIF", *sought], cwd=root, capture_output=True, text=True).stdout
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
        waiting += [f"{path.relative_to(ROOT)}: {name}" for name in sorted(places(new))]
    print(*waiting, sep="\n", end="\n" if waiting else "", file=sys.stderr)
    return bool(waiting)


if __name__ == "__main__":
    sys.exit(main())
