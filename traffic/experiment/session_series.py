# SPDX-License-Identifier: Apache-2.0
"""What sessions of an experiment have in captures: rates over time, those of sessions that ran together with their fairness
(without a capture, from the senders), causes of TCP's losses, and flows of other programs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

Row = dict[str, Any]
Piece = tuple[float, float, float]  # start and end in s since the start of the test, bytes
BINS_MOST = 200
BIN_S_LEAST = 0.05
COURSE_BINS = 50  # of a single session, which may last milliseconds
COURSE_BIN_S = 0.001
COURSES_MOST = 24  # cases
FLOWS_MOST = 20  # of other programs, of a test
NEAR_NS = 2_000_000_000  # largest difference between the start in a report and the time stamp of its first block
# Causes whose losses are those of a full queue, and causes whose losses are not.
CONGESTION = ("bottleneck", "bufferbloat", "incast")
OTHERWISE = (
    *("random-loss", "bad-link-of-several", "policer", "damaged-packets", "duplex-mismatch", "wifi-retries", "outage"),
    *("host-drops", "mtu-black-hole"),
)


def jain(rates: Sequence[float]) -> float | None:
    """Returns Jain's fairness index: 1 if all rates are equal, 1/n if one session gets everything, None if all rates are 0."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else None


def spread(pieces: Iterable[Piece], bin_s: float, count: int) -> list[float]:
    """Distributes the bytes of pieces over bins, in proportion to their overlap."""
    bins = [0.0] * count
    for start, end, size in pieces:
        length = max(end - start, 1e-9)
        first, last = int(start / bin_s), min(int(end / bin_s), count - 1)
        for number in range(max(first, 0), last + 1):
            shared = min(end, (number + 1) * bin_s) - max(start, number * bin_s)
            bins[number] += size * max(shared, 0) / length if first != last else size
    return bins


def bin_seconds(seconds: float, most: int = BINS_MOST, least_s: float = BIN_S_LEAST) -> float:
    """Returns a bin width of 1, 2 or 5 times a power of ten that gives at most `most` bins."""
    least = max(seconds / most, least_s)
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * 0.999)


def from_intervals(session: Row, start_ns: int) -> list[Piece]:
    """Returns the bytes sent per interval of a sender's report."""
    report = session["report"] or {}
    offset = ((report.get("start_ns") or start_ns) - start_ns) / 1e9
    lines = [line for line in session["intervals"] if "bytes_sent" in line]
    return [(offset + line["from_s"], offset + line["to_s"], line["bytes_sent"]) for line in lines]


def data_directions(trace: Trace) -> list[Row]:
    """Returns the directions with blocks, and the time stamp of their first block."""
    from wiretale.analyzer.query import connect

    query = (
        "select flow, direction, min(sent_ns), any_value(protocol) from blocks join flows using (flow) "
        "where sent_ns is not null group by 1, 2 order by 3"
    )
    names = ("flow", "direction", "sent_ns", "protocol")
    with connect(trace) as connection:
        return [dict(zip(names, row, strict=True)) for row in connection.execute(query).fetchall()]


def assign(directions: list[Row], sessions: Sequence[tuple[str, int | None, int]]) -> dict[tuple[int, int], int]:
    """Maps directions to the session of their protocol with the nearest start; a session has as many directions as streams."""
    pairs = sorted(
        (abs(row["sent_ns"] - start), place, number)
        for place, row in enumerate(directions)
        for number, (protocol, start, _) in enumerate(sessions)
        if start is not None and protocol == row["protocol"]
    )
    room = [streams for *_, streams in sessions]
    assigned: dict[tuple[int, int], int] = {}
    for distance, place, number in pairs:
        key = (directions[place]["flow"], directions[place]["direction"])
        if distance <= NEAR_NS and key not in assigned and room[number]:
            assigned[key] = number
            room[number] -= 1
    return assigned


def first_start(data: Row) -> int:
    """Returns the start of the first session of a test."""
    starts: list[int | None] = [(session["report"] or {}).get("start_ns") for session in data["sessions"]]
    return min([start for start in starts if start] or [int(data["started_ns"])])


