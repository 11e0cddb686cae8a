# SPDX-License-Identifier: Apache-2.0
"""Checks that the names in Python files say what they name: python .ci/checks/names.py [--update] [--since REVISION].

A file has at most MOST vague identifiers per 1,000 names, or what .ci/checks/vague_names.tsv allows it: that list may only become
shorter and its numbers smaller. So a new file must keep the limit, and no file gets worse. With --since, each file that
changed since that revision of git must keep the limit. --update lowers the numbers of the list to those of now.
"""

from __future__ import annotations

import argparse
import io
import keyword
import subprocess
import sys
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
BASELINE = ".ci/checks/vague_names.tsv"
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

    def is_worse_than(self, other: Count) -> bool:
        """Returns whether vague names were added, and more than good ones."""
        return self.vague > other.vague and self.rate > other.rate


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


def counts() -> dict[str, Count]:
    """Returns the counts of all Python files below the root."""
    paths = (path.relative_to(ROOT) for path in sorted(ROOT.rglob("*.py")))
    return {
        str(path): count_names((ROOT / path).read_text("utf-8"))
        for path in paths
        if not SKIPPED.intersection(path.parts[:-1])
    }


def read_baseline() -> dict[str, Count]:
    rows = (line.split("\t") for line in (ROOT / BASELINE).read_text("utf-8").splitlines())
    return {path: Count(int(vague), int(names)) for path, vague, names in rows}


def write_baseline(present: Mapping[str, Count], baseline: Mapping[str, Count]) -> None:
    """Writes the files that are still above the limit; a file that got worse keeps its old numbers."""
    rows = {
        path: allowed if present[path].is_worse_than(allowed) else present[path]
        for path, allowed in baseline.items()
        if path in present and present[path].rate > MOST
    }
    lines = (f"{path}\t{count.vague}\t{count.names}\n" for path, count in sorted(rows.items()))
    (ROOT / BASELINE).write_text("".join(lines), "utf-8")


def changed_since(revision: str) -> set[str]:
    command = ["git", "diff", "--name-only", "--diff-filter=d", revision, "--", "*.py"]
    return set(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines())


def find_breaches(touched: set[str]) -> Iterator[str]:
    """Yields a line for each file that breaks its limit."""
    baseline = read_baseline()
    for path, count in counts().items():
        allowed = None if path in touched else baseline.get(path)
        if count.rate > MOST and (allowed is None or count.is_worse_than(allowed)):
            limit = f"{MOST:g}" if allowed is None else f"{allowed.rate:.1f}"
            yield f"{path}: {count.vague} vague names, {count.rate:.1f} per 1,000, at most {limit}"


def main() -> int:
    """Prints the files that break their limits; returns 1 if there are any."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--since", metavar="REVISION")
    options = parser.parse_args()
    if options.update:
        write_baseline(counts(), read_baseline())
    breaches = list(find_breaches(changed_since(options.since) if options.since else set()))
    print(*breaches, sep="\n", end="\n" if breaches else "", file=sys.stderr)
    return bool(breaches)


if __name__ == "__main__":
    sys.exit(main())
