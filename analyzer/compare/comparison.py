# SPDX-License-Identifier: Apache-2.0
"""Compares the captures of one to three capture points: matches packets, estimates clocks, locates losses.

All packets are rows of DuckDB tables, which spill to temporary files beyond the memory bound. The steps and their tables:
load_point (loaded), pair_flows (members), lay_out (units), find_headings (headings), match_* (crossings), place_losses
(fates, outcomes). A point's number is its place on the way from sender to receiver; heading is 1 for
packets in that direction and -1 for the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.capture_paths import check_apart
from wiretale.analyzer.compare.capture_point import ROLES, CapturePoint, find_files, load_point
from wiretale.analyzer.compare.clock_offset import Clock, estimate_clock, state_clock
from wiretale.analyzer.compare.direction import find_headings
from wiretale.analyzer.compare.endpoint_log import EndpointLog, read_logs
from wiretale.analyzer.compare.flow_matching import pair_flows
from wiretale.analyzer.compare.loss_location import Ledger, settle, stages_of
from wiretale.analyzer.compare.one_way_delay import Delay, find_delays, hops_of
from wiretale.analyzer.compare.packet_matching import (
    PLACE,
    Floors,
    columns,
    group,
    lay_out,
    match_by_id,
    match_by_time,
    match_recut,
    path_order,
)
from wiretale.analyzer.errors import InputError, UsageError
from wiretale.analyzer.query import SETTINGS, dicts, interruptible
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    import duckdb

    from wiretale.analyzer.compare.rows import ComparedFlowRow

#: sources in the receiver's log that count its socket, not the host
SOCKET_COUNTERS = ("SO_RXQ_OVFL", "/proc/net/udp", "/proc/net/udp6", "SO_MEMINFO")
MEMORY_MIN, MEMORY_MAX = 512 * 2**20, 2 * 2**30  # bytes of tables in memory
HEADINGS = (1, -1)
NO_RUN = -1  # of a log without a run number
RUNS_MAX = 50  # tests without a log that get a ledger
NEVER = str(-(2**62))  # a least delay below every other

# `proven`: later ACKs prove that the data arrived, although the last point did not capture it.
FATES = """
CREATE TABLE fates AS
WITH far AS (SELECT flow, 1 - direction AS direction, max(upto) AS upto FROM acknowledged GROUP BY flow, direction),
    arrived AS (SELECT DISTINCT flow, direction, key1 FROM crossings JOIN headings USING (flow, direction)
        WHERE kind = 0 AND CASE WHEN heading > 0 THEN p{last} ELSE p0 END IS NOT NULL)
SELECT crossings.*, heading, crossings.kind = 0 AND crossings.key1::HUGEINT + key2 - {place} <= upto
        AND CASE WHEN heading > 0 THEN p{last} ELSE p0 END IS NULL AND arrived.key1 IS NULL AS proven
FROM crossings JOIN headings USING (flow, direction) LEFT JOIN far USING (flow, direction)
    LEFT JOIN arrived ON crossings.flow = arrived.flow AND crossings.direction = arrived.direction
        AND crossings.key1 = arrived.key1
"""


@dataclass
class Comparison:
    """The result: tables in DuckDB, clocks, delays, and a ledger per unit and direction."""

    connection: duckdb.DuckDBPyConnection
    points: list[CapturePoint]
    logs: list[EndpointLog]
    clocks: list[Clock] = field(default_factory=list)
    delays: list[Delay] = field(default_factory=list)
    #: of each test in blocks or bytes, then of all packets by heading
    ledgers: list[Ledger] = field(default_factory=list)
    flows: list[ComparedFlowRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def damaged(self) -> bool:
        """Whether a file is damaged or truncated."""
        return any(point.damage for point in self.points)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Returns the result of a query as dicts; the result should be small."""
        return dicts(self.connection, sql)

    def close(self) -> None:
        """Frees the tables."""
        self.connection.close()


