# SPDX-License-Identifier: Apache-2.0
"""Traces whose figures are drawn: 0, 1, 2, some, very many in any mixture, so that every rule says every sentence it has."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import wiretale
from checkout import SAMPLES
from wiretale.analyzer import _core
from wiretale.analyzer.findings.model import ON_WIRE
from wiretale.analyzer.findings.transfers import Transfers

START_NS = 1_700_000_000 * 10**9
COUNTS = (0, 0, 1, 1, 2, 3, 7, 40, 1234, 5_000_000)
SIZES = (1, 2, 999, 1460, 20_000, 999_960, 5_000_000, 3 * 10**12)
TIMES = (0, 1, 999, 999_960, 6_000_000, 45_000_000, 999_960_000, 2_500_000_000, 90 * 10**9, 10**13)
NUMBERS = {"packets": COUNTS, "": COUNTS, "bytes": SIZES, "ns": TIMES, "bit/s": SIZES, "frame": (1, 2, 40, 5_000_000)}
SOMETIMES = ("handshake_rtt_ns", "jitter_ns", "delay_variation_ns", "blocks", "mss", "window_scale", "damage")
KINDS = (
    *("fast_retransmission", "timeout_retransmission", "out_of_order", "block_lost", "icmp_error", "window_full"),
    *("captured_out_of_order", "network_duplicate", "ambiguous"),
)
WORDS = _core.vocabulary()
#: cause of an ICMP error, and its detail
MEANINGS = (("packet_too_big", "packet too big: MTU 1,400"), ("port_unreachable", "port unreachable"))
INTEGERS = ("int", "time", "duration")
Row = dict[str, Any]


class DrawnTable:
    """The methods of a table that rules use, over plain rows."""

    def __init__(self, rows: list[Row]) -> None:
        self.drawn_rows = rows

    def __len__(self) -> int:
        return len(self.drawn_rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.drawn_rows)

    def column(self, name: str) -> list[Any]:
        return [row[name] for row in self.drawn_rows]

    def rows(self, start: int = 0, stop: int | None = None) -> list[Row]:
        return self.drawn_rows[start:stop]

    def _rows_at(self, numbers: Iterable[int]) -> list[Row]:
        return [self.drawn_rows[number] for number in numbers]

    def _nonzero(self, names: Iterable[str]) -> dict[str, list[tuple[int, Any]]]:
        return {name: [(i, row[name]) for i, row in enumerate(self.drawn_rows) if row[name]] for name in names}

    def _rows_by_flow(self, flow_count: int) -> list[int]:
        return [sum(row["flow"] == flow for row in self.drawn_rows) for flow in range(flow_count)]

    def total(self, name: str) -> int:
        return sum(row[name] or 0 for row in self.drawn_rows)

    def _rows_where(self, name: str, word_or_least: str | int | None = None) -> list[int]:
        numbers = [i for i, row in enumerate(self.drawn_rows) if row[name] is not None]
        if isinstance(word_or_least, int):
            return [i for i in numbers if self.drawn_rows[i][name] >= word_or_least]
        return [i for i in numbers if word_or_least in (None, self.drawn_rows[i][name])]

    def _words(self, name: str) -> list[tuple[int, str | None]]:
        words = {row[name] for row in self.drawn_rows if row[name] is not None}
        nulls = [(255, None)] if any(row[name] is None for row in self.drawn_rows) else []
        return [*((WORDS.index(word), word) for word in words), *nulls]

    def _packed_columns(
        self, fields: Iterable[tuple[str, str, int, int]], flows: list[int] | None = None
    ) -> list[bytes]:
        return [
            self._packed(name, code, offset=offset, divisor=divisor, flows=flows)
            for name, code, offset, divisor in fields
        ]

    def _packed(
        self, name: str, code: str, *, offset: int = 0, divisor: int = 1, flows: list[int] | None = None
    ) -> bytes:
        values = [row[name] for row in self.drawn_rows if flows is None or row["flow"] in flows]
        numbers = [WORDS.index(value) if isinstance(value, str) else value for value in values]
        null = float("nan") if code in "fd" else 256 ** array(code).itemsize - 1
        return array(
            code,
            [
                null if number is None else (number - offset) / divisor if code in "fd" else min(number, null)
                for number in numbers
            ],
        ).tobytes()


def drawn_of(table: DrawnTable, rows_of: Callable[[Row], list[Row]]) -> DrawnTable:
    """Returns the rows that belong to the rows of another table."""
    return DrawnTable([row for owner in table for row in rows_of(owner)])


class DrawnTrace:
    """Tables whose rows are all drawn from one seed."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.interrupted = self.draw.random() < 0.1
        self.totals = {name: self.count() for name in TOTALS}
        self.interfaces = DrawnTable([self.capture(number) for number in range(self.draw.choice((1, 2)))])
        self.decode_stops = drawn_of(self.interfaces, self.stops_of)
        self.flows = DrawnTable([self.flow(number) for number in range(self.draw.choice((1, 2, 7)))])
        self.totals["flows"] = len(self.flows)
        self.directions = DrawnTable([self.direction(flow, way) for flow in self.flows.drawn_rows for way in (0, 1)])
        self.events = drawn_of(self.directions, self.events_of)
        self.series = drawn_of(self.directions, self.bins_of)
        of_flows = drawn_of(self.flows, self.exchanges_of).drawn_rows
        self.exchanges = DrawnTable([*self.requests_of_hosts(), *self.leases(), *of_flows, *self.pings()])
        self.waits = drawn_of(self.directions, self.waits_of)
        self.endings = drawn_of(self.directions, self.endings_of)
        self.loops = DrawnTable([self.loop(flow) for flow in self.flows.drawn_rows[: self.draw.choice((0, 0, 1))]])
        self.datagrams = DrawnTable([self.datagram() for _ in range(self.draw.choice((0, 1, 2, 40)))])
        self.handshakes = DrawnTable([self.handshake() for _ in range(self.draw.choice((0, 0, 1, 2, 9)))])
        self.relations = DrawnTable([self.relation(flow) for flow in self.draw.choice(((), range(1, len(self.flows))))])
        self.groups = DrawnTable([self.group(flow) for flow in self.flows.drawn_rows[: self.draw.choice((0, 1))]])
        self.announcers = DrawnTable([self.announcer(n) for n in range(self.draw.choice((0, 2, 3)))])
        self.neighbors = DrawnTable([self.neighbor(number) for number in range(self.draw.choice((0, 2, 3)))])
        self.blocks = DrawnTable([])
        self.second_ports = DrawnTable([{**self.row("second_ports"), "rank": 1, "capture": 0}])

    @property
    def transfers(self) -> Transfers:
        trace: Any = self
        return Transfers(trace)

    def count(self) -> int:
        return self.draw.choice(COUNTS)

    def row(self, table: str) -> Row:
        """Any figure in every column."""
        made: Row = {}
        for name, kind, unit in SCHEMA[table]:
            value = self.draw.choice(NUMBERS.get(unit, (1, 64)))
            made[name] = bool(value & 1) if kind == "bool" else value if kind in INTEGERS else f"some {name}"
            if name in SOMETIMES and self.draw.random() < 0.5:
                made[name] = None
        return made

    def relation(self, flow: int) -> Row:
        """Of any kind to the first flow."""
        kind = self.draw.choice(("copy", "tunnel", "translation", "half", "reuse"))
        judged = 0 if kind in ("copy", "tunnel", "translation") else None
        evidence = self.draw.choice(("ends syn sequence", "ends syn"))
        return {
            **self.row("relations"),
            **{"flow": flow, "other": 0, "kind": kind, "judged": judged, "evidence": evidence},
            "hops": self.draw.choice((None, -1, 0, 1, 2)),
        }

    def capture(self, number: int) -> Row:
        row = self.row("interfaces")
        row["backward_ns_max"] += 1
        row["time_unknown"] += row["time_out_of_range"]
        bursts = ("burst_10us_bytes", "burst_100us_bytes", "burst_1ms_bytes")
        row.update(zip(bursts, sorted(row[name] for name in bursts), strict=True))
        row["bytes"] = max(row["bytes"], row["burst_1ms_bytes"])
        return {
            **row,
            "capture": number,
            "interface": 0,
            "first_ns": START_NS,
            "last_ns": START_NS + self.draw.choice(TIMES),
        }

    def stops_of(self, capture: Row) -> list[Row]:
        """Rows of decode_stops that have the packets which an interface counts."""
        hidden, ether = capture["undecoded_packets"], "EtherType 0x8909"
        stops = (
            (None, None, "IP protocol 115" if hidden == 1 else "others", min(hidden, 1)),
            ("not_understood", "not-ip", ether, hidden - 1),
            ("not_understood", "too-deep", None, capture["not_understood"]),
            ("malformed", "ip-length", None, capture["malformed"]),
        )
        names = ("outcome", "reason", "protocol", "packets")
        return [
            {"capture": capture["capture"], **dict(zip(names, stop, strict=True))} for stop in stops if stop[-1] > 0
        ]

    def flow(self, number: int) -> Row:
        states = ("syn_sent", "refused", "reset", "established", "closed", "syn_received")
        protocol = self.draw.choice(("tcp", "tcp", "udp"))
        row = {**self.row("flows"), "flow": number, "protocol": protocol, "ip_version": 4, "path": None}
        exchange = self.draw.choice(("turns", "streaming", "pipelined", None))
        row.update(exchange=exchange if protocol == "tcp" else None, first_capture=0)
        row.update(
            application=None, end="end_of_capture", state=self.draw.choice(states) if protocol == "tcp" else None
        )
        row["wire_bytes"] += 5000
        row["last_frame"] += row["first_frame"]
        return row | self.ends(0)

    def ends(self, way: int) -> Row:
        pair = [("10.0.0.1", 4000), ("10.0.0.2", 80)]
        (source, port), (target, other) = pair[way], pair[1 - way]
        return {"source": source, "source_port": port, "destination": target, "destination_port": other}

    def direction(self, flow: Row, way: int) -> Row:
        row = {**self.row("directions"), **self.ends(way), "flow": flow["flow"], "direction": way}
        row["first_ns"], row["last_ns"] = START_NS, START_NS + self.draw.choice(TIMES)
        row["unique_bytes"] = min(row["unique_bytes"], row["payload_bytes"])
        row["wire_bytes"] = row["payload_bytes"] + 78
        row["packets"] += 1
        row["data_packets"] = max(min(row["data_packets"], row["payload_bytes"]), 1)
        row["head_of_line_ns_max"] += 1
        times = sorted(row[name] + 1 for name in ("rtt_ns_min", "rtt_ns_median", "rtt_ns_p99"))
        row["rtt_ns_min"], row["rtt_ns_median"], row["rtt_ns_p99"] = times
        if row["delay_variation_ns"] is None or row["blocks"] is None:
            row["jitter_ns"] = None
        if row["jitter_ns"] is not None:
            row["delay_variation_ns"] += row["jitter_ns"]
        if row["fragments"]:
            row["fragmented_datagrams"] += 1
            row["fragments"] += 2 * row["fragmented_datagrams"]
        else:
            row["fragment_overhead_bytes"] = 0
        return row | self.losses(row) | self.on_wire(row)

    def on_wire(self, row: Row) -> Row:
        """Counts on the wire: as captured, more because of super-segments, or unknown."""
        times = self.draw.choice((1, 1, 3, None))
        made = {wire: times and times * row[name] for name, wire in ON_WIRE.items()}
        sizes = {
            name: min(row[name], row["payload_bytes"]) for name in ("lost_upstream_bytes", "lost_downstream_bytes")
        }
        return {**made, **sizes, "wire_mss": times and 1448}

    def losses(self, row: Row) -> Row:
        """Numbered packets and their losses, which agree with each other."""
        names = ("blocks_lost", "block_loss_runs", "block_loss_run_max")
        if row["blocks"] is None:
            return dict.fromkeys(
                (*names, "blocks_out_of_order", "blocks_duplicate", "blocks_corrupt", "blocks_head_of_line")
            )
        row["blocks"] += 1 + row["blocks_head_of_line"]
        runs = min(max(row["block_loss_runs"], 1), row["blocks_lost"])
        return {"block_loss_runs": runs, "block_loss_run_max": row["blocks_lost"] - runs + 1 if runs else 0}

    def events_of(self, direction: Row) -> list[Row]:
        events, frame = [], 1
        for _ in range(self.draw.choice((0, 1, 8, 8))):
            frame += self.draw.choice((1, 2, 5, 900))
            row = {
                **self.row("events"),
                "flow": direction["flow"],
                "direction": direction["direction"],
                "frame": frame + 9,
            }
            cause, detail = self.draw.choice(MEANINGS)
            row.update(kind=self.draw.choice(KINDS), related_frame=frame, cause=cause, detail=detail)
            row.update(bytes=self.draw.choice((None, 1460)), evidence=self.draw.choice(("dsack", "acknowledged", None)))
            row.update(place=self.draw.choice(("upstream", "downstream", None)), time_ns=START_NS + frame * 10**6)
            events.append(row)
        return events

    def bins_of(self, direction: Row) -> list[Row]:
        width, level = 10**7, self.draw.choice((12_500, 1_250_000, 0))
        rows = []
        for number in range(30):
            row = {
                **self.row("series"),
                "flow": direction["flow"],
                "direction": direction["direction"],
                "width_ns": width,
            }
            row.update(
                start_ns=START_NS + number * width, wire_bytes=level or row["wire_bytes"], rtt_ns=row["rtt_ns"] + 1
            )
            rows.append(row)
        return rows

    def exchanges_of(self, flow: Row) -> list[Row]:
        queries = [self.query() for _ in range(0 if flow["flow"] else self.draw.choice((0, 0, 1, 2, 9)))]
        return queries + (self.turns_of(flow) if flow["exchange"] == "turns" else [])

    def turns_of(self, flow: Row) -> list[Row]:
        way, rows = self.draw.choice((0, 0, 1)), []
        for number in range(self.draw.choice((1, 2, 9))):
            row = {**self.row("exchanges"), "flow": flow["flow"], "direction": way, "turn": number, "kind": "turn"}
            row.update(outcome="answered", asked_ns=START_NS, client=flow["source"], server=flow["destination"])
            if self.draw.random() < 0.2:
                row.update(server_ns=None, network_ns=None, response_ns=None, response_bytes=None, answered_ns=None)
                row["outcome"] = self.draw.choice(("unanswered", "abandoned", "cut_off"))
            row["last_frame"] += row["asked_frame"]
            rows.append(row)
        return rows

    def waits_of(self, direction: Row) -> list[Row]:
        rows = []
        for kind in (
            "timeout",
            "timeout",
            "idle",
            "window",
            "network",
            "delayed_ack",
            "send_buffer",
            "slow_start",
            "rtt",
        ):
            if self.draw.random() < 0.5:
                row = {
                    **self.row("waits"),
                    "flow": direction["flow"],
                    "direction": direction["direction"],
                    "kind": kind,
                }
                row.update(before_capture=0, before_ns=START_NS + 90, after_capture=0, after_ns=START_NS + 250_000_000)
                row["after_frame"] += row["before_frame"]
                rows.append(row)
        return rows

    def endings_of(self, direction: Row) -> list[Row]:
        kinds = self.draw.choice(((), ("fin",), ("reset",), ("fin", "reset")))
        of_flow = {name: direction[name] for name in ("flow", "direction")}
        return [
            {**self.row("endings"), **of_flow, "kind": kind, "capture": 0, "time_ns": START_NS + 250_000_000}
            for kind in kinds
        ]

    def loop(self, flow: Row) -> Row:
        return {**self.row("loops"), "flow": flow["flow"], "direction": 0, "first_capture": 0, "passes_max": 31}

    def query(self) -> Row:
        code = self.draw.choice(("NOERROR", "SERVFAIL", "NXDOMAIN", None))
        row = {**self.row("exchanges"), "kind": "dns", "flow": 0, "code": code, "attempts": self.draw.choice((1, 2))}
        row.update(asked_ns=START_NS, answered_ns=START_NS + row["waited_ns"], outcome="answered", turn=None)
        if code is None:
            row.update(answered_ns=None, answered_frame=None, outcome="unanswered")
        return row

    def exchange(self, kind: str, outcome: str) -> Row:
        row = {**self.row("exchanges"), "kind": kind, "outcome": outcome, "capture": 0, "flow": None, "direction": None}
        row["turn"] = None
        row["waited_ns"] += 1
        row.update(asked_ns=START_NS, code=None, client="10.0.0.1", server="10.0.0.2")
        if outcome != "answered":
            row.update(answered_ns=None, answered_frame=None)
        return row

    def requests_of_hosts(self) -> list[Row]:
        """ARP requests for hosts that are not there, and for one that is."""
        absent = [
            {
                **self.exchange("arp", "unanswered"),
                "server": f"10.0.9.{number}",
                "attempts": self.draw.choice((3, 1234)),
            }
            for number in range(self.draw.choice((0, 1, 7)))
        ]
        return [*absent, *(self.exchange("arp", "answered") for _ in range(self.draw.choice((0, 1))))]

    def leases(self) -> list[Row]:
        kinds = (("Discover", "unanswered"), ("Discover", "answered"), ("Request", "answered"), ("Request", "refused"))
        drawn = (self.draw.choice(kinds) for _ in range(self.draw.choice((0, 1, 7))))
        return [
            {**self.exchange("dhcp", outcome), "type": kind, "name": f"02:00:00:00:00:{number:02x}"}
            for number, (kind, outcome) in enumerate(drawn)
        ]

    def pings(self) -> list[Row]:
        outcomes = [
            self.draw.choice(("answered", "unanswered", "error")) for _ in range(self.draw.choice((0, 0, 1, 9, 40)))
        ]
        rows = [{**self.exchange("icmp_echo", outcome), "flow": 0, "direction": 0} for outcome in outcomes]
        for number, row in enumerate(rows):
            row["asked_ns"] += number * 10**9
            row["code"] = "host unreachable" if row["outcome"] == "error" else None
        return rows

    def group(self, flow: Row) -> Row:
        """A group whose stream, the flow, ended 260 s after a report, long before the end of the capture."""
        flow.update(packets=5_000_000, first_ns=START_NS - 10**9, last_ns=START_NS + 260 * 10**9, first_capture=0)
        self.interfaces.drawn_rows[0]["last_ns"] = START_NS + self.draw.choice((300, 10_000)) * 10**9
        row = {**self.row("groups"), "capture": 0, "vlan": None, "address": flow["destination"]}
        return {**row, "last_ns": START_NS, "query_ns": None, "query_frame": None}

    def announcer(self, number: int) -> Row:
        """Two masters of one virtual router, or two routers."""
        kind = self.draw.choice(("vrrp", "vrrp", "router"))
        row = {**self.row("announcers"), "capture": 0, "kind": kind, "vlan": None, "source": f"10.0.0.{number + 2}"}
        row.update(mac=None, number=10, value=100, address="10.0.0.1", packets=9, withdrawals=0)
        return {**row, "first_ns": START_NS, "last_ns": START_NS + 10**10}

    def neighbor(self, number: int) -> Row:
        mac = f"02:00:00:00:00:{number + 1:02x}"
        row = {**self.row("neighbors"), "capture": 0, "vlan": None, "address": "10.0.0.9", "mac": mac}
        return {**row, "conflicts": self.draw.choice((1, 2, 1234)), "conflict_ns": START_NS}

    def handshake(self) -> Row:
        row = {
            **self.row("handshakes"),
            "flow": 0,
            "client_hello_frame": 4,
            "server_hello_frame": 6,
            "version": "1.3",
            "alert_direction": 1,
        }
        row["duration_ns"] = (row["server_ns"] or 0) + (row["client_ns"] or 0) + 1_000_000
        return {**row, "alert": self.draw.choice((None, "protocol_version")), "round_trips": self.draw.choice((1, 2))}

    def datagram(self) -> Row:
        row = self.row("datagrams")
        row["last_frame"] += row["first_frame"]
        state = self.draw.choice(("complete", "complete", "incomplete"))
        return {**row, "flow": 0, "state": state, "fragments": 3 if state == "complete" else 2}


Schema = dict[str, list[tuple[str, str, str]]]


def schema() -> tuple[Schema, list[str]]:
    """The columns of the tables, and the names of the totals, as the core has them."""
    trace = wiretale.analyze(SAMPLES / "keep_alives.pcapng", interfaces_only=True)
    tables = (
        "interfaces",
        "exchanges",
        "neighbors",
        "announcers",
        "groups",
        "second_ports",
        "flows",
        "directions",
        "events",
        "series",
        "waits",
        "endings",
        "loops",
        "datagrams",
        "handshakes",
        "relations",
    )
    columns = {name: [(column, kind, unit) for column, kind, unit, _ in trace.table(name).columns()] for name in tables}
    return columns, list(trace.totals)


SCHEMA, TOTALS = schema()
