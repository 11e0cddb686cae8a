# SPDX-License-Identifier: Apache-2.0
"""Heights at which a report must draw a packet, computed from the tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import wiretale
from report_page import Page, Point

Row = dict[str, Any]
ENDS = ("start", "end")


@dataclass
class Opened:
    """A sample's report, and its tables."""

    page: Page
    trace: wiretale.Trace
    path: Path
    flow: int
    packets: dict[int, Row]

    def at(self, point: Point) -> tuple[float, float]:
        """Time and height of a point's pixel, by the axes that are shown; an exponent of ten if the axis is logarithmic."""
        axes = ("xaxis", point.panel.replace("y", "yaxis"))
        ranges = [self.page.range(axis) for axis in axes]
        ends = [[self.page.pixel(axis, value) for value in bounds] for axis, bounds in zip(axes, ranges, strict=True)]
        (left, right), (bottom, top) = ends
        (start, end), (low, high) = ranges
        return (
            start + (end - start) * (point.x - left) / (right - left),
            low + (high - low) * (point.y - bottom) / (top - bottom),
        )

    def on_axis(self, panel: str, value: float) -> float:
        """A value in units of its axis."""
        axis = panel.replace("y", "yaxis")
        logarithmic = self.page.page.evaluate(f"document.getElementById('plot')._fullLayout.{axis}.type") == "log"
        return math.log10(value) if logarithmic else value

    def pixel_size(self, panel: str) -> tuple[float, float]:
        """Seconds and heights of a pixel."""
        sizes = []
        for axis in ("xaxis", panel.replace("y", "yaxis")):
            bounds = self.page.range(axis)
            sizes.append(
                (bounds[1] - bounds[0]) / abs(self.page.pixel(axis, bounds[1]) - self.page.pixel(axis, bounds[0]))
            )
        return sizes[0], sizes[1]


LISTED = ("upstream", "downstream", "latency", "waited", "whole", "broken", "rtt0", "rtt1")


def window_heights(row: Row) -> list[float]:
    """The window's edge, and the window."""
    return [] if row["window"] is None else [row["window"], (row["acknowledged"] or 0) + row["window"]]


def so_far(opened: Opened, frame: int) -> list[float]:
    """The payload of a direction before and after a packet, or its packets if none has payload."""
    rows = list(opened.packets.values())
    sizes = any(row["payload_bytes"] for row in rows)
    side_rows = [row for row in rows if row["direction"] == opened.packets[frame]["direction"]]
    before = sum(row["payload_bytes"] if sizes else 1 for row in side_rows if row["frame"] < frame)
    return [before, before + (opened.packets[frame]["payload_bytes"] if sizes else 1)]


def in_flight(opened: Opened, frame: int) -> list[float]:
    """Bytes sent and not acknowledged after a packet, of either direction."""
    values: list[float] = []
    for side in (0, 1):
        sent, acked, begun = 0, 0, False
        for row in opened.packets.values():
            if row["direction"] == side and row["sequence"] is not None and row["payload_bytes"]:
                acked = acked if begun else max(acked, row["sequence"])
                begun, sent = True, max(sent, row["sequence"] + row["payload_bytes"])
            elif row["direction"] != side:
                acked = max(acked, row["acknowledged"] or 0)
            if row["frame"] == frame:
                break
        values.append(max(0, sent - acked))
    return values


def sack_blocks(row: Row) -> list[tuple[int, int]]:
    """The SACK blocks of a packet, without a DSACK."""
    blocks = [(row[f"sack{n}_start"], row[f"sack{n}_end"]) for n in ("", 2, 3, 4)]
    return [(start, end) for start, end in blocks if start is not None and start > (row["acknowledged"] or 0)]


class Sender:
    """The bytes in flight of a direction, without those that SACK reports, packet by packet."""

    def __init__(self) -> None:
        self.sent = self.acked = self.begin_ns = self.rtt_ns = 0
        self.begun = False
        self.sacked: set[tuple[int, int]] = set()
        self.flights: list[tuple[int, int]] = []

    def send(self, row: Row) -> None:
        self.acked = self.acked if self.begun else max(self.acked, row["sequence"])
        self.begun, self.sent = True, max(self.sent, row["sequence"] + row["payload_bytes"])

    def hear(self, row: Row) -> None:
        self.rtt_ns, self.acked = row["rtt_ns"] or self.rtt_ns, max(self.acked, row["acknowledged"] or 0)
        self.sacked |= set(sack_blocks(row))

    def greatest(self, time_ns: int) -> int:
        """The most in the last round trip."""
        above = (range(max(start, self.acked), end) for start, end in self.sacked if end > self.acked)
        self.begin_ns = max(self.begin_ns, time_ns - self.rtt_ns)
        self.flights = [flight for flight in self.flights if flight[0] >= self.begin_ns]
        self.flights.append((time_ns, max(0, self.sent - self.acked - len(set().union(*above)))))
        return max(flight for _, flight in self.flights)