def memory_bound() -> int:
    """Returns a quarter of the machine's memory, within bounds."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(MEMORY_MIN, min(MEMORY_MAX, memory // 4))


@contextmanager
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yields a database that spills to a temporary folder. Raises its errors as InputError."""
    from tempfile import TemporaryDirectory

    import duckdb

    with TemporaryDirectory(prefix="wiretale-") as spilled:
        connection = duckdb.connect(
            config={**SETTINGS, "memory_limit": f"{memory_bound() // 2**20}MiB", "temp_directory": spilled}
        )
        try:
            connection.execute("SET preserve_insertion_order = false")
            yield connection
        except (duckdb.OutOfMemoryException, duckdb.IOException, duckdb.InvalidInputException) as error:
            raise InputError(f"the captures cannot be compared: {str(error).splitlines()[0]}") from None
        finally:
            connection.close()


def check_count(count: int) -> None:
    """Raises UsageError if there are not one, two or three captures."""
    if count not in ROLES:
        raise UsageError(
            f"{count} captures: expected two or three (sender, tracer and receiver, or sender and receiver)"
        )


def floors_of(clocks: dict[tuple[int, int], Clock]) -> Floors:
    """Returns the least delays that the clocks show."""
    floors: Floors = {}
    for (a, b), clock in clocks.items():
        least = [(s.least_forward_ns, s.least_back_ns) for s in clock.stretches]
        forth = [f for f, _ in least if f is not None]
        back = [r for _, r in least if r is not None]
        offset = clock.sql("{time}")
        floors[a, b] = (f"({offset} + {min(forth):.0f})", "0") if forth else (NEVER, "0")
        floors[b, a] = ("0", f"({min(back):.0f} - {offset})") if back else (NEVER, "0")
    return floors


def match(connection: duckdb.DuckDBPyConnection, count: int, same_clock: bool) -> dict[tuple[int, int], Clock]:
    """Fills `crossings` and returns the clocks by pairs of points."""
    pair_flows(connection, count)
    lay_out(connection, count)
    group(connection, count)
    find_headings(connection, count)
    match_by_id(connection, count)
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    clocks = {pair: estimate_clock(connection, *pair, same=same_clock) for pair in pairs}
    floors = floors_of(clocks)
    match_by_time(connection, count, floors)
    match_recut(connection, count, floors)
    return clocks


def had(order: Sequence[int], place: int) -> str:
    """Returns SQL: a packet was at a point, because that or a later one captured it; at the first if any did."""
    if not place:
        return "true"
    later = " OR ".join(f"w{point}" for point in order[place:])
    return f"(coalesce(proven, false) OR {later})"


def where_lost(count: int, heading: int) -> str:
    """Returns SQL: the place where a packet was lost; NULL if it arrived."""
    order = path_order(count, heading)
    places = {1: (), 2: ("network",), 3: ("before_tracer", "after_tracer")}[count]
    cases = "".join(f"WHEN NOT {had(order, n + 1)} THEN '{place}' " for n, place in enumerate(places))
    return f"CASE {cases}END" if cases else "NULL::VARCHAR"


def place_losses(connection: duckdb.DuckDBPyConnection, count: int) -> None:
    """Fills `outcomes`: the crossings with heading, whether an ACK proves that they arrived, and the place of each loss."""
    connection.execute(FATES.format(last=count - 1, place=PLACE))
    connection.execute(
        f"CREATE TABLE outcomes AS SELECT *, CASE WHEN copy THEN NULL WHEN heading > 0 THEN {where_lost(count, 1)} "
        f"ELSE {where_lost(count, -1)} END AS place FROM fates"
    )
    connection.execute("DROP TABLE fates; DROP TABLE crossings")


