# SPDX-License-Identifier: Apache-2.0
"""Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(heads: str, rows: Iterable[Sequence[object]], left: int | None = 1) -> str:
    """Returns a Markdown table; headings are separated by |, and the first `left` columns (None: all) are left-aligned."""
    names = heads.split(" | ")
    left = len(names) if left is None else left
    rule = ["---"] * left + ["---:"] * (len(names) - left)
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in (names, rule, *rows))
