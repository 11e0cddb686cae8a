# SPDX-License-Identifier: Apache-2.0
"""The table of the link's C test equals the models of the disciplines."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import sqrt

import pytest

from queue_model import CASES, HEADER, MS, Codel, Packet, c_text, drops


def test_the_table_of_the_c_test_equals_the_models() -> None:
    if not HEADER.parent.is_dir():
        pytest.skip("needs the sources")
    assert HEADER.read_text() == c_text(), "python tests/support/models/queue_model.py writes it anew"


def test_each_discipline_drops_enough_to_be_held_against_it() -> None:
    for case, (settings, *_) in enumerate(CASES):
        fates = Counter(drops(case).values())
        words = dict(word.split("=") for word in settings.split())
        name = words["discipline"].removeprefix("fq_")
        assert fates["marked" if "ecn" in words else name] > 20, (settings, fates)


class WatchedCodel(Codel):
    """Notes when it drops."""

    def __init__(self) -> None:
        super().__init__(byte_ns=800)
        self.now, self.times = 0, list[int]()

    def dequeue(self, now: int) -> Packet | None:
        self.now = now
        return super().dequeue(now)

    def drop(self, packet: Packet | None) -> None:
        self.times.append(self.now)
        super().drop(packet)


def test_codel_drops_at_the_intervals_of_its_law() -> None:
    """In a queue that stands, the k-th drop comes interval / sqrt(k - 1) after the one before (RFC 8289, 5.3)."""
    model = WatchedCodel()
    for number in range(900):
        model.arrive(Packet(number + 1, number * 400_000, 1500))
    model.send_until(900 * MS)
    expected = [100 * MS / sqrt(count) for count in range(1, len(model.times))]
    assert len(expected) > 10
    for (first, second), interval in zip(pairwise(model.times), expected, strict=True):
        assert abs(second - first - interval) <= 2 * 1500 * 800  # a drop waits for the next departure
