# SPDX-License-Identifier: Apache-2.0
"""Scores wiretale, Wireshark and tcptrace against a path that knows the truth, and writes docs/accuracy.md.

    make accuracy

Needs root (network namespaces), wiretale-link, tshark and tcptrace. Exits with 1 when a score falls below the goal.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from score.assess import Assessment, carry_out
from score.page import shortfalls, write_page
from score.scenarios import SCENARIOS, Scenario
from score.testbed import missing, new_testbed


def choose(arguments: argparse.Namespace) -> list[Scenario]:
    """The scenarios asked for."""
    chosen = [scenario for scenario in SCENARIOS if scenario.short or not arguments.short]
    return [
        replace(scenario, chance=arguments.chance)
        for scenario in chosen
        if not arguments.only or scenario.name in arguments.only
    ]


def assess(scenarios: list[Scenario], folder: Path, again: bool) -> Assessment:
    """Runs and scores them; with `again` the runs that are in the folder already."""
    from score.sendings import read_run

    found = Assessment()
    with new_testbed() as bed:
        for scenario in scenarios:
            begin = time.monotonic()
            kept = folder / scenario.name
            run = read_run(kept) if again and (kept / "counters.json").exists() else carry_out(bed, scenario, kept)
            ran = time.monotonic()
            found.take(scenario, run)
            took = f"{ran - begin:.1f} s, scored in {time.monotonic() - ran:.1f} s"
            print(f"==> {scenario.name}: {found.facts[-1].packets} packets, {took}", file=sys.stderr, flush=True)
    return found


def print_misses(found: Assessment) -> None:
    """Each frame on which wiretale was wrong or silent."""
    for scenario, point, variant, miss in found.misses:
        how = "wrong" if miss.wrong else "not found"
        print(f"{scenario}\t{point}\t{variant}\t{miss.kind}\t{how}\t{miss.label}\t{miss.claim}")


def main() -> int:
    """Parses, runs, writes."""
    parser = argparse.ArgumentParser(description="scores the verdicts against the truth")
    parser.add_argument("--short", action="store_true", help="the fixed short set alone")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these scenarios alone")
    parser.add_argument("--chance", type=int, default=0, metavar="N", help="other losses than those of the page")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep captures and truth")
    parser.add_argument("--again", action="store_true", help="score what --keep kept, without new runs")
    parser.add_argument("--misses", action="store_true", help="list each frame on which wiretale fell short")
    parser.add_argument("--output", type=Path, default=Path("docs/accuracy.md"))
    arguments = parser.parse_args()
    if problem := missing():
        print(f"accuracy: {problem}", file=sys.stderr)
        return 5
    from wiretale.analyzer.dissector import Dissector

    with tempfile.TemporaryDirectory(prefix="wtacc") as temporary:
        found = assess(choose(arguments), arguments.keep or Path(temporary), arguments.again)
    if arguments.misses:
        print_misses(found)
    write_page(found, Dissector().version(), arguments.output)
    short = list(shortfalls(found))
    print("\n".join(short) if short else "every score reaches the goal", file=sys.stderr)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
