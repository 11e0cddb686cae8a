# SPDX-License-Identifier: Apache-2.0
"""TCP connections with client and server, how they ended, and what silence or a reset on them shows."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.evidence import CITED, SHOWN, Cited
from wiretale.analyzer.findings.exchanges.exchange_rows import numbers_where, rows_numbered
from wiretale.analyzer.findings.model import endpoint_str, row_at
from wiretale.analyzer.findings.shared.servers import WELL_KNOWN
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.findings.transfers import Transfers
    from wiretale.analyzer.rows import DirectionRow, EndingRow, ExchangeRow, FlowRow

RESETS_MAX = 2000
ROWS_MAX = 5000  # endings, and flows, that causes examine
#: of protocols in which the server speaks first
GREETING_PORTS = frozenset((21, 22, 23, 25, 110, 119, 143, 587, 3306, 5900))
EXCHANGE_KINDS = ("http", "tls", "turn")
OPEN_OUTCOMES = ("unanswered", "abandoned", "reset", "closed")
GROUPS_MAX = 20  # servers that a cause names, each in a row of its own
SILENT_MIN_NS = 3_000_000_000  # a lost segment or two are repaired sooner
ATTEMPTS_MIN = {"timeouts": 2, "keep_alives": 3}
EQUAL = 1.05  # the longest of alike times over the shortest
End = tuple[str, "int | None"]
Item = TypeVar("Item")
Key = TypeVar("Key")


class Connection(NamedTuple):
    """A TCP connection."""

    flow: FlowRow
    directions: tuple[DirectionRow, DirectionRow]
    client_side: int  # the direction that the client sends

    @property
    def number(self) -> int:
        """The flow."""
        return self.flow["flow"]

    @property
    def server_side(self) -> int:
        """The direction that the server sends."""
        return 1 - self.client_side

    def end(self, side: int) -> End:
        """Returns address and port of the end that sends a direction."""
        row = self.directions[side]
        return row["source"], row["source_port"]

    @property
    def server(self) -> End:
        """Address and port of the server."""
        return self.end(self.server_side)

    def rtt_to(self, side: int) -> int | None:
        """Returns the least round trip between the capture point and the end that sends a direction, ns."""
        samples = [self.directions[1 - side]["rtt_ns_min"]]
        if side == 1 and self.flow["handshake_rtt_ns"] is not None:
            samples.append(self.flow["handshake_rtt_ns"])
        return min((ns for ns in samples if ns is not None), default=None)

    @property
    def last_ns(self) -> int:
        """The time of the last packet."""
        return self.flow["last_ns"] or 0


class Silence(NamedTuple):
    """An end that went on sending after the last packet of the other one."""

    connection: Connection
    side: int  # of the end that was not answered
    began_ns: int  # its first packet without an answer, or the last packet of the other end
    silent_ns: int  # from then to its last packet
    idle_ns: int  # the pause before; 0 without one

    @property
    def flow(self) -> int:
        """The flow."""
        return self.connection.number

    @property
    def attempts(self) -> int:
        """The packets that got no answer: retransmissions and keep-alives, or the data that was never repeated."""
        row = self.connection.directions[self.side]
        return max((row["retransmissions"] or 0) + (row["keep_alives"] or 0), 1)


def silence_of(connection: Connection, side: int) -> Silence | None:
    """Returns the silence in which a connection ends for an end that sent data or keep-alives; None if it was answered."""
    row, peer = connection.directions[side], connection.directions[1 - side]
    last_ns, heard_ns = row["last_ns"], peer["last_ns"]
    if last_ns is None or heard_ns is None or peer["fins"] or peer["resets"]:
        return None
    wants_answer = row["unacked_bytes"] or (row["keep_alives"] or 0) >= ATTEMPTS_MIN["keep_alives"]
    if last_ns - heard_ns < SILENT_MIN_NS or not wants_answer or not (row["unique_bytes"] or peer["unique_bytes"]):
        return None
    pause_ns, resumed_ns = connection.flow["pause_ns"], connection.flow["pause_until_ns"]
    if pause_ns and resumed_ns and resumed_ns > heard_ns and connection.flow["pause_direction"] == side:
        return Silence(connection, side, resumed_ns, last_ns - resumed_ns, pause_ns)
    return Silence(connection, side, heard_ns, last_ns - heard_ns, 0)


class Connections:
    """The TCP connections of a trace, and their endings; read when a cause asks for them."""

    def __init__(self, transfers: Transfers) -> None:
        self.transfers = transfers
        self.trace = transfers.trace
        self._known: dict[int, Connection] = {}

    def __getitem__(self, flow: int) -> Connection:
        if flow not in self._known:
            row = row_at(self.trace.flows, flow)
            first, second = self.trace.directions.rows(2 * flow, 2 * flow + 2)
            self._known[flow] = Connection(row, (first, second), client_side(row))
        return self._known[flow]

    @cached_property
    def end_ns(self) -> int:
        """The time at which the capture ends."""
        return max((ns for ns in self.trace.interfaces.column("last_ns") if ns is not None), default=0)

    @cached_property
    def endings(self) -> list[EndingRow]:
        """The first endings of judged flows that left something open: unacknowledged or late data, the other half, packets of
        the host that had reset it, or an attempt that the server accepted after all."""
        table = self.trace.endings
        if not len(table):
            return []
        names = ("unacked_bytes", "late_bytes", "packets_after")
        columns = [*((name, "d", 0, 1) for name in names), ("flow", "I", 0, 1), ("kind", "B", 0, 1)]
        packed = table._packed_columns(columns)
        arrays = zip(*(array(code, data) for (_, code, _, _), data in zip(columns, packed, strict=True)), strict=True)
        fin, unanswered = self.transfers.words["fin"], {*self.open_requests, *self.contradicted}
        rows = [
            number
            for number, (unacked, late, after, flow, kind) in enumerate(arrays)
            if unacked > 0 or late > 0 or after > 0 or kind == fin or int(flow) in unanswered
        ]
        return self.transfers.without_legs(table._rows_at(rows[:ROWS_MAX]))

    @cached_property
    def resets(self) -> list[EndingRow]:
        """The first resets of judged flows, also of those that left nothing open."""
        table = self.trace.endings
        if not len(table):
            return []
        kinds, word = table._packed("kind", "B"), self.transfers.words["reset"]
        numbers = [number for number, kind in enumerate(kinds) if kind == word]
        return self.transfers.without_legs(table._rows_at(numbers[:RESETS_MAX]))

    @cached_property
    def endings_of(self) -> dict[int, list[EndingRow]]:
        """The same by flow."""
        return grouped(self.endings, lambda row: row["flow"])

    @cached_property
    def endings_with_reset(self) -> dict[int, list[EndingRow]]:
        """Those of the flows that a RST ended."""
        return {flow: rows for flow, rows in self.endings_of.items() if any(row["kind"] == "reset" for row in rows)}

    @cached_property
    def open_requests(self) -> dict[int, int]:
        """The exchange of the last request of each flow that got no complete answer."""
        kinds, words, flows = self.transfers.bytes_of("exchanges", "kind"), self.transfers.words, self.transfers.flow_of
        of_requests = {words[kind] for kind in EXCHANGE_KINDS}
        numbers = chain.from_iterable(numbers_where(self.transfers, "outcome", word) for word in OPEN_OUTCOMES)
        return {flows[number]: number for number in sorted(numbers) if kinds[number] in of_requests}

    def open_request(self, flow: int) -> ExchangeRow | None:
        """Returns the last request of a flow that got no complete answer; None if it has none."""
        number = self.open_requests.get(flow)
        return None if number is None else rows_numbered(self.transfers, [number])[0]

    @cached_property
    def silent(self) -> list[Silence]:
        """The first connections on which one end left data or keep-alives of the other unanswered to the end."""
        counts = self.transfers.counts
        numbers = {number for name, least in ATTEMPTS_MIN.items() for number, count in counts[name] if count >= least}
        silences = (silence_of(self[number // 2], number % 2) for number in sorted(numbers)[:ROWS_MAX])
        return [silence for silence in silences if silence and self.transfers.hidden.conclusive([silence.flow])]

    def harmless_ns(self, server: End, victims: Iterable[int], closed: Mapping[int, int] | None = None) -> int:
        """Returns the longest pause on connections to a server after which traffic went on; 0 without one. `closed`: pauses by
        flow that ended with a FIN, ns."""
        left_out, flows, ended = set(victims), self.to_server(server), closed or {}
        last, before = self._columns(flows, "pause_ns", "pause_before_ns")
        pauses = [ns for flow, ns in zip(flows, last, strict=True) if flow not in left_out]
        pauses += [ns for flow, ns in zip(flows, before, strict=True) if flow not in ended or ns != ended[flow]]
        return int(max((ns for ns in (0.0, *pauses) if ns == ns), default=0.0))

    def to_server(self, server: End) -> list[int]:
        """Returns the first connections to a server."""
        return self._by_server.get(server, [])[:ROWS_MAX]

    def states_of(self, server: End, since_ns: int = 0) -> Counter[str]:
        """Returns how many connections to a server that began at a time or later are in each state."""
        flows = self.to_server(server)
        (began,) = self._columns(flows, "first_ns")
        states = self.trace.flows._packed("state", "B", flows=flows) if flows else b""
        words = {number: word for word, number in self.transfers.words.items()}
        since = since_ns - self.transfers.base_ns
        return Counter(words.get(state, "") for state, ns in zip(states, began, strict=True) if not ns < since)

    def connected_after(self, server: End, since_ns: int) -> Connection | None:
        """Returns a connection to a server that came about after a time; None without one."""
        flows = self.to_server(server)
        began, rtts = self._columns(flows, "first_ns", "handshake_rtt_ns")
        since = since_ns - self.transfers.base_ns
        triples = zip(flows, began, rtts, strict=True)
        return next((self[flow] for flow, ns, rtt in triples if ns >= since and rtt == rtt), None)

    @cached_property
    def contradicted(self) -> dict[int, Connection]:
        """The attempts that a RST refused, and the connection in which the server accepted the same SYN after it."""
        reused = self.transfers.flows_where("end", "ports_reused")
        refused = set(self.transfers.attempts.flows_in("refused")) if reused else set()
        pairs = ((flow, self._accepted_after(flow)) for flow in reused[:ROWS_MAX] if flow in refused)
        return {flow: accepted for flow, accepted in pairs if accepted}

    def _accepted_after(self, flow: int) -> Connection | None:
        """Returns the next connection of the same ends if it begins with an answer to the SYN of a flow."""
        attempt = self[flow]
        later = (self[number] for number in self.to_server(attempt.end(1)) if number > flow)
        again = next((each for each in later if each.end(0) == attempt.end(0)), None)
        if again is None or again.flow["initiator_evidence"] != "syn_ack":
            return None
        sent, acknowledged = (each.directions[0]["initial_sequence"] for each in (attempt, again))
        is_answer = sent is not None and acknowledged == (sent + 1) % 2**32
        return again if is_answer else None

    def requests_to(self, server: End) -> int:
        """Returns the number of requests to a server."""
        return self._requests[server]

    def _columns(self, flows: list[int], *names: str) -> list[array[float]]:
        """Returns columns of flows, which must ascend; times since the first packet, null as NaN."""
        times = dict.fromkeys(("first_ns", "last_ns"), self.transfers.base_ns)
        fields = [(name, "d", times.get(name, 0), 1) for name in names]
        packed = self.trace.flows._packed_columns(fields, flows) if flows else [b"" for _ in names]
        return [array("d", column) for column in packed]

    @cached_property
    def _by_server(self) -> dict[End, list[int]]:
        """The TCP connections by server: the end that did not open them, or either one if that is not known."""
        flows, legs = self.trace.flows, self.transfers.legs
        names = ("destination", "destination_port", "source", "source_port", "initiator_known", "protocol")
        servers: dict[End, list[int]] = {}
        for flow, row in enumerate(zip(*(flows.column(name) for name in names), strict=True)):
            host, port, source, source_port, is_known, protocol = row
            if protocol == "tcp" and flow not in legs:
                servers.setdefault((host, port), []).append(flow)
                if not is_known:
                    servers.setdefault((source, source_port), []).append(flow)
        return servers

    @cached_property
    def _requests(self) -> Counter[End]:
        """The requests by server."""
        exchanges, flows = self.trace.exchanges, self.trace.flows
        ends = list(
            zip(flows.column("source"), flows.column("source_port"), flows.column("destination_port"), strict=True)
        )
        counts: Counter[End] = Counter()
        columns = (exchanges.column(name) for name in ("kind", "server", "flow"))
        for kind, host, flow in zip(*columns, strict=True):
            if kind in EXCHANGE_KINDS and flow is not None:
                source, source_port, port = ends[flow]
                counts[host, source_port if host == source else port] += 1
        return counts


def client_side(flow: FlowRow) -> int:
    """Returns the direction of the client: as the core knows it, else the initiator, else the end without a service's port."""
    if flow["client"] is not None:
        return flow["client"]
    if flow["initiator_known"] or flow["source_port"] is None:
        return 0
    return 1 if flow["source_port"] < WELL_KNOWN <= (flow["destination_port"] or 0) else 0


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Returns items by a key, in their order."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def largest_groups(items: Iterable[Item], key: Callable[[Item], Key]) -> list[tuple[Key, list[Item]]]:
    """Returns the same of the keys with the most items, which have a cause of their own."""
    groups = sorted(grouped(items, key).items(), key=lambda group: -len(group[1]))
    return groups[:GROUPS_MAX]


