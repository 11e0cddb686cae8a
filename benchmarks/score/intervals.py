# SPDX-License-Identifier: Apache-2.0
"""How much a score depends on the runs: an interval by bootstrap, and the worst run.

Packets of one run are not independent, because one loss causes many retransmissions. So whole runs are drawn with
replacement (cluster bootstrap), not packets."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import astuple

from score.tally import Score, Tally

RESAMPLES = 1_000
WORST_CASES = 20  # a run with fewer cases is not called the worst
FEW_CASES = 100  # a row with fewer is marked


def summed(scores: list[Score]) -> Score:
    total = Score()
    for score in scores:
        total.add(*astuple(score))
    return total


def scores_by_run(runs: Mapping[str, Tally], kind: str, point: str) -> dict[str, Score]:
    scores = {name: tally.scores.get((kind, point, "wiretale")) for name, tally in runs.items()}
    return {name: score for name, score in scores.items() if score and (score.there or score.claimed)}


def interval(by_run: Mapping[str, Score]) -> tuple[float, float] | None:
    """Returns the middle 95% of F1 over resampled runs, or None with fewer than three runs."""
    scores = list(by_run.values())
    if len(scores) < 3:
        return None
    chance = random.Random(len(scores))
    drawn = (summed(chance.choices(scores, k=len(scores))).f1 for _ in range(RESAMPLES))
    values = sorted(value for value in drawn if value is not None)
    return (values[len(values) // 40], values[-1 - len(values) // 40]) if values else None


def worst_run(by_run: Mapping[str, Score]) -> tuple[str, float] | None:
    """Returns the run with the lowest F1 among those with enough cases."""
    rated = [(score.f1 or 0.0, name) for name, score in by_run.items() if score.there >= WORST_CASES]
    value, name = min(rated, default=(0.0, ""))
    return (name, value) if name else None
