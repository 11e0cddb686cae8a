# SPDX-License-Identifier: Apache-2.0
"""Reconstructs each transmission of the sender and how far it came, from the links' logs, three captures and the kernel trace.

A packet is the same at two capture points if its key is (capture_frames.py). Captures and links must agree on the number of
packets that passed between them; if they do not, the run is rejected."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from score.capture_frames import FIN, SYN, TCP, Frame, read_frames
from score.runs.kernel_trace import Resend, read_resends
from score.runs.testbed import POINTS, SENDER
from shared.namespaces import PathError

SIMULATED_CAUSES = "causes.csv"  # in the folder of a run of ns-3, instead of the trace of a kernel
# Packets that entered a link in each direction, and copies that left it.
CARRIED = """
select direction, count(*) as came, sum(copies)::bigint as went
from read_csv(?, all_varchar = false, sample_size = -1)
where protocol in (6, 17) and index is not null and fate <> 'unfinished' group by direction
"""
FATES = """
select fate, count(*) as packets from read_csv(?, all_varchar = false, sample_size = -1)
where protocol in (6, 17) and direction = 0 group by fate order by packets desc
"""


@dataclass
class Sending:
    """A packet with data, SYN or FIN that the sender sent, and its fate."""

    index: int  # in order of sending
    flow: int  # port of the sender
    start: int  # offset in the stream; the SYN is byte 0
    end: int  # including the FIN
    time_ns: int
    tsval: int | None
    retransmits: bool = False  # carries a byte that was sent before
    cause: str | None = None  # from the kernel
    came: dict[str, int] = field(default_factory=dict)  # time of its first passage at each capture point
    earlier: list[Sending] = field(default_factory=list)  # sendings that carried any of its bytes
    later: int = 0  # number of later sendings that carried any of them
    refused: bool = False  # by the receiver's PAWS check (RFC 7323 section 5.3)

    @property
    def delivered_ns(self) -> int | None:
        """Time of arrival at the receiver, None if it never arrived or was refused."""
        return None if self.refused else self.came.get("receiver")


@dataclass
class Run:
    """The true course of a run."""

    folder: Path
    frames: dict[str, list[Frame]]
    sendings: list[Sending]
    of_key: dict[tuple[object, ...], list[Sending]]
    counters: dict[str, int]
    causes_known: bool

    def fates(self, link: int) -> dict[str, int]:
        """Returns the number of packets towards the receiver by their fate on a link."""
        return dict(duckdb.execute(FATES, [str(self.folder / f"link{link}.csv")]).fetchall())


def check_carried(folder: Path, frames: dict[str, list[Frame]]) -> None:
    """Raises PathError unless each capture has exactly the packets that the links report for its point."""
    passed = {}
    for link in (1, 2):
        rows = duckdb.execute(CARRIED, [str(folder / f"link{link}.csv")]).fetchall()
        passed[link] = {direction: (came, went) for direction, came, went in rows}
    expected = {
        "sender": (passed[1][0][0], passed[1][1][1]),
        "tracer": (passed[1][0][1], passed[1][1][0]),
        "receiver": (passed[2][0][1], passed[2][1][0]),
    }
    for point, numbers in expected.items():
        forward = sum(frame.source == SENDER for frame in frames[point])
        if (forward, len(frames[point]) - forward) != numbers:
            raise PathError(f"{folder}: at the {point} {forward} packets were captured, the links say {numbers}")
    if (passed[1][0][1], passed[1][1][0]) != (passed[2][0][0], passed[2][1][1]):
        raise PathError(f"{folder}: the links disagree on what passed between them: {passed}")


def read_sendings(frames: list[Frame]) -> Iterator[tuple[Frame, Sending]]:
    begins: dict[int, int] = {}
    highest: dict[int, int] = {}
    for frame in frames:
        if frame.source != SENDER or not (frame.length or frame.flags & (SYN | FIN)):
            continue
        flow = frame.source_port
        if frame.flags & SYN:
            begins[flow] = frame.sequence
        start = (frame.sequence - begins[flow]) % 2**32
        end = start + frame.length + bool(frame.flags & SYN) + bool(frame.flags & FIN)
        sending = Sending(frame.number, flow, start, end, frame.time_ns, frame.tsval)
        sending.retransmits = start < highest.get(flow, 0)
        highest[flow] = max(highest.get(flow, 0), end)
        yield frame, sending


def note_earlier(sendings: list[Sending]) -> None:
    """Links each retransmission to the sendings that carried its bytes before."""
    by_start: dict[int, dict[int, list[Sending]]] = defaultdict(lambda: defaultdict(list))
    for sending in sendings:
        pieces = by_start[sending.flow]
        for piece in range(sending.start // 4096, (sending.end - 1) // 4096 + 1):
            if sending.retransmits:
                near = pieces[piece]
                sending.earlier += [
                    other
                    for other in near
                    if other.start < sending.end and other.end > sending.start and other not in sending.earlier
                ]
            pieces[piece].append(sending)
        for other in sending.earlier:
            other.later += 1


def is_newest(frame: Frame, acked: int) -> bool:
    """Returns whether the receiver stores the TSval: the segment spans the last ACK sent (RFC 7323 section 4.3)."""
    return (acked - frame.sequence) % 2**32 < 2**31 and (frame.sequence + frame.length - acked) % 2**32 < 2**31


def note_refused(frames: list[Frame], of_key: dict[tuple[object, ...], list[Sending]]) -> int:
    """Marks sendings that fail the PAWS check of the receiver (RFC 7323 section 5.3) and returns their number."""
    recent: dict[int, int] = {}
    acked: dict[int, int] = {}  # last ACK sent
    count = 0
    for frame in frames:
        if frame.protocol != TCP or frame.tsval is None:
            continue
        if frame.source != SENDER:
            acked[frame.destination_port] = frame.acknowledgment
            continue
        flow = frame.source_port
        if frame.flags & SYN:
            recent[flow] = frame.tsval
            continue
        age = (recent[flow] - frame.tsval) % 2**32
        if 0 < age < 2**31:
            count += 1
            for sending in of_key.get(frame.key, ()):
                sending.refused = sending.came["receiver"] == frame.time_ns
        elif flow in acked and is_newest(frame, acked[flow]):
            recent[flow] = frame.tsval
    return count


def read_simulated(file: Path) -> list[Resend]:
    """Returns the retransmissions that ns3_path.cc logged, in order."""
    with file.open() as rows:
        return [Resend(int(row["port"]), row["cause"] or None) for row in csv.DictReader(rows)]


def note_causes(sendings: list[Sending], resends: list[Resend]) -> bool:
    """Assigns the causes, which the kernel logs in order of sending. Returns False if their numbers differ in a flow."""
    logged: dict[int, list[Resend]] = defaultdict(list)
    for resend in resends:
        logged[resend.port].append(resend)
    fits = True
    for flow in {sending.flow for sending in sendings}:
        retransmitted = [sending for sending in sendings if sending.flow == flow and sending.retransmits]
        if len(retransmitted) != len(logged[flow]):
            fits = False
            continue
        for sending, resend in zip(retransmitted, logged[flow], strict=True):
            sending.cause = resend.cause
    return fits


def read_run(folder: Path) -> Run:
    """Reads the files of a run. Raises PathError if captures and links disagree."""
    frames = {point: read_frames(folder / f"{point}.pcap") for point in POINTS}
    check_carried(folder, frames)
    of_key: dict[tuple[object, ...], list[Sending]] = defaultdict(list)
    sendings = []
    for frame, sending in read_sendings([frame for frame in frames["sender"] if frame.protocol == TCP]):
        sendings.append(sending)
        of_key[frame.key].append(sending)
    note_earlier(sendings)
    for point in POINTS:
        for frame in frames[point]:
            for sending in of_key.get(frame.key, ()):
                sending.came.setdefault(point, frame.time_ns)
    simulated = folder / SIMULATED_CAUSES
    refused = 0 if simulated.exists() else note_refused(frames["receiver"], of_key)  # ns-3 checks no PAWS
    resends = read_simulated(simulated) if simulated.exists() else read_resends(folder / "kernel.txt", SENDER)
    causes_known = resends is not None and note_causes(sendings, resends)
    counters = {**json.loads((folder / "counters.json").read_text()), "refused": refused}
    return Run(folder, frames, sendings, dict(of_key), counters, causes_known)
