# SPDX-License-Identifier: Apache-2.0
"""Compares exchanges with the logs of both ends in drawn runs with loss and delay; writes docs/measured/exchanges.md.

    python -m score.exchanges [--draw N] [--runs K] [--keep DIR [--again]]

Needs root (network namespaces) and wiretale-link. The exit status is 1 if a request is missing, or an outcome or a part of the
time is wrong.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import randrange

from score.exchanges.compare import ON_TIME_NS, Compared, compare, lateness
from score.exchanges.drawn import Plan, draw_plans
from score.exchanges.testbed import LOGS, ExchangeTestbed
from score.page import filled
from score.runs.testbed import POINTS, missing
from shared import namespaces
from shared.markdown import table

TEXT = Path(__file__).parents[1] / "text" / "exchanges.md"
TRIALS = 4  # of a run, until this machine delayed no packet
KINDS = (
    "requests",
    "outcome",
    "code",
    "attempts",
    "connect",
    "waited",
    "pause",
    "request_pause",
    "pause and request_pause",
    "server",
    "response_pause",
    "server and response_pause",
)


def measure(bed: ExchangeTestbed, plan: Plan, folder: Path) -> None:
    """Keeps the trial in which this machine delayed packets least."""
    least = float("inf")
    for trial in range(TRIALS):
        place = folder.with_name(f"{folder.name}.{trial}")
        bed.measure(plan, place)
        if (late := lateness(place)) < least:
            least = late
            shutil.rmtree(folder, ignore_errors=True)
            place.rename(folder)
        else:
            shutil.rmtree(place)
        if least <= ON_TIME_NS:
            break


def score_runs(plans: Iterable[Plan], folder: Path, again: bool = False) -> Iterator[list[Compared]]:
    with namespaces.namespaces("wtexc", *POINTS) as names:
        bed = ExchangeTestbed(names)
        bed.make()
        for plan in plans:
            place = folder / plan.scenario.name
            if not again or not (place / LOGS).exists():
                measure(bed, plan, place)
            scored = [*compare(plan, place)]
            print("\t".join(run_row(scored, place)), flush=True)
            yield scored


def run_row(scored: Sequence[Compared], folder: Path) -> tuple[str, ...]:
    plan = scored[0].plan
    count = sum(scored[0].counts[what, verdict] for what in ("outcome",) for verdict in ("right", "wrong"))
    lost = sum(len(lost) for lost in scored[0].lost.values())
    wrong = [str(len(compared.wrong)) for compared in scored]
    return plan.scenario.description, str(count), str(lost), f"{lateness(folder) / 1e6:.1f}", *wrong


def part_rows(scores: Sequence[Compared]) -> Iterator[tuple[object, ...]]:
    for kind in KINDS:
        cells = []
        for point in POINTS:
            counts = Counter[str]()
            for compared in scores:
                if compared.point == point:
                    counts.update({verdict: compared.counts[kind, verdict] for verdict in ("right", "wrong", "null")})
            cells += [f"{counts['right']}, {counts['wrong']}, {counts['null']}" if counts.total() else "–"]
        yield kind, *cells


def main() -> int:
    parser = argparse.ArgumentParser(description="compare exchanges with the logs of both ends")
    parser.add_argument("--draw", type=int, metavar="N", help="repeat the runs of this draw [a new one]")
    parser.add_argument("--runs", type=int, default=20, metavar="K", help="number of runs [20]")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep captures")
    parser.add_argument("--again", action="store_true", help="score the runs in --keep again")
    parser.add_argument("--output", type=Path, default=Path("docs/measured/exchanges.md"))
    arguments = parser.parse_args()
    draw = randrange(10**6) if arguments.draw is None else arguments.draw
    if problem := missing():
        print(f"exchanges: {problem}", file=sys.stderr)
        return 5
    with tempfile.TemporaryDirectory(prefix="wtexc") as temporary:
        folder = arguments.keep or Path(temporary)
        runs = [*score_runs(draw_plans(draw, arguments.runs), folder, arguments.again)]
        rows = [run_row(scored, folder / scored[0].plan.scenario.name) for scored in runs]
    scores = [compared for scored in runs for compared in scored]
    wrong = [f"- {text}" for compared in scores for text in compared.wrong]
    parts = {
        "DRAW": draw,
        "RUNS": len(runs),
        "PARTS": table("part | at the client | at the tracer | at the server", part_rows(scores)),
        "ROWS": table("path | requests | lost segments | late, ms | wrong: client | tracer | server", rows, 1),
        "WRONG": "\n".join(wrong) or "None in this run.",
    }
    arguments.output.write_text(filled(TEXT, parts), "utf-8")
    print("\n".join(wrong) if wrong else "every exchange is as the logs have it", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
