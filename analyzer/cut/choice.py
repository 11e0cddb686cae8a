# SPDX-License-Identifier: Apache-2.0
"""Which frames a cut takes: flows, findings and ranges of frames as arrays that the core reads.

A finding of a flow stands for the packets of that flow from the first to the last frame of its evidence; without a flow, for
all packets of the file between them. A finding with neither stands for all packets of its flow.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.findings.evidence import Evidence, evidence_of
from wiretale.analyzer.units import one_of, plural

if TYPE_CHECKING:
    from wiretale.analyzer.rows import FindingRow
    from wiretale.analyzer.trace import Trace

Range = tuple[int, int, int]  # file, first and last frame
Group = tuple[bytes, bytes, int, int]  # interfaces and frames of packets; first and last frame that count
FRAME_MAX = 2**63 - 1
PACKETS_MAX = 20_000_000  # of chosen flows: about 50 bytes each while they are found


class Frames(NamedTuple):
    """Chosen frames, as _core.cut() takes them."""

    groups: list[Group]
    ranges: bytes


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Returns sorted ranges that do not overlap.

    >>> merged([(0, 5, 9), (0, 1, 4), (1, 1, 2), (0, 8, 12)])
    [(0, 1, 12), (1, 1, 2)]
    """
    joined: list[Range] = []
    for file, first, last in sorted(ranges):
        if joined and joined[-1][0] == file and first <= joined[-1][2] + 1:
            joined[-1] = (file, joined[-1][1], max(last, joined[-1][2]))
        else:
            joined.append((file, first, last))
    return joined


def packed_ranges(ranges: Iterable[Range]) -> bytes:
    """Returns ranges as the core takes them."""
    return array("Q", chain.from_iterable(merged(ranges))).tobytes()


def files_of_interfaces(trace: Trace) -> list[int]:
    """Returns the number of the file of each interface."""
    numbers = {path: number for number, path in enumerate(trace.inputs)}
    return [numbers[path] for path in trace.interfaces.column("file")]


def packets_of(trace: Trace, flows: Sequence[int], first: int = 0, last: int = FRAME_MAX) -> Group:
    """Returns the packets of flows. UsageError if there are too many."""
    packets = trace.packets(list(flows), PACKETS_MAX)
    if trace.totals["packets_rows_dropped"]:
        raise UsageError(
            f"{plural(len(set(flows)), 'flow')}: over {PACKETS_MAX:,} packets: expected fewer flows, or a range of frames or time"
        )
    captures, frames = packets._packed_columns([("capture", "I", 0, 1), ("frame", "d", 0, 1)])
    return captures, frames, first, last


def findings_named(trace: Trace, names: Sequence[int | str]) -> Iterator[FindingRow]:
    """Yields findings by number, from 1 in the order of the table, or by code. UsageError if there is none."""
    rows = trace.findings.rows()
    codes = sorted({row["code"] for row in rows})
    for name in names:
        named = [row for row in rows if name in (row["finding"], row["code"])]
        if not named and isinstance(name, int):
            raise UsageError(f"finding {name}: expected 1 to {len(rows)}" if rows else "there is no finding")
        if not named:
            raise UsageError(f"finding {name!r}: expected {one_of(codes)}" if codes else "there is no finding")
        yield from named


def check_flows(trace: Trace, flows: Iterable[int]) -> None:
    """Raises UsageError for a flow that the captures do not have."""
    for flow in flows:
        if not 0 <= flow < trace.totals["flows"]:
            most = trace.totals["flows"] - 1
            there = f"0 to {most:,} exist" if most > 0 else "0 is the only one" if most == 0 else "no flow exists"
            raise UsageError(f"there is no flow {flow}: {there}")


def frames_of_finding(trace: Trace, row: FindingRow, evidence: Evidence) -> tuple[list[Group], list[Range]]:
    """Returns the frames that a finding stands for. UsageError if it has none."""
    first, last = evidence.ends
    if first is not None and last is not None:
        file, ends = files_of_interfaces(trace)[first["capture"]], (first["frame"], last["frame"])
        if row["flow"] is None:
            return [], [(file, *ends)]
        # An ICMP error about the flow is evidence, but no packet of it.
        return [packets_of(trace, [row["flow"]], *ends)], [(file, end, end) for end in ends]
    if evidence.flow is not None:
        return [packets_of(trace, [evidence.flow])], []
    raise UsageError(
        f"finding {row['finding']} ({row['code']}) concerns the whole capture: expected --flow, --frames or a time"
    )


def chosen_frames(
    trace: Trace | None, flows: Sequence[int], findings: Sequence[int | str], frames: Sequence[tuple[int, int]]
) -> Frames:
    """Returns the frames of flows and findings of a trace, and ranges of frames of its only file."""
    groups: list[Group] = []
    ranges = [(0, first, last) for first, last in frames]
    if trace is not None:
        check_flows(trace, flows)
        if flows:
            groups.append(packets_of(trace, flows))
        evidence = evidence_of(trace) if findings else []
        for row in findings_named(trace, findings):
            more_groups, more_ranges = frames_of_finding(trace, row, evidence[row["finding"] - 1])
            groups += more_groups
            ranges += more_ranges
    return Frames(groups, packed_ranges(ranges))
