# SPDX-License-Identifier: Apache-2.0
"""Compares retransmissions with the reviewed labels of TCPRS (pull request 33 of zeek/zeek), real captures of 2010 to 2014.

The labels are another tool's output that its author reviewed, so they are a second opinion and no truth. A folder must
hold captures, and for each with retransmissions a log `*.NAME.tcpretransmissions.log` of Zeek's format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import wiretale
from score.claims import wireshark_claims, wireshark_flags, wiretale_claims

LABEL_RTO = "1"  # of the field `rtype`


@dataclass
class Agreement:
    """Retransmissions of one tool beside the labels."""

    agreed: int = 0
    extra: int = 0
    rto: int = 0  # labelled as an RTO, and called a timeout


@dataclass
class Opinion:
    captures: int = 0
    labelled: int = 0
    labelled_rto: int = 0
    tools: dict[str, Agreement] = field(default_factory=lambda: {"wiretale": Agreement(), "Wireshark": Agreement()})

    def rows(self) -> Iterator[tuple[object, ...]]:
        for tool, agreement in self.tools.items():
            yield tool, self.labelled, agreement.agreed, agreement.extra, f"{agreement.rto} of {self.labelled_rto}"


def read_labels(log: Path) -> Iterator[tuple[int, bool]]:
    """Yields the time in µs and whether it was an RTO, of each labelled retransmission."""
    fields: list[str] = []
    for line in log.read_text("utf-8").splitlines():
        if line.startswith("#fields"):
            fields = line.split("\t")[1:]
        elif line and not line.startswith("#"):
            row = dict(zip(fields, line.split("\t"), strict=True))
            seconds, fraction = row["ts"].split(".")
            yield int(seconds) * 10**6 + int(fraction.ljust(6, "0")[:6]), row["rtype"] == LABEL_RTO


def frame_times(trace: wiretale.Trace) -> dict[int, int]:
    """Returns the time of each frame in µs."""
    return {row["frame"]: ns // 1000 for row in trace.packets().rows() if (ns := row["time_ns"]) is not None}


def compare_labels(folder: Path) -> Opinion:
    opinion = Opinion()
    for path in sorted(folder.glob("*.pcap")):
        opinion.captures += 1
        logs = folder.glob(f"*.{path.stem}.tcpretransmissions.log")
        labels = [label for log in logs for label in read_labels(log)]
        opinion.labelled += len(labels)
        opinion.labelled_rto += sum(is_rto for _, is_rto in labels)
        trace = wiretale.analyze(path)
        times = frame_times(trace)
        claims = {
            "wiretale": wiretale_claims(trace),
            "Wireshark": wireshark_claims(wireshark_flags(path), {}),
        }
        for tool, by_frame in claims.items():
            retransmissions = {frame: claim for frame, claim in by_frame.items() if "retransmission" in claim.verdicts}
            at = Counter(times[frame] for frame in retransmissions)
            timeouts = {times[frame] for frame, claim in retransmissions.items() if claim.cause == "timeout"}
            shared = at & Counter(time for time, _ in labels)
            agreement = opinion.tools[tool]
            agreement.agreed += shared.total()
            agreement.extra += at.total() - shared.total()
            agreement.rto += sum(is_rto and time in timeouts for time, is_rto in labels)
    return opinion
