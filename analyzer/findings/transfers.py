# SPDX-License-Identifier: Apache-2.0
"""The largest transfers of a trace, with the rows that rules about transfers read: fetched once for all rules."""

from __future__ import annotations

from array import array
from functools import cached_property
from heapq import nlargest
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from wiretale.analyzer.findings.model import end_named, frame_span, row_at
from wiretale.analyzer.findings.odd_counts import HELD, odd_counts

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

TRANSFERS_MOST = 50  # flows that rules about transfers look at: the largest
HELD_LEAST_NS = 20_000_000  # less hardly counts as having waited
HELD_MOST = 500  # flows
LIMITS = {  # columns of directions, in the order of docs/tables.md, and how people call them
    "limit_idle_ns": "the sender's application",
    "limit_delayed_ack_ns": "delayed acknowledgments",
    "limit_window_ns": "the receiver's window",
    "limit_recovery_ns": "recovery from loss",
    "limit_timeout_ns": "timeouts",
    "limit_slow_start_ns": "slow start",
    "limit_network_ns": "the path or the congestion window",
}
MINOR_SHARE, MINOR_MOST = 0.01, 100_000  # of the largest flow's payload; bytes
SERIES_COLUMNS = (
    ("direction", "B", 0, 1),
    ("start_ns", "d", 0, 1),
    ("width_ns", "d", 0, 1),
    ("wire_bytes", "d", 0, 1),
    ("payload_bytes", "d", 0, 1),
    ("rtt_ns", "d", 0, 1),
    ("window_bytes", "d", 0, 1),
)
Row = dict[str, Any]


class Bins(NamedTuple):
    """The series of one direction, column by column; NaN is null."""

    start_ns: list[float]
    width_ns: float
    wire_bytes: list[float]
    payload_bytes: list[float]
    rtt_ns: list[float]
    window_bytes: list[float]