def captured(
    comparison: Comparison, rows: str, amount: str, heading: int
) -> tuple[dict[str, int | None], dict[str, int]]:
    """Returns by stage the amount of these rows that each point captured, and the amount that must have passed it."""
    count = len(comparison.points)
    order, places = path_order(count, heading), ROLES[count]
    seen = [
        f"coalesce(sum({amount}) FILTER (w{p}{' OR p' + str(p) + ' IS NOT NULL' if not n else ''}), 0)"
        for n, p in enumerate(order)
    ]
    unions = [f"coalesce(sum({amount}) FILTER ({had(order, n)}), 0)" for n in range(count)]
    row = comparison.connection.execute(f"SELECT {', '.join([*seen, *unions])} FROM ({rows})").fetchone() or ()
    numbers = [int(value) for value in row]
    return dict(zip(places, numbers[:count], strict=True)), dict(zip(places, numbers[count:], strict=True))


def roles_on_the_way(comparison: Comparison, heading: int) -> list[str]:
    """Returns the roles of the points in the order in which packets pass them."""
    return [comparison.points[number].role for number in path_order(len(comparison.points), heading)]


def last_dropped(comparison: Comparison, heading: int) -> int | None:
    """Returns the drop count of the last capture on the way."""
    points = comparison.points
    return points[path_order(len(points), heading)[-1]].dropped if len(points) > 1 else None


def packet_ledger(comparison: Comparison, heading: int) -> Ledger | None:
    """Returns the ledger of all packets in one direction; None for a single capture, which shows no losses."""
    if len(comparison.points) < 2:
        return None
    rows = f"FROM outcomes WHERE heading = {heading} AND NOT copy"
    counts, unions = captured(comparison, rows, "1", heading)
    if not any(unions.values()):
        return None
    roles = roles_on_the_way(comparison, heading)
    stages = stages_of(ROLES[len(comparison.points)], roles, counts)
    ledger = Ledger("packets", f"packets {roles[0]} → {roles[-1]}", stages)
    settle(ledger, unions, capture_dropped=last_dropped(comparison, heading))
    (row,) = comparison.rows(
        f"SELECT count(*) FILTER (copy) AS copies, count(*) FILTER (NOT copy AND place IS NOT NULL AND "
        f"({columns(len(comparison.points), '(p{p} IS NOT NULL AND NOT w{p})', ' OR ')})) AS incomplete "
        f"FROM outcomes WHERE heading = {heading}"
    )
    ledger.copies, ledger.incomplete = row["copies"], row["incomplete"]
    return ledger


def run_rows(comparison: Comparison, run: int, tcp: bool) -> str:
    """Returns SQL: the blocks of a run, or the segments of its streams, each once."""
    seen = columns(len(comparison.points), "bool_or(w{p}) AS w{p}, any_value(p{p}) AS p{p}")
    which = f"kind = 0 AND (flow, direction) IN (SELECT (flow, direction) FROM runs WHERE run = {run} AND tcp)"
    if not tcp:
        which = f"kind = 2 AND key2 // 65536 = {run}"
    return (
        f"SELECT max(key2) AS size, max(key1) AS number, heading, bool_or(proven) AS proven, {seen} "
        f"FROM outcomes WHERE {which} GROUP BY flow, direction, key1, {'kind' if tcp else 'key2'}, heading"
    )


