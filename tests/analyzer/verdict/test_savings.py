# SPDX-License-Identifier: Apache-2.0
"""The savings that pairs of runs show: ratios, pairs that differ in the fault alone, and one pair in a lab."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import needs

needs.benchmarks()

from score.runs.testbed import POINTS, missing
from score.savings.__main__ import Score, outside, score_pairs
from score.savings.pairs import KINDS, Turns, draw_pairs


def test_pairs_differ_in_the_fault_alone() -> None:
    pairs = list(draw_pairs(7, 2))
    assert [pair.kind for pair in pairs] == [kind for kind in KINDS for _ in range(2)]
    for pair in pairs:
        fault = {"name": "", "description": "", "talk": None, "first": "", "second": ""}
        assert replace(pair.faulty, **fault) == replace(pair.sound, **fault) and pair.faulty != pair.sound
        assert (pair.faulty.talk != pair.sound.talk) != (pair.faulty.first + pair.faulty.second != "")


@pytest.mark.parametrize(
    ("true_s", "named_s", "ratio"),
    [(2.0, 1.0, 0.5), (0.1, 0.2, 1.0), (0.1, 1.0, float("inf")), (2.0, None, None)],
)
def test_a_ratio_is_of_named_to_true(true_s: float, named_s: float | None, ratio: float | None) -> None:
    (pair,) = (pair for pair in draw_pairs(7, 1) if pair.kind == "RTO")
    scored = Score(pair, true_s, 10.0, dict.fromkeys(POINTS, named_s), states=True)
    assert scored.ratio("sender") == ratio
    assert len(outside([scored])) == (0 if ratio in (None, 1.0) else len(POINTS))
    assert not outside([replace(scored, states=False)])


@pytest.mark.xdist_group("counted")
def test_a_server_that_waits_is_named_with_the_time_that_it_takes(tmp_path: Path) -> None:
    needs.skip_without(missing(), needs.network_namespaces())
    (pair,) = (pair for pair in draw_pairs(7, 1) if pair.kind == "slow server")
    slow = replace(pair.faulty, talk=Turns(turns=5, think_s=0.3))
    sound = replace(pair.sound, talk=Turns(turns=5))
    (scored,) = score_pairs([replace(pair, faulty=slow, sound=sound)], tmp_path, again=False)
    assert scored.states and scored.named_s["sender"] == pytest.approx(1.5, abs=0.2)
    assert scored.true_s == pytest.approx(1.5, rel=0.4)