def estimated_window(opened: Opened, frame: int) -> list[float]:
    """The most bytes in flight in the last round trip, without those that SACK reports, after a packet, of either direction."""
    values: list[float] = []
    for side in (0, 1):
        sender = Sender()
        for row in opened.packets.values():
            if row["direction"] != side:
                sender.hear(row)
            elif row["sequence"] is not None and row["payload_bytes"]:
                sender.send(row)
            else:
                continue
            most = sender.greatest(row["time_ns"]) if sender.begun else 0
            if row["frame"] == frame:
                values += [most] if sender.rtt_ns and sender.begun else []
                break
    return values


def arrived(opened: Opened) -> dict[tuple[int, int | None], list[Row]]:
    """The numbered payloads of each direction and stream that arrived."""
    blocks: dict[tuple[int, int | None], list[Row]] = {}
    for row in opened.trace.blocks.rows():
        if row["flow"] == opened.flow and row["complete_ns"] is not None:
            blocks.setdefault((row["direction"], row["stream"]), []).append(row)
    return blocks


def jitter_at(opened: Opened, frame: int) -> list[float]:
    """Milliseconds of jitter (RFC 3550 6.4.1) after a packet. The last value is that of the directions table."""
    values = []
    streams = arrived(opened)
    for (side, _), rows in streams.items():
        jitter = 0.0
        for before, row in pairwise([row for row in rows if row["latency_ns"] is not None]):
            jitter += (abs(row["latency_ns"] - before["latency_ns"]) - jitter) / 16
            values += [jitter / 1e6] if row["last_frame"] == frame else []
        table = [
            row for row in opened.trace.directions.rows() if (row["flow"], row["direction"]) == (opened.flow, side)
        ]
        if [direction for direction, _ in streams].count(side) == 1:
            assert jitter == pytest.approx(table[0]["jitter_ns"], abs=1)
    return values


def never_came(opened: Opened, frame: int) -> list[float]:
    """Both ends of the ranges of numbers that never came, below the first number above them, which came in a packet."""
    ends = []
    for rows in arrived(opened).values():
        for below, above in pairwise(sorted({row["sequence"] for row in rows})):
            opener = next(row for row in rows if row["sequence"] >= above)
            ends += [below + 0.5, above - 0.5] if above > below + 1 and opener["last_frame"] == frame else []
    return ends


COMPUTED = {"cwnd": estimated_window, "flight": in_flight, "missing": never_came}


def gap_since(opened: Opened, frame: int) -> list[float]:
    """Milliseconds since the previous packet of the direction."""
    side_rows = [row for row in opened.packets.values() if row["direction"] == opened.packets[frame]["direction"]]
    at = [row["frame"] for row in side_rows].index(frame)
    return [(side_rows[at]["time_ns"] - side_rows[at - 1]["time_ns"]) / 1e6] if at else []


def lost_so_far(opened: Opened, place: str, frame: int) -> list[float]:
    """Segments lost at a place until one is retransmitted in a frame."""
    lost = [row for row in opened.trace.events.rows() if row["flow"] == opened.flow and row["place"] == place]
    lost = [row for row in lost if row["kind"].endswith("retransmission") and not row["spurious"]]
    return [number for number, row in enumerate(lost, start=1) if row["frame"] == frame]


def packet_heights(row: Row) -> list[float]:
    """Heights at which a TCP packet may be drawn: its first and last byte, its ACK, its SACK blocks."""
    values = [row["sequence"], row["acknowledged"], *(row[f"sack{n}_{end}"] for n in ("", 2, 3, 4) for end in ENDS)]
    if row["sequence"] is not None:
        values.append(row["sequence"] + row["payload_bytes"])
    return [value for value in values if value is not None]


def heights_of_blocks(opened: Opened, name: str, frame: int) -> list[float]:
    """Values of the tables of blocks and datagrams at a frame."""
    if name in ("whole", "broken"):
        return [part["fragments"] for part in opened.trace.datagrams.rows() if part["first_frame"] == frame]
    column, unit = {"latency": ("latency_ns", 1e6), "waited": ("head_of_line_ns", 1e6)}.get(name, ("sequence", 1))
    return [block[column] / unit for block in opened.trace.blocks.rows() if block["last_frame"] == frame]


def heights(opened: Opened, point: Point, frame: int) -> list[float]:
    """Values of the tables at a frame for a trace of the figure."""
    name = point.trace
    if name in COMPUTED:
        return COMPUTED[name](opened, frame)
    if name.startswith("jitter"):
        return jitter_at(opened, frame)
    if name.startswith("number"):
        return heights_of_blocks(opened, name, frame)
    if name.startswith("spacing"):
        return gap_since(opened, frame)
    if name in ("window", "room"):
        return window_heights(opened.packets[frame])
    if (
        opened.packets[frame]["sequence"] is None
        and opened.packets[frame]["acknowledged"] is None
        and name not in LISTED
    ):
        return so_far(opened, frame)
    if name in ("upstream", "downstream"):
        return lost_so_far(opened, name, frame)
    if name in ("latency", "waited", "whole", "broken"):
        return heights_of_blocks(opened, name, frame)
    if name in ("rtt0", "rtt1"):
        return [opened.packets[frame]["rtt_ns"] / 1e6]
    return packet_heights(opened.packets[frame])
