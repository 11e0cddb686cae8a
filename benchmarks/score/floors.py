# SPDX-License-Identifier: Apache-2.0
"""The lowest F1 that tests/ accept for each kind in a run of the short set, over all capture points.

These floors are lower than the goal of docs/measured/accuracy.md: packets differ between runs, and some kinds have few cases.
"""

from __future__ import annotations

from dataclasses import astuple

from score.tally import DATAGRAMS_LOST, PLACES, Score, Tally

CASES_LEAST = 20  # if there are fewer, one case has too much weight
FLOORS = {
    "retransmitted": 0.995,
    "lost upstream": 0.98,
    "lost downstream": 0.98,
    "spurious": 0.9,
    "fast": 0.92,
    "timeout": 0.9,
    "tail-loss probe": 0.9,
    "reordered": 0.98,
    "duplicated by the network": 0.95,
    "missed by the capture": 0.97,
    DATAGRAMS_LOST: 0.99,
    "datagrams reordered": 0.99,
    "datagrams duplicated": 0.99,
}


def over_all_places(tally: Tally, kind: str, tool: str = "wiretale") -> Score:
    """Returns the score of a kind, summed over the capture points."""
    total = Score()
    for place in PLACES:
        total.add(*astuple(tally.scores.get((kind, place, tool), Score())))
    return total
