# SPDX-License-Identifier: Apache-2.0
"""Exchanges beside the logs of both ends: plans that are drawn, and two runs in a lab, with and without loss."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import needs

needs.benchmarks()

from score.exchanges.__main__ import score_runs
from score.exchanges.drawn import ENDS, Plan, draw_plans
from score.runs.testbed import POINTS, missing

LOSSES = ("", " loss=3%")


def test_each_run_has_each_end_of_a_connection() -> None:
    first, second = draw_plans(7, 2)
    assert first != second and [first, second] == [*draw_plans(7, 2)]
    for plan in (first, second):
        assert {connection.end for connection in plan.connections} == set(ENDS)
        assert len({connection.port for connection in plan.connections}) == len(plan.connections)


def short_plan(loss: str) -> Plan:
    """A round trip of 40 ms, and three turns at most in each connection."""
    (plan,) = draw_plans(7, 1)
    links = dict.fromkeys(("base_first", "base_second"), f"rate=100Mbit delay=10ms{loss}")
    connections = [replace(connection, turns=connection.turns[-3:]) for connection in plan.connections]
    return replace(plan, scenario=replace(plan.scenario, name=f"short{loss.strip()}", **links), connections=connections)


@pytest.mark.xdist_group("counted")
def test_every_request_is_there_with_its_outcome_and_time(tmp_path: Path) -> None:
    """With loss a part of the time may be wrong (docs/measured/exchanges.md), but no request and no outcome."""
    needs.skip_without(missing(), needs.network_namespaces())
    clean, lossy = score_runs([short_plan(loss) for loss in LOSSES], tmp_path)
    assert [text for compared in clean for text in compared.wrong] == []
    for compared in (*clean, *lossy):
        counts = Counter[tuple[str, str]]()
        for (kind, verdict), count in compared.counts.items():
            counts[kind if kind in ("requests", "outcome", "code") else "parts", verdict] += count
        assert {verdict for kind, verdict in counts if kind != "parts"} == {"right"}, compared.wrong
        assert counts["parts", "right"] > 20
    assert [compared.point for compared in lossy] == [*POINTS]