def capture_of(data: Row, folder: Path) -> Trace | None:
    """Analyzes the capture of a test; None if a file is missing or cannot be analyzed."""
    from wiretale.analyzer.errors import WiretaleError
    from wiretale.analyzer.trace import analyze

    files = [folder / name for name in (data["tracer"] or {}).get("files", [])]
    if not files or not all(path.exists() for path in files):
        return None
    try:
        return analyze(*files)
    except WiretaleError:
        return None


def other_flows(data: Row, folder: Path, port: int) -> list[Row]:
    """Returns the largest flows in the capture of a test that are not of its sessions, if other programs ran beside them."""
    trace = capture_of(data, folder) if data.get("programs") else None
    if trace is None:
        return []
    query = (
        "select d.source, d.source_port, d.destination, d.destination_port, f.protocol, d.unique_bytes, d.goodput_bps, "
        "d.retransmissions, d.rtt_ns_median from directions d join flows f using (flow) "
        "where f.application is distinct from 'blocks' and d.payload_bytes > 0 and f.protocol in ('tcp', 'udp') "
        f"and {port:d} not in (d.source_port, d.destination_port) order by d.payload_bytes desc limit {FLOWS_MOST}"
    )
    names = (
        *("source", "source_port", "destination", "destination_port", "protocol"),
        *("bytes", "goodput_bps", "retransmissions", "rtt_ns"),
    )
    test = data["test"]["name"]
    return [{"test": test, **dict(zip(names, row, strict=True))} for row in trace.query(query).fetchall()]


def losses_of_tcp(trace: Trace, port: int) -> Row | None:
    """Returns retransmissions of the flows to a port and what they were; None without any.

    `congestion` is None if it is not known: without a cause that is likely, or with causes of both kinds.
    """
    query = (
        "select d.flow, sum(d.retransmissions) from directions d join flows f using (flow) where f.protocol = 'tcp' "
        f"and {port:d} in (d.source_port, d.destination_port) group by d.flow having sum(d.retransmissions) > 0"
    )
    repeated = dict(trace.query(query).fetchall())
    if not repeated:
        return None
    numbers = {row["cause"] for row in trace.cause_flows if row["flow"] in repeated}
    causes = {
        cause["code"]: cause for cause in trace.causes if cause["cause"] in numbers and cause["certainty"] != "possible"
    }
    full, other = ([causes[code] for code in codes if code in causes] for codes in (CONGESTION, OTHERWISE))
    first = next(iter(full + other), None)
    return {
        "retransmissions": int(sum(repeated.values())),
        "congestion": bool(full) if bool(full) != bool(other) else None,
        "certainty": first and first["certainty"],
        "sentence": first and first["sentence"],
    }


def tcp_losses(tests: Iterable[Row], folder: Path, port: int) -> Iterator[Row]:
    """Yields the losses of the first trial of each test over TCP alone whose capture is there."""
    for data in tests:
        test = data["test"]
        if test["trial"] == 1 and all(session["protocol"] == "tcp" for session in test["sessions"]):
            trace = capture_of(data, folder)
            losses = losses_of_tcp(trace, port) if trace else None
            if losses:
                yield {"test": test["name"], **losses}


def captured_pieces(data: Row, folder: Path, start_ns: int) -> list[list[Piece]] | None:
    """Returns the bytes of each session in the capture; None if a file or a session is missing."""
    from wiretale.analyzer.query import connect

    planned = data["test"]["sessions"]
    senders = [((session["report"] or {}).get("sender") or {}) for session in data["sessions"]]
    sessions = [(p["protocol"], s.get("first_ns"), p["streams"]) for p, s in zip(planned, senders, strict=True)]
    trace = capture_of(data, folder)
    if trace is None:
        return None
    owner = assign(data_directions(trace), sessions)
    if set(owner.values()) != set(range(len(sessions))):
        return None
    pieces: list[list[Piece]] = [[] for _ in sessions]
    query = "select flow, direction, start_ns, width_ns, goodput_bps from series where goodput_bps > 0"
    with connect(trace) as connection:
        bins = connection.execute(query).fetchall()
    for flow, direction, start, width, rate in bins:
        if (flow, direction) in owner:
            begin = (start - start_ns) / 1e9
            pieces[owner[flow, direction]].append((begin, begin + width / 1e9, rate * width / 8e9))
    return pieces


