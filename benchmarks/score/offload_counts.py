# SPDX-License-Identifier: Apache-2.0
"""Scores captures with offloads by counts of segments on the wire.

A packet of such a capture is several segments, so no frame has a label. The counts of a run are compared with those of the wire,
as with tcptrace: a count is right up to the number of true cases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import wiretale
from score.labels import Label, Observer
from score.runs.offloads import HOSTS
from score.runs.testbed import SENDER
from score.sendings import Run
from score.tally import KINDS, Kind, Tally

# Columns of `directions` that count segments on the wire.
COLUMNS = {
    "retransmitted": "wire_retransmissions",
    "lost upstream": "wire_lost_upstream",
    "lost downstream": "wire_lost_downstream",
    "spurious": "wire_spurious",
}


@dataclass
class Counted:
    """Counts of one capture: on the wire and as claimed."""

    scenario: str
    point: str
    packets: int  # with data, in the capture
    segments: tuple[int, int]
    by_kind: dict[str, tuple[int, int]]


def true_counts(kind: Kind, labels: Iterable[Label]) -> tuple[int, int]:
    """Returns how many labels a capture can show to be of a kind, and how many may be."""
    applicable = [label for label in labels if kind.applies_to(label)]
    decided = sum(bool(kind.true(label)) and kind.decidable(label) for label in applicable)
    return decided, sum(kind.true(label) is not False for label in applicable)


def count_offloads(scenario: str, run: Run, tally: Tally) -> list[Counted]:
    """Adds the captures of both hosts to the scores, and returns their counts."""
    counted = []
    for point, name in HOSTS.items():
        directions = wiretale.analyze(run.folder / f"{name}.pcap").directions
        labels = list(Observer(run, point, run.frames[point]).labels())
        by_kind = {}
        for kind in KINDS:
            if kind.name in COLUMNS:
                there, most = true_counts(kind, labels)
                counted_packets = sum(value or 0 for value in directions.column(COLUMNS[kind.name]))
                tally.scores[kind.name, point, "wiretale"].add(
                    counted_packets, min(counted_packets, most), there, min(counted_packets, there)
                )
                by_kind[kind.name] = (there, counted_packets)
        data = [row for row in directions.rows() if row["source"] == SENDER]
        sent = sum(frame.source == SENDER and frame.length > 0 for frame in run.frames[point])
        segments = (sent, sum(row["wire_segments"] or 0 for row in data))
        counted.append(Counted(scenario, point, sum(row["data_packets"] or 0 for row in data), segments, by_kind))
    return counted
