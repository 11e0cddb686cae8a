# SPDX-License-Identifier: Apache-2.0
"""Which bytes of a stream have come by."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class ByteRanges:
    """Ranges [start, end) of stream offsets, in order, none touching another."""

    pairs: list[tuple[int, int]] = field(default_factory=list)

    def add(self, start: int, end: int) -> None:
        """These bytes came by."""
        apart = [pair for pair in self.pairs if pair[1] < start or pair[0] > end]
        touching = [pair for pair in self.pairs if pair not in apart]
        whole = min([start, *(pair[0] for pair in touching)]), max([end, *(pair[1] for pair in touching)])
        self.pairs = sorted([*apart, whole])

    def count(self, start: int, end: int) -> int:
        """How many bytes of this range came by."""
        return sum(max(0, min(end, pair[1]) - max(start, pair[0])) for pair in self.pairs)

    def covers(self, start: int, end: int) -> bool:
        """Whether all of this range came by."""
        return self.count(start, end) == end - start

    def total(self) -> int:
        """How many bytes came by in all."""
        return sum(end - start for start, end in self.pairs)
