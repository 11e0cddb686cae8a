# SPDX-License-Identifier: Apache-2.0
"""What the short set must reach in every run: the least F1 of each kind, over all places of capture.

The packets differ from run to run, and some kinds have few cases there: these are floors, not the goal of docs/accuracy.md.
"""

from __future__ import annotations

from score.tally import DATAGRAMS_LOST, PLACES, Score, Tally

CASES_LEAST = 20  # with fewer a single one would decide
FLOORS = {
    "sent again": 0.995,
    "lost upstream": 0.98,
    "lost downstream": 0.98,
    "needless": 0.9,
    "fast": 0.92,
    "timeout": 0.9,
    "tail-loss probe": 0.9,
    "overtaken": 0.98,
    "copied by the network": 0.95,
    "missed by the capture": 0.97,
    DATAGRAMS_LOST: 0.99,
    "datagrams overtaken": 0.99,
    "datagrams copied": 0.99,
}


def over_all_places(tally: Tally, kind: str, tool: str = "wiretale") -> Score:
    """The score of a kind wherever it was captured."""
    total = Score()
    for place in PLACES:
        score = tally.scores.get((kind, place, tool), Score())
        total.claimed += score.claimed
        total.right += score.right
        total.there += score.there
        total.found += score.found
    return total
