# SPDX-License-Identifier: Apache-2.0
"""The bytes of a stream that passed a point."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class ByteRanges:
    """Sorted ranges [start, end) of stream offsets that neither overlap nor touch."""

    pairs: list[tuple[int, int]] = field(default_factory=list)

    def add(self, start: int, end: int) -> None:
        apart = [pair for pair in self.pairs if pair[1] < start or pair[0] > end]
        touching = [pair for pair in self.pairs if pair not in apart]
        whole = min([start, *(pair[0] for pair in touching)]), max([end, *(pair[1] for pair in touching)])
        self.pairs = sorted([*apart, whole])

    def count(self, start: int, end: int) -> int:
        """Returns the number of bytes of this range that passed."""
        return sum(max(0, min(end, pair[1]) - max(start, pair[0])) for pair in self.pairs)

    def covers(self, start: int, end: int) -> bool:
        """Returns whether the whole range passed."""
        return self.count(start, end) == end - start

    def total(self) -> int:
        return sum(end - start for start, end in self.pairs)
