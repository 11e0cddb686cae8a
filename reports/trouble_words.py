# SPDX-License-Identifier: Apache-2.0
"""Troubles of a flow in few words: the same kinds and words in the terminal and in the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.units import show_bytes, show_count

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from wiretale.analyzer.trace import Trace


class Trouble(NamedTuple):
    """Columns of the directions table that are added up, and their word."""

    word: str
    columns: tuple[str, ...]
    unit: str = ""  # "B" for bytes, else occurrences

    @property
    def show(self) -> Callable[[int | None], str]:
        """A sum of it as text."""
        return show_bytes if self.unit else show_count


TROUBLES = (
    Trouble("lost", ("lost_upstream", "lost_downstream")),
    Trouble("needless", ("spurious_retransmissions",)),
    Trouble("reordered", ("out_of_order",)),
    Trouble("ambiguous", ("ambiguous",)),
    Trouble("copied", ("network_duplicates", "unknown_duplicates")),
    Trouble("blocks lost", ("blocks_lost",)),
    Trouble("blocks reordered", ("blocks_out_of_order",)),
    Trouble("blocks copied", ("blocks_duplicate",)),
    Trouble("blocks corrupt", ("blocks_corrupt",)),
    Trouble("unseen", ("unseen_bytes",), "B"),
    Trouble("zero win", ("zero_windows",)),
    Trouble("incomplete", ("incomplete_datagrams",)),
)
ICMP = "ICMP"  # of the flows table: icmp_errors


def trouble_text(sums: dict[str, int], icmp_errors: int) -> str:
    """`3 lost, 1 ICMP`, from sums of the columns over both directions."""
    parts = [(sum(sums[name] for name in kind.columns), kind.show, kind.word) for kind in TROUBLES]
    parts.append((icmp_errors, show_count, ICMP))
    return ", ".join(f"{show(count)} {singular(word) if count == 1 else word}" for count, show, word in parts if count)


def singular(word: str) -> str:
    """`block lost` of `blocks lost`."""
    return word.replace("blocks", "block")


def trouble_sums(trace: Trace) -> list[tuple[str, str, dict[int, int]]]:
    """Word, unit and sums by flow of each kind that occurs."""
    counts = trace.directions.nonzero([name for kind in TROUBLES for name in kind.columns])
    found = []
    for kind in TROUBLES:
        sums: dict[int, int] = {}
        for name in kind.columns:
            for row, count in counts[name]:
                sums[row // 2] = sums.get(row // 2, 0) + count
        found.append((kind.word, kind.unit, sums))
    errors: list[tuple[int, Any]] = trace.flows.nonzero(["icmp_errors"])["icmp_errors"]
    found.append((ICMP, "", dict(errors)))
    return [one for one in found if one[2]]