def run_ledger(comparison: Comparison, run: int, tcp: bool, heading: int, log: EndpointLog | None) -> Ledger:
    """Returns the ledger of one test in one direction: in blocks, or for TCP in bytes."""
    rows = f"SELECT * FROM ({run_rows(comparison, run, tcp)}) WHERE heading = {heading}"
    counts, unions = captured(comparison, rows, "size" if tcp else "1", heading)
    log = log or EndpointLog(run, None)
    if tcp:
        counts["sent"], counts["received"] = log.sent_bytes, log.received_bytes
    else:
        highest = comparison.connection.execute(f"SELECT max(number) + 1 FROM ({rows})").fetchone()
        numbered = int(highest[0]) if highest and highest[0] is not None else 0
        counts["sent"], counts["received"] = log.sent, log.received
        if log.sent is not None:
            failed = bool(log.send_errors) and numbered > log.sent
            counts["planned"] = log.planned if log.planned is not None else numbered if failed else None
    roles = roles_on_the_way(comparison, heading)
    unit = "bytes" if tcp else "blocks"
    title = f"{unit} of run {run}" if run >= 0 else f"{unit} of the test"
    title += f", {roles[0]} → {roles[-1]}" if len(roles) > 1 else ""
    ledger = Ledger(unit, title, stages_of(ROLES[len(roles)], roles, counts), run=run)
    settle(
        ledger,
        unions,
        None if tcp else log.host_dropped,
        log.host_dropped_source in SOCKET_COUNTERS,
        None if tcp else last_dropped(comparison, heading),
        log.counted,
    )
    ledger.notes = list(run_notes(ledger, log))
    return ledger


def run_notes(ledger: Ledger, log: EndpointLog) -> Iterator[str]:
    """Yields the sources of the numbers and their contradictions."""
    if log.send_errors:
        errors = ", ".join(f"{count:,} {reason}" for reason, count in sorted(log.send_errors.items()))
        yield f"failed sends in the sender's log: {errors}"
    if log.host_dropped:
        yield f"the receiver's kernel dropped {log.host_dropped:,} ({log.host_dropped_source or 'by its log'})"
    sent = next((stage for stage in ledger.stages if stage.name == "sent"), None)
    if sent and sent.missed:
        yield f"captures and receiver have {sent.missed:,} {ledger.unit} more than the sender's log counts as sent"
    if log.complete is False:
        yield "the test did not complete"


def logs_by_run(logs: Sequence[EndpointLog], numbers: set[int]) -> dict[int, list[EndpointLog]]:
    """Returns the logs of each test, forward first. A log without run number belongs to the only test of the captures."""
    named: dict[int, list[EndpointLog]] = {}
    only = next(iter(numbers)) if len(numbers) == 1 else NO_RUN
    for log in logs:
        named.setdefault(only if log.run is None else log.run, []).append(log)
    return named


def run_ledgers(comparison: Comparison) -> Iterator[Ledger]:
    """Returns a ledger for each test and direction in captures or logs."""
    rows = comparison.rows(
        "SELECT DISTINCT run, tcp, heading FROM runs JOIN headings USING (flow, direction) ORDER BY run, heading DESC"
    )
    runs = {row["run"] for row in rows}
    logs = logs_by_run(comparison.logs, runs)
    listed = 0
    for row in rows:
        both: list[EndpointLog | None] = [*logs.get(row["run"], [None])]
        log = both[HEADINGS.index(row["heading"])] if len(both) > 1 else both[0]
        listed += not log
        if log or (not row["tcp"] and listed <= RUNS_MAX):
            yield run_ledger(comparison, row["run"], row["tcp"], row["heading"], log)
    # A receiver's log has all its tests. Those outside the captures are left out, unless the captures have none.
    for run, those in logs.items() if not runs & set(logs) else []:
        for log in those:
            yield run_ledger(comparison, run, log.protocol == "tcp", 1, log)


def list_flows(comparison: Comparison, most: int = 1000) -> list[ComparedFlowRow]:
    """Returns the flows with most packets: ends at each point, and losses by place."""
    count = len(comparison.points)
    ends = columns(
        count,
        "(SELECT any_value(CASE WHEN flip THEN list_select(fields, [1, 4, 5, 2, 3, 6]) ELSE fields END) FROM members "
        "JOIN conversations{p} USING (conversation, incarnation) WHERE point = {p} AND members.flow = o.flow) AS ends{p}",
    )
    places = ", ".join(
        f"count(*) FILTER (place = '{place}') AS {place}" for place in ("before_tracer", "after_tracer", "network")
    )
    seen = columns(count, "count(*) FILTER (w{p} AND NOT copy) AS seen_{p}")
    flows: list[Any] = comparison.rows(
        f"SELECT flow, direction, any_value(heading) AS heading, {ends}, count(*) FILTER (NOT copy) AS packets, {seen}, "
        f"count(*) FILTER (copy) AS copies, count(*) FILTER (proven) AS proven, {places} "
        f"FROM outcomes AS o GROUP BY flow, direction ORDER BY packets DESC, flow, direction LIMIT {most}"
    )
    return flows


