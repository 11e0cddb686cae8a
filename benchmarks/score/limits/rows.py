# SPDX-License-Identifier: Apache-2.0
"""Runs the scenarios of limits and compares each capture with the sender's kernel: a row per capture."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import wiretale
from score.limits.drawn import draw_scenarios
from score.limits.link_log import read_bottleneck
from score.limits.parts import PARTS, claimed_parts, true_parts
from score.limits.scenarios import SCENARIOS, LimitScenario
from score.limits.testbed import SAMPLES, new_limit_testbed
from score.limits.truth import Shares, claimed_shares, greatest_difference, is_right, read_samples, true_shares
from score.runs.testbed import POINTS, SENDER
from shared.namespaces import PathError

GOAL, NEAR = 0.95, 0.1  # share of rows that are right; difference of shares
SHAPED = "behind the sender's shaper"


@dataclass
class Row:
    """A capture: the true shares, and those that wiretale claims (None: not known)."""

    scenario: LimitScenario
    point: str
    true: Shares
    claimed: Shares | None
    true_parts: Shares | None = None  # None behind a shaper, whose queue is in no log
    claimed_parts: Shares | None = None

    @property
    def place(self) -> str:
        return SHAPED if self.scenario.shaper and self.point == "sender" else self.point

    @property
    def right(self) -> bool:
        return bool(self.claimed and is_right(self.true, self.claimed))

    @property
    def difference(self) -> float | None:
        return greatest_difference(self.true, self.claimed) if self.claimed else None

    @property
    def near(self) -> bool:
        return self.difference is not None and self.difference <= NEAR

    @property
    def parts_right(self) -> bool | None:
        """Whether the greatest part of the time is right; None if the log or the capture cannot decide it."""
        if not self.true_parts or not self.claimed_parts:
            return None
        return is_right(self.true_parts, self.claimed_parts, PARTS)

    def __str__(self) -> str:
        verdict = "not known" if not self.claimed else "right" if self.right else "WRONG"
        off = "" if self.difference is None else f"{100 * self.difference:.0f} points"
        cells = [self.scenario.name, self.place, verdict, off, f"kernel: {listed(self.true)}"]
        cells.append(f"wiretale: {listed(self.claimed) if self.claimed else '–'}")
        if self.true_parts:
            verdict = {True: "right", False: "WRONG", None: "not known"}[self.parts_right]
            claimed = listed(self.claimed_parts) if self.claimed_parts else "–"
            cells.append(f"parts {verdict}: log: {listed(self.true_parts)}; wiretale: {claimed}")
        return "\t".join(cells)


def listed(shares: Shares) -> str:
    """Returns the limits with 1% or more, the greatest first."""
    parts = sorted(((share, name) for name, share in shares.items() if share >= 0.01), reverse=True)
    return ", ".join(f"{name} {100 * share:.0f}%" for share, name in parts)


def rows_of(scenario: LimitScenario, folder: Path) -> Iterator[Row]:
    samples = read_samples((folder / SAMPLES).read_text())
    true, link = true_shares(samples), None if scenario.shaper else read_bottleneck(folder)
    parts = true_parts(samples, link) if link else None
    for point in POINTS:
        trace = wiretale.analyze(folder / f"{point}.pcap")
        data = max(
            (row for row in trace.directions.rows() if row["source"] == SENDER),
            key=lambda row: row["payload_bytes"] or 0,
        )
        flow = next(row for row in trace.flows.rows() if row["flow"] == data["flow"])
        yield Row(scenario, point, true, claimed_shares(data), parts, claimed_parts(flow, data))


def scenarios_of(only: Collection[str], draw: int, drawn: int) -> list[LimitScenario]:
    """Returns the scenarios, some of them drawn, whose names contain one of these words; without words, all."""
    every = [*SCENARIOS, *draw_scenarios(draw, drawn)]
    return [scenario for scenario in every if not only or any(word in scenario.name for word in only)]


def score_limits(scenarios: Iterable[LimitScenario], folder: Path, again: bool) -> list[Row]:
    """Runs and scores the scenarios. If `again` is set, runs that `folder` holds from before are scored without a new run."""
    scored = []
    with new_limit_testbed() as bed:
        for scenario in scenarios:
            path = folder / scenario.name
            if not again or not (path / SAMPLES).exists():
                try:
                    bed.measure(scenario, path)
                except PathError as error:
                    print(f"    {scenario.name}: {error}: trying again", file=sys.stderr, flush=True)
                    bed.measure(scenario, path)
            rows = list(rows_of(scenario, path))
            print(*rows, sep="\n", flush=True)
            scored += rows
    return scored