def fitted(limits: dict[str, int], life_ns: int) -> dict[str, int]:
    """The parts, together no longer than the life: silence before timeouts goes before what counts it a second time."""
    others = sum(limits.values()) - limits["limit_timeout_ns"]
    room = max(life_ns - limits["limit_timeout_ns"], 0)
    if others <= room:
        return limits
    return {name: ns if name == "limit_timeout_ns" else ns * room // others for name, ns in limits.items()}


class Transfer:
    """One direction of one of the largest flows."""

    def __init__(self, flow: Row, row: Row, back: Row, weight: float, minor: bool) -> None:
        self.flow = flow
        self.row = row  # of directions
        self.back = back  # the other direction
        self.weight = weight  # of all wire bytes of the trace
        self.minor = minor  # next to nothing beside the largest flow, as a control connection carries it

    @property
    def name(self) -> str:
        """As people write it."""
        row = self.row
        return (
            f"{end_named(row['source'], row['source_port'])} → {end_named(row['destination'], row['destination_port'])}"
        )

    @cached_property
    def life_ns(self) -> int:
        """From its first packet to its last; 0 where there are no times."""
        first, last = self.row["first_ns"], self.row["last_ns"]
        return 0 if first is None else int(last - first)

    @cached_property
    def limits(self) -> dict[str, int]:
        """Nanoseconds of each limit; empty where they are not known."""
        if self.row["limit_network_ns"] is None:
            return {}
        return fitted({name: self.row[name] for name in LIMITS}, self.life_ns)

    @cached_property
    def parted_ns(self) -> int:
        """The time that is parted by limits, which all shares are of; where they are not known, its life."""
        return sum(self.limits.values()) or self.life_ns

    def share(self, *names: str) -> float:
        """Of that time, 0 to 1."""
        return sum(self.limits[name] for name in names) / self.parted_ns if any(self.limits.values()) else 0.0

    @cached_property
    def path_rtt_ns(self) -> int | None:
        """The whole path's least round trip, as the handshake or both halves tell."""
        if self.flow["handshake_rtt_ns"] is not None:
            return int(self.flow["handshake_rtt_ns"])
        halves = [row["rtt_ns_min"] for row in (self.row, self.back) if row["rtt_ns_min"] is not None]
        return sum(halves) if halves else None

    @cached_property
    def lost(self) -> int:
        """Packets lost, wherever."""
        return sum(self.row[name] or 0 for name in ("lost_upstream", "lost_downstream", "blocks_lost"))

    @cached_property
    def frames(self) -> str:
        """Where it lies in its file."""
        return frame_span(self.flow)


def longest_waits(trace: Trace, seen: set[int]) -> dict[int, int]:
    """How long other flows waited, ns."""
    longest: dict[int, int] = {}
    for name in HELD:
        for direction, ns in odd_counts(trace)[name]:
            flow = direction // 2
            if ns >= HELD_LEAST_NS and flow not in seen:
                longest[flow] = max(ns, longest.get(flow, 0))
    return longest


class Survey:
    """What several rules ask of a trace."""

    def __init__(self, trace: Trace) -> None:
        sizes = trace.flows.column("wire_bytes")
        self.whole = sum(sizes) or 1
        largest = nlargest(TRANSFERS_MOST, range(len(sizes)), key=sizes.__getitem__)
        self._main_bytes = row_at(trace.flows, largest[0])["payload_bytes"] or 0 if largest else 0
        #: directions with payload of the largest flows, the largest first
        self.transfers = [one for number in largest for one in self._directions(trace, number)]
        waiting = longest_waits(trace, set(largest))
        #: flows that waited and are not looked at, because so many others waited longer
        self.held_left = max(len(waiting) - HELD_MOST, 0)
        longest = nlargest(HELD_MOST, waiting, key=waiting.__getitem__)
        #: those of smaller flows that waited the longest
        self.held = [one for number in longest for one in self._directions(trace, number)]
        self._trace = trace
        self._bins: dict[int, dict[int, Bins]] = {}

    def _directions(self, trace: Trace, number: int) -> list[Transfer]:
        flow = row_at(trace.flows, number)
        rows = trace.directions.rows(2 * number, 2 * number + 2)
        minor = (flow["payload_bytes"] or 0) <= min(MINOR_SHARE * self._main_bytes, MINOR_MOST)
        return [
            Transfer(flow, row, rows[1 - i], row["wire_bytes"] / self.whole, minor)
            for i, row in enumerate(rows)
            if row["payload_bytes"]
        ]

    def tcp(self) -> list[Transfer]:
        """Those of TCP."""
        return [one for one in self.transfers if one.flow["protocol"] == "tcp"]

    def limited(self) -> list[Transfer]:
        """Those of TCP, and the smaller ones that waited the longest."""
        return [one for one in (*self.transfers, *self.held) if one.flow["protocol"] == "tcp"]

    def weight(self, row: Row) -> float:
        """A direction's part of all wire bytes."""
        return float(row["wire_bytes"] / self.whole)

    def bins(self, transfer: Transfer) -> Bins:
        """Its series."""
        number = transfer.row["flow"]
        if number not in self._bins:
            self._bins[number] = read_bins(self._trace, number)
        return self._bins[number].get(transfer.row["direction"], Bins([], 1.0, [], [], [], []))


def read_bins(trace: Trace, flow: int) -> dict[int, Bins]:
    """The series of both directions of a flow."""
    packed = trace.series.packed_columns(SERIES_COLUMNS, [flow])
    columns = {name: array(code, data) for (name, code, *_), data in zip(SERIES_COLUMNS, packed, strict=True)}
    found = {}
    for direction in set(columns["direction"]):
        chosen = [i for i, value in enumerate(columns["direction"]) if value == direction]
        of = {name: [float(column[i]) for i in chosen] for name, column in columns.items()}
        width = of["width_ns"][0]
        found[direction] = Bins(
            of["start_ns"], width, of["wire_bytes"], of["payload_bytes"], of["rtt_ns"], of["window_bytes"]
        )
    return found


_surveys: WeakKeyDictionary[Trace, Survey] = WeakKeyDictionary()


def survey_of(trace: Trace) -> Survey:
    """The survey of a trace, made once."""
    if trace not in _surveys:
        _surveys[trace] = Survey(trace)
    return _surveys[trace]