def capture_notes(comparison: Comparison) -> Iterator[str]:
    """Yields the doubts about the result."""
    for point in comparison.points:
        if point.dropped:
            yield (
                f"the {point.role}'s capture dropped {plural(point.dropped, 'packet')} by its own statistics: as many apparent "
                "losses before it may have passed uncaptured"
            )
        if point.unread:
            yield f"{plural(point.unread, 'packet')} of the {point.role}'s capture could not be read and are in no count"
    reported: set[str] = set()
    with_ledger = {ledger.run for ledger in comparison.ledgers}
    left = sum(log.run is not None and log.run not in with_ledger for log in comparison.logs)
    if left:
        yield f"{plural(left, 'test')} of the logs are in no capture"
    for ledger in comparison.ledgers:
        for stage in ledger.stages:
            if stage.role in ROLES[3] and stage.missed and stage.role not in reported:
                reported.add(stage.role)
                yield f"{ledger.title}: the {stage.role}'s capture missed {stage.missed:,} of {stage.had:,} {ledger.unit}"


def alone(comparison: Comparison) -> Iterator[str]:
    """Yields the number of conversations that only one capture has."""
    for point in comparison.points if len(comparison.points) > 1 else []:
        row = comparison.rows(
            f"SELECT count(*) AS flows FROM (SELECT flow FROM members GROUP BY flow HAVING count(*) = 1 "
            f"AND any_value(point) = {point.number})"
        )[0]
        if row["flows"]:
            yield f"{plural(row['flows'], 'conversation')} only in the {point.role}'s capture"


def fill(comparison: Comparison, files: list[list[str]], same_clock: bool) -> None:
    """Reads the files of each point and fills tables and results."""
    connection, roles = comparison.connection, ROLES[len(files)]
    comparison.points = [load_point(connection, n, roles[n], files_of_point) for n, files_of_point in enumerate(files)]
    clocks = match(connection, len(files), same_clock)
    for pair, clock in clocks.items():
        state_clock(clock, [comparison.points[number].clock_error_ns for number in pair])
    comparison.clocks = [clocks[pair] for pair in sorted(clocks)]
    place_losses(connection, len(files))
    ledgers = (packet_ledger(comparison, heading) for heading in HEADINGS)
    comparison.ledgers = [*run_ledgers(comparison), *(ledger for ledger in ledgers if ledger)]
    comparison.delays = find_delays(comparison, hops_of(clocks, len(files)))
    comparison.flows = list_flows(comparison)
    comparison.notes = [*capture_notes(comparison), *alone(comparison)]


@contextmanager
def compare_captures(
    *paths: str, sender_log: str | None = None, receiver_log: str | None = None, same_clock: bool = False
) -> Iterator[Comparison]:
    """Compares the captures of one, two or three points, which must be in path order from sender to receiver.

    Raises InputError if a file is no capture, UsageError if the arguments do not fit together.
    """
    check_count(len(paths))
    logs = read_logs(sender_log, receiver_log)
    if len(paths) == 1 and not logs:
        raise UsageError("expected two captures, or one capture and --sender-log or --receiver-log")
    files = [find_files(path) for path in paths]
    check_apart(files)
    with database() as connection:
        comparison = Comparison(connection, [], logs)
        interruptible(connection, lambda: fill(comparison, files, same_clock))
        yield comparison
