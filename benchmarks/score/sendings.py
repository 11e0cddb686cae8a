# SPDX-License-Identifier: Apache-2.0
"""What the sender really sent, and how far each sending came: from the links' logs, all captures and the kernel."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from score.capture_frames import FIN, SYN, TCP, Frame, read_frames
from score.kernel_trace import Resend, read_resends
from score.testbed import POINTS, SENDER, PathError

# What the links carried: of each direction what came, and how many copies of it left.
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
    """A packet with data, SYN or FIN that the sender sent, and what became of it."""

    index: int  # in the order of sending
    flow: int  # the sender's port
    start: int  # position in the stream; the SYN is byte 0
    end: int  # with the FIN
    time_ns: int
    tsval: int | None
    again: bool = False  # bytes of it had been sent before
    cause: str | None = None  # why, by the kernel
    expiry: bool = False
    came: dict[str, int] = field(default_factory=dict)  # first time at each point
    earlier: list[Sending] = field(default_factory=list)  # that carried any of its bytes
    later: int = 0  # how many carried any of them after it

    refused: bool = False  # by the receiver, as too old (PAWS)

    @property
    def delivered_ns(self) -> int | None:
        """When the receiver first got it; None when never."""
        return None if self.refused else self.came.get("receiver")


@dataclass
class Run:
    """A scenario's run, as it truly was."""

    folder: Path
    frames: dict[str, list[Frame]]
    sendings: list[Sending]
    of_key: dict[tuple[object, ...], list[Sending]]
    counters: dict[str, int]
    causes_known: bool

    def fates(self, link: int) -> dict[str, int]:
        """Of the packets towards the receiver, what a link did to them."""
        return dict(duckdb.execute(FATES, [str(self.folder / f"link{link}.csv")]).fetchall())


def check_carried(folder: Path, frames: dict[str, list[Frame]]) -> None:
    """Each capture must hold exactly what the links say that passed there; else the run is of no use."""
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
    """From the capture at the sender."""
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
        sending.again = start < highest.get(flow, 0)
        highest[flow] = max(highest.get(flow, 0), end)
        yield frame, sending


def note_earlier(sendings: list[Sending]) -> None:
    """Which sendings carried the bytes before."""
    by_start: dict[int, dict[int, list[Sending]]] = defaultdict(lambda: defaultdict(list))
    for sending in sendings:
        known = by_start[sending.flow]
        for piece in range(sending.start // 4096, (sending.end - 1) // 4096 + 1):
            if sending.again:
                near = known[piece]
                sending.earlier += [
                    other
                    for other in near
                    if other.start < sending.end and other.end > sending.start and other not in sending.earlier
                ]
            known[piece].append(sending)
        for other in sending.earlier:
            other.later += 1


def is_newest(frame: Frame, acked: int) -> bool:
    """Whether the receiver keeps its time stamp: it spans the last acknowledgment sent (RFC 7323 section 4.3)."""
    return (acked - frame.sequence) % 2**32 < 2**31 and (frame.sequence + frame.length - acked) % 2**32 < 2**31


def note_refused(frames: list[Frame], of_key: dict[tuple[object, ...], list[Sending]]) -> int:
    """What the receiver refuses by its time stamp (RFC 7323 section 5.3); returns how many."""
    recent: dict[int, int] = {}
    acked: dict[int, int] = {}  # last acknowledgment sent
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


def note_causes(sendings: list[Sending], resends: list[Resend]) -> bool:
    """The kernel tells them in the order of sending; False where both do not fit."""
    told: dict[int, list[Resend]] = defaultdict(list)
    for resend in resends:
        told[resend.port].append(resend)
    fits = True
    for flow in {sending.flow for sending in sendings}:
        mine = [sending for sending in sendings if sending.flow == flow and sending.again]
        if len(mine) != len(told[flow]):
            fits = False
            continue
        for sending, resend in zip(mine, told[flow], strict=True):
            sending.cause, sending.expiry = resend.cause, resend.expiry
    return fits


def read_run(folder: Path) -> Run:
    """All of it. PathError when captures and links disagree."""
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
    refused = note_refused(frames["receiver"], of_key)
    resends = read_resends(folder / "kernel.txt", SENDER)
    known = resends is not None and note_causes(sendings, resends)
    counters = {**json.loads((folder / "counters.json").read_text()), "refused": refused}
    return Run(folder, frames, sendings, dict(of_key), counters, known)