def server_str(connections: Sequence[Connection]) -> str:
    """Returns `www.example.org:443`, `10.0.0.2:80`, or `3 servers`."""
    servers = list(dict.fromkeys(each.server for each in connections))
    if len(servers) > 1:
        return plural(len(servers), "server")
    names = {each.flow["server_name"] for each in connections}
    host, port = servers[0]
    name = next(iter(names)) if len(names) == 1 else None
    return f"{name}:{port}" if name and ":" not in name else endpoint_str(host, port)


def filter_of(connections: Iterable[Connection]) -> str:
    """Returns the display filter of the first connections."""
    return " or ".join(flow_filter(each.flow) for each in islice(connections, SHOWN))


def of_connections(connections: Sequence[Connection]) -> dict[str, Any]:
    """Returns the fields of a match that is about connections: their flows, filter and servers."""
    return {
        "flows": [each.number for each in connections],
        "filter": filter_of(connections),
        "server": server_str(connections),
    }


def times_str(times: Iterable[float]) -> str:
    """Returns `2.0 s`, or `11 to 16 s`."""
    ordered = sorted(times)
    if ordered[-1] <= EQUAL * ordered[0]:
        return show_duration(ordered[len(ordered) // 2])
    least, most = show_duration(ordered[0]), show_duration(ordered[-1])
    same_unit = least.split()[-1] == most.split()[-1]
    return f"{least.split()[0] if same_unit else least} to {most}"


def is_alike(times: Sequence[float]) -> bool:
    """Returns whether times differ by 5% at most."""
    return max(times) <= EQUAL * min(times)


def ending_cited(row: EndingRow, role: str = CITED) -> Cited:
    """Returns the packet of an ending."""
    return Cited(row["frame"], row["time_ns"], row["flow"], row["capture"], role)


def first_of(cited: Iterable[Any]) -> list[Any]:
    """Returns the first items that a report shows."""
    return list(cited)[:SHOWN]
