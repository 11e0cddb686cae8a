# SPDX-License-Identifier: Apache-2.0
"""Rows of exchanges at one capture point beside the logs of both ends.

At a point behind the loss of a first transmission nothing shows when it was sent: there the sum of its sender's times is
compared, and null is right.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

import wiretale
from score.exchanges.drawn import CODES, ENDS, Connection, Lookup, Plan
from score.exchanges.testbed import LOGS
from score.runs.testbed import POINTS

Row = dict[str, Any]
NEAR_NS, NEAR_SHARE = 5e6, 0.02
PATIENCE_NS, TRIES = 5e9, 3  # without an answer, a question is cut off before both (docs/tables.md)
ON_TIME_NS, PASSES = 2e6, 4  # a packet may be so much later than its link's delay; links that a turn passes
ANSWERS = (0, 3)  # codes of DNS: that a name does not exist is an answer
CLIENT, SERVER = 0, 1  # sides
PARTS = (
    ("pause", "request_pause"),
    ("server", "response_pause"),
)  # of a turn, before and within the message of each side
LOST = """
select direction, in_ns, source_port, destination_port from read_csv(?, all_varchar = false, sample_size = -1)
where protocol = 6 and fate != 'delivered' and in_ns is not null and {}
"""
DATA, RESETS = "payload_bytes > 0", "tcp_flags & 4 > 0"
LATE = "select max(out_ns - due_ns) from read_csv(?, all_varchar = false, sample_size = -1) where out_ns is not null"


def lateness(folder: Path) -> float:
    """Returns the longest time by which this machine delayed a packet beyond its link's delay, ns."""
    return max(duckdb.execute(LATE, [str(folder / f"link{number}.csv")]).fetchall()[0][0] or 0 for number in (1, 2))


def lost_packets(folder: Path, which: str) -> dict[int, list[Any]]:
    """Returns direction, time and ports of the packets that each link lost."""
    logs = {number: str(folder / f"link{number}.csv") for number in (1, 2)}
    return {number: duckdb.execute(LOST.format(which), [log]).fetchall() for number, log in logs.items()}


