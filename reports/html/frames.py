# SPDX-License-Identifier: Apache-2.0
"""The frames that the page shows decoded: bytes and, if tshark is installed, its trees.

Of a small capture these are all frames; else those that findings cite, and those of events and of the beginning and end of
the flows with findings, and their neighbors, at most FRAMES_MAX.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from math import isnan
from typing import TYPE_CHECKING, Any, TypeVar

from wiretale.analyzer.errors import InputError, MissingToolError, UsageError
from wiretale.analyzer.findings.evidence import Evidence, evidence_of
from wiretale.analyzer.frames.dissect import Tree, dissect
from wiretale.analyzer.frames.raw_frames import RawFrame, raw_frames
from wiretale.reports.html.commands import page_words
from wiretale.reports.html.packing import encoded

if TYPE_CHECKING:
    from wiretale.analyzer.rows import FindingRow, PacketRow
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

FRAMES_MAX = 200
OF_FINDING, OF_KIND = 16, 12  # frames of a finding, of a kind of events of a flow
FLOWS_MOST, EVENTS_READ, ROWS_READ = 12, 5_000, 50  # flows with findings; events and first packets of each
NEIGHBORS = 16  # frames on either side of a cited one that are shown too, as long as there is room
BYTES_KEPT = 2048  # of a frame in the page
TREES_MOST = 700_000  # bytes of all trees in the page
LINKS = {
    1: "Ethernet",
    101: "raw IP",
    113: "Linux cooked",
    276: "Linux cooked v2",
    105: "IEEE 802.11",
    0: "BSD loopback",
}

Frame = tuple[int, int]  # interfaces row, frame number
Event = tuple[int, float, float]  # interfaces row, frame number, number of the related frame or NaN
Item = TypeVar("Item")


def spread(items: Sequence[Any], most: int) -> list[Any]:
    """Returns at most `most` items, evenly spread, with the first and the last."""
    if len(items) <= most:
        return list(items)
    return [items[round(place * (len(items) - 1) / (most - 1))] for place in range(most)]


def in_turns(lists: Iterable[list[Item]]) -> Iterator[Item]:
    """Yields the first item of each list, then the second ones."""
    return (item for row in zip_longest(*lists) for item in row if item is not None)


def cited_by(evidence: Evidence) -> list[Frame]:
    """Returns the frames that show a finding: the ends of its span, and some of the others."""
    rows = [*filter(None, evidence.ends), *spread(evidence.named, OF_FINDING)]
    return list(dict.fromkeys((row["capture"], row["frame"]) for row in rows))


def of_events(trace: Trace, flow: int) -> list[Frame]:
    """Returns frames of the events of a flow, some of each kind, and those that they are related to."""
    names = [
        (name, code, 0, 1) for name, code in (("kind", "B"), ("capture", "H"), ("frame", "d"), ("related_frame", "d"))
    ]
    packed = trace.events._packed_columns(names, [flow])
    columns = [array(code, data) for (_, code, *_), data in zip(names, packed, strict=True)]
    kinds: dict[int, list[Event]] = {}
    for kind, capture, frame, related in islice(zip(*columns, strict=True), EVENTS_READ):
        kinds.setdefault(kind, []).append((capture, frame, related))
    picked = in_turns(spread(events, OF_KIND) for events in kinds.values())
    return [(capture, int(number)) for capture, *both in picked for number in both if not isnan(number)]


def beginning(packets: Table[PacketRow], flow: int) -> list[Frame]:
    """Returns the first three packets of a flow and the first of each direction, which tshark needs for scale and offsets."""
    rows = packets._of_flows([flow], ROWS_READ).rows()
    firsts = {row["direction"]: row for row in reversed(rows)}
    return [(row["capture"], row["frame"]) for row in (*rows[:3], *firsts.values())]


def flows_with_findings(trace: Trace, findings: list[FindingRow]) -> list[int]:
    """Returns the flows of the first findings; the largest flow if there are none."""
    numbers = list(dict.fromkeys(flow for row in findings if (flow := row["flow"]) is not None))[:FLOWS_MOST]
    if numbers or not len(trace.flows):
        return numbers
    return trace.transfers.largest_flows(1)


def with_neighbors(frames: list[Frame]) -> list[Frame]:
    """Returns the frames, followed by their neighbors as far as there is room."""
    steps = (step for distance in range(1, NEIGHBORS + 1) for step in (distance, -distance))
    around = ((capture, number + step) for step in steps for capture, number in frames if number + step > 0)
    return list(islice(dict.fromkeys(chain(frames, around)), FRAMES_MAX))


def cited(trace: Trace, packets: Table[PacketRow] | None) -> list[Frame]:
    """Returns the frames to show, at most FRAMES_MAX."""
    counts = trace.interfaces.column("packets")
    if sum(counts) <= FRAMES_MAX and len(counts) == 1:
        return [(0, number) for number in range(1, FRAMES_MAX + 1)]
    findings = trace.findings.rows()
    numbers = flows_with_findings(trace, findings)
    flows = [trace.flows.rows(number, number + 1)[0] for number in numbers]
    order = chain(
        (frame for flow in numbers if packets for frame in beginning(packets, flow)),
        in_turns(map(cited_by, evidence_of(trace))),
        ((row["first_capture"], frame) for row in flows for frame in (row["first_frame"], row["last_frame"])),
        in_turns(of_events(trace, flow) for flow in numbers),
    )
    return with_neighbors(list(islice(dict.fromkeys(order), FRAMES_MAX)))


def fitting_trees(trees: list[Tree], most: int) -> tuple[list[Tree], str]:
    """Returns the first trees that fit into `most` bytes, and their text for the page."""
    while len(text := encoded(json.dumps(trees, separators=(",", ":")).encode())) > most:
        trees = trees[: len(trees) // 2]
    return trees, text


def described(frame: RawFrame, shortened: int, base_ns: int) -> dict[str, Any]:
    """Returns the facts about a frame."""
    return {
        "capture": frame.capture,
        "frame": frame.number,
        "link": LINKS.get(frame.link_type, f"link type {frame.link_type}"),
        "time": None if frame.time_ns is None else (frame.time_ns - base_ns) / 1e9,
        "length": frame.length,
        "captured": len(frame.data),
        "kept": shortened,
    }


def input_words(trace: Trace, served: bool) -> list[str]:
    """Returns the file of each interfaces row as a word of a command; standard input, which is gone, as an empty one."""
    files = trace.interfaces.column("file")
    return ["" if file == "-" else word for file, word in zip(files, page_words(files, served), strict=True)]


def without_bytes(trace: Trace, reason: str, served: bool) -> dict[str, Any]:
    """Returns the data of a page without decoded frames."""
    return {
        "files": input_words(trace, served),
        "list": [],
        "bytes": "",
        "trees": "",
        "decoded": 0,
        "made_by": None,
        "reason": reason,
    }


def frame_data(trace: Trace, packets: Table | None, base_ns: int, served: bool) -> dict[str, Any]:
    """Returns the frames for the page; without tshark they have no trees, and without a file there are none."""
    try:
        frames = raw_frames(trace, cited(trace, packets))
    except (InputError, UsageError):
        return without_bytes(
            trace,
            "The capture could not be read a second time, so that the bytes of its frames are not in the page.",
            served,
        )
    made_by, trees, reason = None, [], None
    try:
        made_by, trees = dissect(frames) if frames else (None, [])
    except MissingToolError:
        reason = "This report was made without tshark, so that frames are shown as bytes and by wiretale's own fields."
    trees, text = fitting_trees(trees, TREES_MOST)
    shortened = [frame.data[:BYTES_KEPT] for frame in frames]
    return {
        "files": input_words(trace, served),
        "list": [described(frame, len(data), base_ns) for frame, data in zip(frames, shortened, strict=True)],
        "bytes": encoded(b"".join(shortened)),
        "trees": text,
        "decoded": len(trees),
        "made_by": made_by,
        "reason": reason,
    }
