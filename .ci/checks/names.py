# SPDX-License-Identifier: Apache-2.0
"""Checks that the names in Python files say what they name: each has at most MOST vague identifiers per 1,000 names."""

from __future__ import annotations

import io
import keyword
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SKIPPED = {".venv", "build", "dist", "node_modules"}
MOST = 3.0
VAGUE = {
    "asked",
    "chosen",
    "found",
    "given",
    "held",
    "kept",
    "known",
    "mine",
    "one",
    "ones",
    "others",
    "ours",
    "own",
    "rest",
    "said",
    "shown",
    "something",
    "stuff",
    "taken",
    "theirs",
    "thing",
    "things",
    "told",
    "wanted",
    "whole",
}


class Count(NamedTuple):
    """The vague identifiers of a file, and all its names; keywords are none."""

    vague: int
    names: int

    @property
    def rate(self) -> float:
        """Vague identifiers per 1,000 names."""
        return 1000 * self.vague / max(self.names, 1)


def names_of(text: str) -> Iterator[str]:
    """Yields the names of a file. Those within f-strings are left out, because Python 3.11 has no tokens for them, and so is
    Hypothesis's decorator, whose name a file does not choose."""
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.string == "given" and token.line.lstrip().startswith(("@given", "from hypothesis import")):
            continue
        kind = tokenize.tok_name[token.type]
        depth += kind == "FSTRING_START"
        depth -= kind == "FSTRING_END"
        if kind == "NAME" and not depth and not keyword.iskeyword(token.string):
            yield token.string


def count_names(text: str) -> Count:
    names = list(names_of(text))
    return Count(sum(name in VAGUE for name in names), len(names))


def find_breaches() -> Iterator[str]:
    """Yields a line for each Python file below the root with too many vague names."""
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT)
        if SKIPPED.intersection(relative.parts[:-1]):
            continue
        count = count_names(path.read_text("utf-8"))
        if count.rate > MOST:
            yield f"{relative}: {count.vague} vague names, {count.rate:.1f} per 1,000, at most {MOST:g}"


def main() -> int:
    """Prints the files with too many vague names; returns 1 if there are any."""
    breaches = list(find_breaches())
    print(*breaches, sep="\n", end="\n" if breaches else "", file=sys.stderr)
    return bool(breaches)


if __name__ == "__main__":
    sys.exit(main())