@dataclass
class Compared:
    """What one capture point says of a run: `counts` of parts and rows by verdict, and a line for each difference."""

    plan: Plan
    folder: Path
    point: str
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.logs = json.loads((self.folder / LOGS).read_text())
        late = lateness(self.folder)
        self.near_ns = NEAR_NS + (PASSES * late if late > ON_TIME_NS else 0)
        self.lost, self.lost_resets = lost_packets(self.folder, DATA), lost_packets(self.folder, RESETS)
        trace = wiretale.analyze(self.folder / f"{self.point}.pcap")
        flows = trace.flows.rows()
        self.last_ns = max(flow["last_ns"] or 0 for flow in flows)
        self.rows: dict[int, list[Row]] = defaultdict(list)
        self.names: dict[str, list[Row]] = defaultdict(list)
        exchanges: list[Row] = [dict(row) for row in trace.exchanges.rows()]
        for row in exchanges:
            if row["kind"] == "dns":
                self.names[row["name"]].append(row)
            elif row["flow"] is not None:
                self.rows[flows[row["flow"]]["destination_port"] or 0].append(row)

    def lasts_ns(self, row: Row) -> int:
        """Returns the time from a request to the end of the capture."""
        return self.last_ns - int(row["asked_ns"])

    def note(self, what: str, is_right: bool, text: str) -> None:
        self.counts[what, "right" if is_right else "wrong"] += 1
        if not is_right:
            self.wrong.append(f"{self.plan.scenario.name}, {self.point}: {text}")

    def measure(self, where: str, part: str, stated: float | None, true: float) -> None:
        """Counts a part as right, wrong, or null."""
        if stated is None:
            self.counts[part, "null"] += 1
            return
        is_near = abs(stated - true) <= self.near_ns + NEAR_SHARE * true
        self.note(part, is_near, f"{where} {part} {stated / 1e6:.1f} ms, true {true / 1e6:.1f}")

    def is_hidden(self, port: int, side: int, begin: float, end: float) -> bool:
        """Returns whether a link between the sender of a message and this point lost a part of it."""
        place = POINTS.index(self.point)
        links = range(1, place + 1) if side == CLIENT else range(place + 1, 3)
        return any(
            direction == side and begin <= in_ns < end and port in ports
            for link in links
            for direction, in_ns, *ports in self.lost[link]
        )

    def compare(self) -> Compared:
        for connection, client_log in zip(self.plan.connections, self.logs["connections"], strict=True):
            self.compare_connection(connection, client_log)
        for lookup, client_log in zip(self.plan.lookups, self.logs["lookups"], strict=True):
            self.compare_lookup(lookup, client_log)
        return self

    def end_of(self, connection: Connection, client_log: Row) -> str | None:
        """Returns the outcome of the last request at this point: a client that does not hear of a reset gives up."""
        if connection.end == "hung" and (rows := self.rows[connection.port]):
            last = max(rows, key=lambda row: -1 if row["turn"] is None else row["turn"])
            return "unanswered" if self.lasts_ns(last) >= PATIENCE_NS else ENDS["hung"]
        if not client_log.get("unheard") or self.point == "receiver":
            return ENDS[connection.end]
        is_lost_before = any(port == connection.port for _, _, port, _ in self.lost_resets[2])
        return "reset" if self.point == "tracer" and not is_lost_before else "abandoned"

    def compare_connection(self, connection: Connection, client_log: Row) -> None:
        port, rows = connection.port, self.rows[connection.port]
        opened = [row["outcome"] for row in rows if row["kind"] == "connect"]
        expected = "refused" if connection.end == "refused" else "answered"
        self.note("outcome", opened == [expected], f"{port} connect {opened}, true {expected}")
        turns = sorted((row for row in rows if row["turn"] is not None), key=lambda row: row["turn"])
        self.note(
            "requests",
            len(turns) == len(client_log["turns"]),
            f"{port} has {len(turns)} of {len(client_log['turns'])} requests",
        )
        if len(turns) == len(client_log["turns"]):
            self.compare_turns(connection, client_log, turns)
        if self.point == "sender" and opened == ["answered"]:
            (connect,) = (row for row in rows if row["kind"] == "connect")
            self.measure(f"{port}", "connect", connect["waited_ns"], client_log["connected"])

    def compare_turns(self, connection: Connection, client_log: Row, turns: list[Row]) -> None:
        port = connection.port
        for number, (row, log) in enumerate(zip(turns, client_log["turns"], strict=True)):
            is_error = number == 0 and (connection.status or 0) >= 500
            outcome = self.end_of(connection, client_log) if number == len(turns) - 1 else "answered"
            outcome = "error" if outcome == "answered" and is_error else outcome
            self.note("outcome", row["outcome"] == outcome, f"{port} turn {number} {row['outcome']}, true {outcome}")
            self.compare_turn(f"{port} turn {number}", port, row, log, self.served(port, number))

    def served(self, port: int, number: int) -> Row | None:
        log = self.logs["served"].get(str(port), [])
        return log[number] if number < len(log) else None

    def compare_turn(self, where: str, port: int, row: Row, client_log: Row, served: Row | None) -> None:
        begin: float = client_log["begin"]
        end: float = client_log.get("end", begin)
        request = (client_log["pause"], client_log["request_pause"])
        before = begin - (client_log["pause"] or 0)
        self.compare_side(where, row, CLIENT, request, self.is_hidden(port, CLIENT, before, end))
        if served is None:
            return
        response, is_hidden = (served["server"], served["response_pause"]), self.is_hidden(port, SERVER, begin, end)
        self.compare_side(where, row, SERVER, response, is_hidden)
        if self.point == "sender" and not is_hidden:  # else the second segment of the answer may come first
            self.measure(where, "waited", row["waited_ns"], client_log["first"] - begin)

    def compare_side(self, where: str, row: Row, side: int, true: tuple[float | None, float], hidden: bool) -> None:
        stated = [row[f"{part}_ns"] for part in PARTS[side]]
        if not hidden:
            for part, ns, true_ns in zip(PARTS[side], stated, true, strict=True):
                if true_ns is not None:
                    self.measure(where, part, ns, true_ns)
        elif None not in stated and true[0] is not None:
            self.measure(where, " and ".join(PARTS[side]), sum(stated), sum(filter(None, true)))

    def compare_lookup(self, lookup: Lookup, client_log: Row) -> None:
        rows = self.names[lookup.name]
        most = (
            1 if self.point == "sender" else client_log["attempts"]
        )  # the client asks again if an answer is lost behind this point
        self.note("requests", 1 <= len(rows) <= most, f"{lookup.name} has {len(rows)} rows")
        if not rows:
            return
        row = rows[-1]
        outcome = "unanswered" if client_log["waited"] is None else "answered" if lookup.code in ANSWERS else "error"
        if outcome == "unanswered" and row["attempts"] < TRIES and self.lasts_ns(row) < PATIENCE_NS:
            outcome = "cut_off"  # some of the questions did not come so far
        self.note("outcome", row["outcome"] == outcome, f"{lookup.name} {row['outcome']}, true {outcome}")
        if outcome in ("answered", "error"):
            code = CODES[lookup.code or 0]
            self.note("code", row["code"] == code, f"{lookup.name} {row['code']}, true {code}")
        if self.point == "sender":
            self.note(
                "attempts", row["attempts"] == client_log["attempts"], f"{lookup.name} {row['attempts']} attempts"
            )
            if client_log["waited"] is not None:
                self.measure(lookup.name, "waited", row["waited_ns"], client_log["waited"])


def compare(plan: Plan, folder: Path) -> Iterator[Compared]:
    for point in POINTS:
        yield Compared(plan, folder, point).compare()