def fairness(lines: Sequence[Sequence[float]], pieces: Sequence[Sequence[Piece]], bin_s: float) -> list[float | None]:
    """Returns the index of each bin that at least two sessions cover completely."""
    spans = [
        (min(p[0] for p in session_pieces), max(p[1] for p in session_pieces)) if session_pieces else (0.0, 0.0)
        for session_pieces in pieces
    ]
    indices: list[float | None] = []
    for number in range(len(lines[0])):
        begin, end = number * bin_s, (number + 1) * bin_s
        sharing = [
            line[number] for line, (first, last) in zip(lines, spans, strict=True) if first <= begin and end <= last
        ]
        indices.append(jain(sharing) if len(sharing) > 1 else None)
    return indices


def session_series(data: Row, folder: Path) -> Row | None:
    """Returns rates of the sessions of a test in Mbit/s per bin, and Jain's index; None if no session has data."""
    start_ns = first_start(data)
    captured = captured_pieces(data, folder, start_ns)
    pieces = captured or [from_intervals(session, start_ns) for session in data["sessions"]]
    every_piece = [piece for session_pieces in pieces for piece in session_pieces]
    seconds = max((end for _, end, _ in every_piece), default=0.0)
    if seconds <= 0:
        return None
    # A bin must not be narrower than the intervals of the data.
    bin_s = bin_seconds(max(seconds, BINS_MOST * max(end - start for start, end, _ in every_piece)))
    count = math.ceil(seconds / bin_s)
    lines = [[size * 8e-6 / bin_s for size in spread(session_pieces, bin_s, count)] for session_pieces in pieces]
    test = data["test"]
    return {
        **{"test": test["name"], "group": test["group"], "trial": test["trial"]},
        "source": "capture" if captured else "senders",
        "bin_s": bin_s,
        "labels": [session["label"] for session in test["sessions"]],
        "rates": lines,
        "fairness": fairness(lines, pieces, bin_s),
    }


def course(trials: Sequence[Sequence[Piece]], bins_most: int = COURSE_BINS) -> tuple[float, list[list[float]]]:
    """Returns the width of a bin in s, and the Mbit/s of each trial from its own first data on; after its end it has 0."""
    starts = [min(piece[0] for piece in pieces) for pieces in trials]
    moved = [
        [(begin - start, end - start, size) for begin, end, size in pieces]
        for start, pieces in zip(starts, trials, strict=True)
    ]
    every_piece = [piece for pieces in moved for piece in pieces]
    seconds = max(end for _, end, _ in every_piece)
    widest = max(end - begin for begin, end, _ in every_piece)
    bin_s = bin_seconds(max(seconds, bins_most * widest), bins_most, COURSE_BIN_S)
    count = math.ceil(seconds / bin_s - 1e-6)
    return bin_s, [[size * 8e-6 / bin_s for size in spread(pieces, bin_s, count)] for pieces in moved]


def courses(tests: Iterable[Row], folder: Path) -> Iterator[Row]:
    """Yields the rates over time of each case with a single session, of its trials whose capture has them."""
    cases: dict[str, list[Row]] = {}
    for entry in tests:
        test = entry["test"]
        if len(test["sessions"]) == 1:
            cases.setdefault(test["name"].removesuffix(f"-t{test['trial']}"), []).append(entry)
    for trials in list(cases.values())[:COURSES_MOST]:
        found = [(entry, captured_pieces(entry, folder, first_start(entry))) for entry in trials]
        captured = [(entry["test"]["name"], pieces[0]) for entry, pieces in found if pieces and pieces[0]]
        if captured:
            bin_s, rates = course([pieces for _, pieces in captured])
            yield {"tests": [name for name, _ in captured], "bin_s": bin_s, "rates": rates}
