# SPDX-License-Identifier: Apache-2.0
"""Scores wiretale, Wireshark and tcptrace against a path that logs the fate of each packet, and writes docs/measured/accuracy.md.

    make accuracy
    python -m score --limits --keep DIR [--again] [--draw N] [--only WORD ...]

The second scores limits alone, against the sender's kernel. It prints a line per capture and, without --only, replaces the
section on limits.

Needs root (network namespaces), wiretale-link, tshark and tcptrace. The exit status is 1 if a score is below the goal or below
that of a peer.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from random import randrange

from score.assess import Assessment, carry_out
from score.limits import page as limits_page
from score.limits import rows as limits
from score.page import below_goal, shortfalls, write_page
from score.runs import offloads, second_stack
from score.runs.drawn import draw_scenarios
from score.runs.scenarios import DRAWN, NS3, OFFLOADS, SCENARIOS, Scenario
from score.runs.testbed import missing, new_testbed


def choose(arguments: argparse.Namespace) -> list[Scenario]:
    scenarios = [scenario for scenario in SCENARIOS if scenario.short or not arguments.short]
    if not arguments.short:
        scenarios += [*draw_scenarios(arguments.draw, arguments.drawn), *offloads.SCENARIOS]
        if second_stack.version():
            scenarios += second_stack.scenarios(arguments.draw, arguments.drawn)
        else:
            print(f"accuracy: {second_stack.HOW_TO}", file=sys.stderr)
    return [
        replace(scenario, chance=arguments.chance)
        for scenario in scenarios
        if not arguments.only or scenario.name in arguments.only
    ]


def assess(scenarios: list[Scenario], folder: Path, again: bool) -> Assessment:
    """Runs and scores the scenarios. If `again` is set, runs that `folder` holds from before are scored without a new run."""
    from score.sendings import read_run

    assessment = Assessment()
    recorded = {
        scenario.name for scenario in scenarios if again and (folder / scenario.name / "counters.json").exists()
    }
    recorded |= second_stack.simulate(
        [scenario for scenario in scenarios if scenario.group in NS3 and scenario.name not in recorded], folder
    )
    with new_testbed() as bed, offloads.new_offload_testbed() as offload_bed:
        for scenario in scenarios:
            if scenario.group in NS3 and scenario.name not in recorded:
                print(f"==> {scenario.name}: ns-3 failed, see ns3.log of --keep", file=sys.stderr, flush=True)
                continue
            begin = time.monotonic()
            path = folder / scenario.name
            run = (
                read_run(path)
                if scenario.name in recorded
                else carry_out(offload_bed if scenario.group == OFFLOADS else bed, scenario, path)
            )
            ran = time.monotonic()
            assessment.take(scenario, run)
            took = f"{ran - begin:.1f} s, scored in {time.monotonic() - ran:.1f} s"
            print(f"==> {scenario.name}: {len(run.frames['sender'])} packets, {took}", file=sys.stderr, flush=True)
    return assessment


def score_limits_alone(arguments: argparse.Namespace, folder: Path) -> int:
    scenarios = limits.scenarios_of(arguments.only or (), arguments.draw, arguments.drawn_limits)
    rows = limits.score_limits(scenarios, folder, arguments.again)
    if not arguments.only:
        limits_page.replace_section(rows, arguments.output)
    short = list(limits_page.shortfalls(rows))
    print("\n".join(short) if short else "every limit reaches the goal", file=sys.stderr)
    return 1 if short else 0


def wireshark_versions() -> str:
    """Returns the version of the yardstick, and that of the host if .ci/wireshark found it too old."""
    from wiretale.analyzer.verify.tshark import Dissector

    host = os.environ.get("HOST_WIRESHARK")
    return Dissector().version() + (f" (that of the host is {host})" if host else "")


def print_misses(assessment: Assessment) -> None:
    """Prints each frame for which wiretale made a wrong claim or none."""
    for scenario, point, variant, miss in assessment.misses:
        how = "wrong" if miss.wrong else "not found"
        print(f"{scenario}\t{point}\t{variant}\t{miss.kind}\t{how}\t{miss.label}\t{miss.claim}")


def main() -> int:
    parser = argparse.ArgumentParser(description="score the verdicts against the log of an emulated path")
    parser.add_argument("--short", action="store_true", help="run only the short set")
    parser.add_argument("--limits", action="store_true", help="score only limits of throughput")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="run only these scenarios; with --limits, those with such a word"
    )
    parser.add_argument("--chance", type=int, default=0, metavar="N", help="seed of the random losses; the page has 0")
    parser.add_argument("--draw", type=int, metavar="N", help="repeat the drawn scenarios of this draw [a new one]")
    parser.add_argument("--drawn", type=int, default=16, metavar="K", help="number of drawn scenarios [16]")
    parser.add_argument(
        "--drawn-limits", type=int, default=24, metavar="K", help="number of drawn scenarios of limits [24]"
    )
    labelled = Path("../shared/labelled/tcprs")
    parser.add_argument(
        "--labelled", type=Path, default=labelled, metavar="DIR", help=f"captures of TCPRS [{labelled}]"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep captures and logs")
    parser.add_argument("--again", action="store_true", help="score the runs in --keep again")
    parser.add_argument(
        "--misses", action="store_true", help="list each frame with a wrong or missing claim of wiretale"
    )
    parser.add_argument("--output", type=Path, default=Path("docs/measured/accuracy.md"))
    arguments = parser.parse_args()
    if arguments.draw is None:
        arguments.draw = randrange(10**6)
    if problem := missing():
        print(f"accuracy: {problem}", file=sys.stderr)
        return 5
    with tempfile.TemporaryDirectory(prefix="wtacc") as temporary:
        folder = arguments.keep or Path(temporary)
        if arguments.limits:
            return score_limits_alone(arguments, folder)
        assessment = assess(choose(arguments), folder, arguments.again)
        if not arguments.short and not arguments.only:
            scenarios = limits.scenarios_of((), arguments.draw, arguments.drawn_limits)
            assessment.limits = limits.score_limits(scenarios, folder, arguments.again)
    if arguments.misses:
        print_misses(assessment)
    write_page(assessment, wireshark_versions(), arguments.draw, arguments.labelled, arguments.output)
    short = [*shortfalls(assessment), *below_goal(assessment, DRAWN), *limits_page.shortfalls(assessment.limits)]
    print("\n".join(short) if short else "every score reaches the goal", file=sys.stderr)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
