# SPDX-License-Identifier: Apache-2.0
"""Compares the time that findings name with what pairs of runs show, with and without the fault; writes docs/measured/savings.md.

    python -m score.savings [--draw N] [--repeats K] [--keep DIR [--again]]

Needs root (network namespaces) and wiretale-link. The exit status is 1 if the median ratio of a kind whose findings state a
saving is outside the bounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from random import randrange

import wiretale
from score.limits.scenarios import LimitScenario
from score.limits.testbed import SAMPLES, LimitTestbed
from score.page import filled
from score.runs.host_talk import PORT
from score.runs.testbed import POINTS, RECEIVER, missing
from score.savings.pairs import KINDS, Pair, Turns, draw_pairs
from shared import namespaces
from shared.markdown import table
from shared.namespaces import listens, run, wait_until
from wiretale.analyzer.rows import FindingRow

BOUNDS = (0.7, 1.4)  # of the median ratio
LEAST_SHARE = 0.05  # of the transfer: a saving below it is none
TALK, TEXT = Path(__file__).with_name("talk.py"), Path(__file__).parents[1] / "text" / "savings.md"


class PairTestbed(LimitTestbed):
    def transfer(self, scenario: LimitScenario) -> str:
        if not isinstance(scenario.talk, Turns):
            return super().transfer(scenario)
        order = json.dumps(asdict(scenario.talk))
        served = self.inside("receiver", sys.executable, str(TALK), "serve", "-", order)
        server = subprocess.Popen(served)
        try:
            wait_until(lambda: listens(self.names["receiver"], PORT), "the server listens")
            run(*self.inside("sender", sys.executable, str(TALK), "ask", RECEIVER, order))
            server.wait(timeout=20)
        finally:
            server.kill()
        wait_until(self.is_quiet, "the connection is closed", 15)
        return "turns\n"


@dataclass
class Score:
    """The true saving of a pair, and the time that its findings name at each capture point, in s (None: there is no finding)."""

    pair: Pair
    true_s: float
    life_s: float
    named_s: dict[str, float | None]
    states: bool  # whether a finding states a saving (saving_ns)

    def ratio(self, point: str) -> float | None:
        """Returns named / true. If neither is a saving worth a word it is 1, if only the named one is, infinite."""
        named, least = self.named_s[point], LEAST_SHARE * self.life_s
        if named is None:
            return None
        if self.true_s < least:
            return 1.0 if named < least else float("inf")
        return named / self.true_s


def life_s(trace: wiretale.Trace) -> float:
    """Returns the length of the only flow."""
    (flow,) = trace.flows.rows()
    return ((flow["last_ns"] or 0) - (flow["first_ns"] or 0)) / 1e9


def findings_of(trace: wiretale.Trace, codes: Sequence[str]) -> list[FindingRow]:
    """Returns the findings with one of these codes that cost time."""
    return [row for row in trace.findings.rows() if row["code"] in codes and row["cost_unit"] == "seconds"]


def score(pair: Pair, folder: Path, run_one: Callable[[LimitScenario], None]) -> Score:
    for scenario in (pair.faulty, pair.sound):
        run_one(scenario)
    traces = {point: wiretale.analyze(folder / pair.faulty.name / f"{point}.pcap") for point in POINTS}
    faulty_s = life_s(traces["sender"])
    sound_s = life_s(wiretale.analyze(folder / pair.sound.name / "sender.pcap"))
    findings = {point: findings_of(trace, pair.codes) for point, trace in traces.items()}
    named = {point: max((row["cost"] or 0.0 for row in rows), default=None) for point, rows in findings.items()}
    states = any(row["saving_ns"] is not None for row in chain.from_iterable(findings.values()))
    return Score(pair, faulty_s - sound_s, faulty_s, named, states)


def score_pairs(pairs: Sequence[Pair], folder: Path, again: bool) -> Iterator[Score]:
    with namespaces.namespaces("wtsav", *POINTS) as names:
        bed = PairTestbed(names)
        bed.make()

        def run_one(scenario: LimitScenario) -> None:
            if not again or not (folder / scenario.name / SAMPLES).exists():
                bed.measure(scenario, folder / scenario.name)

        for pair in pairs:
            scored = score(pair, folder, run_one)
            print("\t".join(map(str, pair_row(scored))), flush=True)
            yield scored


def show(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def pair_row(scored: Score) -> tuple[str, ...]:
    named = (show(scored.named_s[point]) for point in POINTS)
    return scored.pair.kind, scored.pair.faulty.description, show(scored.life_s), show(scored.true_s), *named


def ratios(scores: Sequence[Score], kind: str, point: str) -> list[float]:
    """Returns the ratios of the pairs of a kind that have a finding, the least first."""
    values = (scored.ratio(point) for scored in scores if scored.pair.kind == kind)
    return sorted(value for value in values if value is not None)


def kind_row(scores: Sequence[Score], kind: str) -> Iterator[str]:
    yield from (kind, str(sum(scored.pair.kind == kind for scored in scores)))
    for point in POINTS:
        named = ratios(scores, kind, point)
        yield (
            f"{statistics.median(named):.2f} ({named[0]:.2f} to {named[-1]:.2f}, {len(named)})"
            if named
            else "no finding"
        )
    yield "yes" if states(scores, kind) else "no"


def states(scores: Sequence[Score], kind: str) -> bool:
    return any(scored.states for scored in scores if scored.pair.kind == kind)


def outside(scores: Sequence[Score]) -> list[str]:
    """Returns a line for each kind that states a saving, and each point at which its median ratio is outside the bounds."""
    medians = {
        f"{kind}, {point}": statistics.median(named)
        for kind in KINDS
        if states(scores, kind)
        for point in POINTS
        if (named := ratios(scores, kind, point))
    }
    return [f"- {name}: {median:.2f}" for name, median in medians.items() if not BOUNDS[0] <= median <= BOUNDS[1]]


def main() -> int:
    parser = argparse.ArgumentParser(description="compare the time that findings name with runs without the fault")
    parser.add_argument("--draw", type=int, metavar="N", help="repeat the pairs of this draw [a new one]")
    parser.add_argument("--repeats", type=int, default=5, metavar="K", help="pairs of each kind [5]")
    parser.add_argument("--only", nargs="+", metavar="KIND", help="run only these kinds, write no page")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep captures")
    parser.add_argument("--again", action="store_true", help="score the runs in --keep again")
    parser.add_argument("--output", type=Path, default=Path("docs/measured/savings.md"))
    arguments = parser.parse_args()
    draw = randrange(10**6) if arguments.draw is None else arguments.draw
    if problem := missing():
        print(f"savings: {problem}", file=sys.stderr)
        return 5
    pairs = [pair for pair in draw_pairs(draw, arguments.repeats) if pair.kind in (arguments.only or KINDS)]
    with tempfile.TemporaryDirectory(prefix="wtsav") as temporary:
        scores = list(score_pairs(pairs, arguments.keep or Path(temporary), arguments.again))
    lines = outside(scores)
    parts = {
        "DRAW": draw,
        "PAIRS": len(scores),
        "KINDS": table(
            "kind | pairs | at the sender | at the tracer | at the receiver | saving_ns",
            (tuple(kind_row(scores, kind)) for kind in KINDS),
        ),
        "SCORES": table(
            "kind | fault; path | life | saved | named: sender | tracer | receiver", map(pair_row, scores), 2
        ),
        "OUTSIDE": "\n".join(lines) or "None in this run.",
    }
    if not arguments.only:
        arguments.output.write_text(filled(TEXT, parts), "utf-8")
    print("\n".join(lines) if lines else "every kind is within the bounds", file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
