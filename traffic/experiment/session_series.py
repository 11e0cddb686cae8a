# SPDX-License-Identifier: Apache-2.0
"""Rates of sessions that ran together, over time, and how fairly they shared: from the capture, else as they were sent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

Row = dict[str, Any]
Piece = tuple[float, float, float]  # from, to (seconds since the test's start), bytes
BINS_MOST = 200
BIN_S_LEAST = 0.05
NEAR_NS = 2_000_000_000  # between what the sender and its first block say of the start


def jain(rates: Sequence[float]) -> float | None:
    """Jain's fairness index: 1 when all get the same, 1/n when one gets all. None when nobody gets anything."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else None


def spread(pieces: Iterable[Piece], bin_s: float, count: int) -> list[float]:
    """Bytes in each bin, of pieces that end where they like."""
    bins = [0.0] * count
    for start, end, size in pieces:
        length = max(end - start, 1e-9)
        first, last = int(start / bin_s), min(int(end / bin_s), count - 1)
        for number in range(max(first, 0), last + 1):
            shared = min(end, (number + 1) * bin_s) - max(start, number * bin_s)
            bins[number] += size * max(shared, 0) / length if first != last else size
    return bins


def bin_seconds(seconds: float) -> float:
    """1, 2 or 5 times a power of ten, so that there are not too many."""
    least = max(seconds / BINS_MOST, BIN_S_LEAST)
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * 0.999)


def from_intervals(session: Row, start_ns: int) -> list[Piece]:
    """What a sender said of itself while it ran."""
    report = session["report"] or {}
    offset = ((report.get("start_ns") or start_ns) - start_ns) / 1e9
    lines = [line for line in session["intervals"] if "bytes_sent" in line]
    return [(offset + line["from_s"], offset + line["to_s"], line["bytes_sent"]) for line in lines]


def data_directions(trace: Trace) -> list[Row]:
    """The directions that carry blocks, with the time at which their first one says that it was sent."""
    query = (
        "select flow, direction, min(sent_ns) as sent_ns from blocks where sent_ns is not null group by 1, 2 order by 3"
    )
    names = ("flow", "direction", "sent_ns")
    protocols = trace.flows.column("protocol")
    rows = [dict(zip(names, row, strict=True)) for row in trace.query(query).fetchall()]
    return [{**row, "protocol": protocols[row["flow"]]} for row in rows]


def assign(directions: list[Row], sessions: Sequence[tuple[str, int | None, int]]) -> dict[tuple[int, int], int]:
    """Which session a direction is of: the one of its protocol that started nearest, each with as many as its streams."""
    pairs = sorted(
        (abs(row["sent_ns"] - start), place, number)
        for place, row in enumerate(directions)
        for number, (protocol, start, _) in enumerate(sessions)
        if start is not None and protocol == row["protocol"]
    )
    room = [streams for *_, streams in sessions]
    found: dict[tuple[int, int], int] = {}
    for distance, place, number in pairs:
        key = (directions[place]["flow"], directions[place]["direction"])
        if distance <= NEAR_NS and key not in found and room[number]:
            found[key] = number
            room[number] -= 1
    return found


def from_capture(files: Sequence[Path], data: Row, start_ns: int) -> list[list[Piece]] | None:
    """What passed the tracer of each session; None when the capture does not show them all."""
    from wiretale.analyzer.errors import WiretaleError
    from wiretale.analyzer.trace import analyze

    planned = data["test"]["sessions"]
    senders = [((one["report"] or {}).get("sender") or {}) for one in data["sessions"]]
    sessions = [(p["protocol"], s.get("first_ns"), p["streams"]) for p, s in zip(planned, senders, strict=True)]
    try:
        trace = analyze(*files)
    except WiretaleError:
        return None
    owner = assign(data_directions(trace), sessions)
    if set(owner.values()) != set(range(len(sessions))):
        return None
    pieces: list[list[Piece]] = [[] for _ in sessions]
    columns = (trace.series.column(name) for name in ("flow", "direction", "start_ns", "width_ns", "goodput_bps"))
    for flow, direction, start, width, rate in zip(*columns, strict=True):
        if (flow, direction) in owner and rate:
            begin = (start - start_ns) / 1e9
            pieces[owner[flow, direction]].append((begin, begin + width / 1e9, rate * width / 8e9))
    return pieces


def first_start(data: Row) -> int:
    """When the first session of a test started."""
    starts: list[int | None] = [(one["report"] or {}).get("start_ns") for one in data["sessions"]]
    return min([start for start in starts if start] or [int(data["started_ns"])])


def fairness(lines: Sequence[Sequence[float]], pieces: Sequence[Sequence[Piece]], bin_s: float) -> list[float | None]:
    """The index in each bin that two sessions or more have whole."""
    spans = [(min(p[0] for p in own), max(p[1] for p in own)) if own else (0.0, 0.0) for own in pieces]
    found: list[float | None] = []
    for number in range(len(lines[0])):
        begin, end = number * bin_s, (number + 1) * bin_s
        sharing = [
            line[number] for line, (first, last) in zip(lines, spans, strict=True) if first <= begin and end <= last
        ]
        found.append(jain(sharing) if len(sharing) > 1 else None)
    return found


def captured_pieces(data: Row, folder: Path, start_ns: int) -> list[list[Piece]] | None:
    """What passed the tracer, where there was one."""
    files = [folder / name for name in (data["tracer"] or {}).get("files", [])]
    there = files and all(path.exists() for path in files)
    return from_capture(files, data, start_ns) if there else None


def session_series(data: Row, folder: Path) -> Row | None:
    """Rates over time of a test's sessions in Mbit/s, and Jain's index; None when nothing is known of them."""
    start_ns = first_start(data)
    captured = captured_pieces(data, folder, start_ns)
    pieces = captured or [from_intervals(one, start_ns) for one in data["sessions"]]
    known = [piece for own in pieces for piece in own]
    seconds = max((end for _, end, _ in known), default=0.0)
    if seconds <= 0:
        return None
    # No bin is finer than what is known.
    bin_s = bin_seconds(max(seconds, BINS_MOST * max(end - start for start, end, _ in known)))
    count = math.ceil(seconds / bin_s)
    lines = [[size * 8e-6 / bin_s for size in spread(own, bin_s, count)] for own in pieces]
    test = data["test"]
    return {
        **{"test": test["name"], "group": test["group"], "trial": test["trial"]},
        "source": "capture" if captured else "senders",
        "bin_s": bin_s,
        "labels": [one["label"] for one in test["sessions"]],
        "rates": lines,
        "fairness": fairness(lines, pieces, bin_s),
    }
