# SPDX-License-Identifier: Apache-2.0
"""Carries out one scenario and adds its captures to the scores.

Each run gives three captures, and up to two variants of each: one with frames removed (`missing`), one with every frame
doubled (`mirrored`). All three analyzers read every file."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import wiretale
from score.capture_frames import Frame, leave_out, mirror, read_frames
from score.claims import tcptrace_counts, wireshark_claims, wireshark_flags, wiretale_claims
from score.conditions import CONDITIONS, CUT, write_condition
from score.differences import Settled
from score.labels import Label, Observer
from score.limits.rows import Row
from score.offload_counts import Counted, count_offloads
from score.reasons import Cases, count_cases
from score.runs.scenarios import COMMITTED, NS3, OFFLOADS, Scenario
from score.runs.testbed import POINTS, Testbed
from score.sendings import Run, read_run
from score.tally import Miss, Tally
from shared.namespaces import PathError

ATTEMPTS = 3


class Capture(NamedTuple):
    point: str
    variant: str  # whole, missing or mirrored
    path: Path
    frames: list[Frame]  # packets that the file contains


@dataclass
class Fact:
    """Figures of one run for the table of scenarios."""

    scenario: Scenario
    packets: int
    retransmitted: int
    lost: dict[str, int]  # packets, by link
    counters: dict[str, int]
    causes_known: bool
    causes: Counter[str]


@dataclass
class Assessment:
    """Scores of all runs, and the frames with a wrong or missing claim."""

    tally: Tally = field(default_factory=Tally)  # of the committed scenarios
    groups: dict[str, dict[str, Tally]] = field(default_factory=dict)  # by group, then by run
    settled: Settled = field(default_factory=Settled)
    facts: list[Fact] = field(default_factory=list)
    offloads: list[Counted] = field(default_factory=list)
    limits: list[Row] = field(default_factory=list)
    misses: list[tuple[str, str, str, Miss]] = field(default_factory=list)  # scenario, point, variant
    cases: dict[tuple[str, str], Cases] = field(default_factory=lambda: defaultdict(Counter))  # by scenario and point

    def take(self, scenario: Scenario, run: Run) -> None:
        tally = self.groups.setdefault(scenario.group, {})[scenario.name] = Tally()
        if scenario.group == OFFLOADS:
            self.offloads += count_offloads(scenario.name, run, tally)
            return
        for capture in captures_of(scenario, run):
            self.take_capture(scenario, run, capture, tally)
        if scenario.group == COMMITTED:
            self.tally.add(tally)
        if scenario.conditions:
            self.take_conditions(scenario, run)
        causes = Counter(sending.cause or "unknown" for sending in run.sendings if sending.retransmits)
        lost = {f"link {link}": sum(run.fates(link).values()) - run.fates(link).get("delivered", 0) for link in (1, 2)}
        packets = len(run.frames["sender"])
        self.facts.append(Fact(scenario, packets, causes.total(), lost, run.counters, run.causes_known, causes))

    def take_conditions(self, scenario: Scenario, run: Run) -> None:
        """Scores wiretale alone: the captures differ in headers only."""
        for condition in CONDITIONS:
            tally = self.groups.setdefault(condition, {})[scenario.name] = Tally()
            for point in POINTS:
                path = run.folder / f"{point}-condition.pcap"
                answers = write_condition(condition, run.folder / f"{point}.pcap", path)
                observer = Observer(run, point, run.frames[point])
                observer.answers = observer.read_answers(answers)
                labels = list(under_condition(condition, observer.labels(), answers))
                misses = tally.take(point, "wiretale", labels, wiretale_claims(wiretale.analyze(path)))
                self.misses += [(scenario.name, f"{point}, {condition}", condition, miss) for miss in misses]
                self.cases[scenario.name, f"{point}, {condition}"].update(count_cases(scenario, labels))

    def take_capture(self, scenario: Scenario, run: Run, capture: Capture, tally: Tally) -> None:
        observer = Observer(run, capture.point, capture.frames, capture.variant == "mirrored")
        labels = list(observer.labels())
        trace = wiretale.analyze(capture.path)
        flags = wireshark_flags(capture.path)
        openers = {label.frame: label.opener for label in labels}
        place = "mirrored" if capture.variant == "mirrored" else capture.point
        misses = tally.take(place, "wiretale", labels, wiretale_claims(trace))
        self.misses += [(scenario.name, place, capture.variant, miss) for miss in misses]
        self.cases[scenario.name, place].update(count_cases(scenario, labels))
        tally.take(place, "Wireshark", labels, wireshark_claims(flags, openers))
        tally.take_counts(place, labels, tcptrace_counts(capture.path))
        if observer.numbers:
            claimed = sum(row["blocks_lost"] or 0 for row in trace.directions.rows())
            tally.take_lost_datagrams(place, observer.lost_datagrams(), claimed)
        if scenario.group not in NS3:
            self.settled.take(trace, capture.path, flags, {label.frame: label for label in labels})


def under_condition(condition: str, labels: Iterable[Label], frames: Iterable[Frame]) -> Iterator[Label]:
    """Marks the labels whose evidence the condition takes away."""
    tsvals = {frame.number: frame.tsval for frame in frames}
    for label in labels:
        label.cut = condition == CUT
        label.unordered = not label.cut and label.opener is not None and tsvals[label.frame] == tsvals.get(label.opener)
        yield label


def captures_of(scenario: Scenario, run: Run) -> Iterator[Capture]:
    """Yields the captures of a run, then the variants that are made from them."""
    for number, point in enumerate(POINTS):
        path = run.folder / f"{point}.pcap"
        yield Capture(point, "whole", path, run.frames[point])
        if scenario.capture_loss:
            missing = run.folder / f"{point}-missing.pcap"
            missed = leave_out(path, missing, scenario.capture_loss, scenario.seed + number)
            remaining = (frame for frame in run.frames[point] if frame.number not in missed)
            frames = [
                frame._replace(number=new.number) for frame, new in zip(remaining, read_frames(missing), strict=True)
            ]
            yield Capture(point, "missing", missing, frames)
        if scenario.mirror:
            mirrored = run.folder / f"{point}-mirrored.pcap"
            mirror(path, mirrored, scenario.seed + number)
            yield Capture(point, "mirrored", mirrored, read_frames(mirrored))


def carry_out(bed: Testbed, scenario: Scenario, folder: Path) -> Run:
    """Runs a scenario. If captures and links disagree, tries again, because a busy machine can drop packets itself."""
    for attempt in range(ATTEMPTS):
        try:
            bed.carry_out(scenario, folder)
            return read_run(folder)
        except PathError as error:
            if attempt == ATTEMPTS - 1:
                raise
            print(f"    {error}: trying again", file=sys.stderr, flush=True)
    raise AssertionError("not reached")
