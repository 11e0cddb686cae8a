# SPDX-License-Identifier: Apache-2.0
"""Who is slow: the time of flows by server, network, client and transfer; servers that answer late.

The sums are those of the time account of flows. The table exchanges has the times of each turn; its rows are read only for the
flows that are explained.
"""

from __future__ import annotations

import math
from array import array
from functools import cached_property
from heapq import nlargest
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.evidence import REQUEST, RESPONSE, SHOWN, Cited
from wiretale.analyzer.findings.exchanges.accounts import Accounts
from wiretale.analyzer.findings.exchanges.exchange_rows import numbers_where
from wiretale.analyzer.findings.model import Match, Matches, Words, endpoint_str, finding, row_at, seconds
from wiretale.analyzer.findings.shared.places import packet_at
from wiretale.analyzer.units import plural, show_duration, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.findings.exchanges.clock_jumps import ClockJump
    from wiretale.analyzer.findings.transfers import Bins, Transfers
    from wiretale.analyzer.rows import FlowRow

CHAPTER = "Requests and responses"
SLOW_NS = 200_000_000  # a person notices it
SHARE_WARNING = 0.1  # of the time of the turns
ALIKE = 1.25  # the longest time over the shortest, if they are given as one
UPLOAD_SHARE, UPLOAD_BPS = 0.5, 80_000  # of a server time; of an upload
NO_TURN = 2**32 - 1  # as it is packed
SLOW_FLOWS_MAX = 500  # flows with the longest server time that are examined
OVERLAP = 1.1  # times the capture: a longer sum is one of flows that overlap
PART_MIN = 0.005  # of the whole; a smaller part is not named
STALLS = ("retransmission_client_ns", "retransmission_network_ns", "retransmission_server_ns")
#: columns of `exchanges` that are read
COLUMNS = ("request_ns", "network_ns", "server_ns", "response_ns", *STALLS)
#: parts of a flow's time account in which somebody waited for the network, for a busy link or a limit of an end
NETWORK_PARTS = ("connecting", "loss", "queue", "path")
TRANSFER_PARTS = ("transfer", "window", "send_buffer")
ACCOUNT = ("client", "server", *NETWORK_PARTS, *TRANSFER_PARTS)


class Split(NamedTuple):
    """Time by who took it, ns."""

    server: float = 0.0
    network: float = 0.0
    client: float = 0.0
    transfer: float = 0.0

    @property
    def total_ns(self) -> float:
        """The sum."""
        return math.fsum(self)

    def parts(self) -> list[tuple[str, float]]:
        """Returns names and times that matter, in the order of the bar."""
        return [(name, ns) for name, ns in self._asdict().items() if ns > 0 and ns >= PART_MIN * self.total_ns]

    def text(self) -> str:
        """Returns `server 4.81 s (81%), network 0.9 s (15%)`."""
        return ", ".join(f"{name} {show_duration(ns)} ({show_share(ns, self.total_ns)})" for name, ns in self.parts())


class FlowTurns(NamedTuple):
    """The turns of one flow. A time is NaN if it is unknown."""

    flow: int
    direction: int  # of the requests
    columns: dict[str, array[float]]  # COLUMNS
    first_frames: array[float]
    last_frames: array[float]
    asked_ns: list[float]  # when each request had passed the capture point
    started_ns: array[float]  # first byte of each request, since Transfers.base_ns
    capture: int  # of the flow's first packet

    def ends(self, transfers: Transfers, number: int) -> list[Cited]:
        """Returns the first and the last packet of a turn; nothing of a packet whose file is unknown."""
        first_ns = self.started_ns[number]
        last_ns = first_ns + math.fsum(self.columns[name][number] for name in COLUMNS)
        first = transfers.cited(self.first_frames[number], first_ns, self.flow, self.capture)
        last = transfers.cited(self.last_frames[number], last_ns, self.flow, self.capture)
        flow, ends = row_at(transfers.trace.flows, self.flow), ((first, REQUEST), (last, RESPONSE))
        return [packet for end, role in ends for packet in packet_at(transfers, flow, end.frame, end.time_ns, role)]

    def known_ns(self, name: str) -> list[float]:
        """Returns the known values of a column, ns."""
        return [ns for ns in self.columns[name] if ns == ns]


class Turns:
    """The turns of a trace."""

    def __init__(self, transfers: Transfers) -> None:
        self._table = transfers.trace.exchanges
        self._transfers = transfers
        self._flows: dict[int, FlowTurns | None] = {}

    def __len__(self) -> int:
        """The number of turns of judged flows."""
        return self._count

    @cached_property
    def _count(self) -> int:
        if not len(self._table):
            return 0
        legs, turns = self._transfers.legs, array("I", self._table._packed("turn", "I"))
        if not legs:
            return len(turns) - turns.count(NO_TURN)
        flows = self._transfers.flow_of
        return sum(turn != NO_TURN and flow not in legs for flow, turn in zip(flows, turns, strict=True))

    @cached_property
    def slowest(self) -> list[int]:
        """The flows with the turns that waited the longest for a server, SLOW_NS or more."""
        rows = self._table._rows_where("server_ns", SLOW_NS) if len(self._table) else []
        if len(rows) > SLOW_FLOWS_MAX:
            rows = nlargest(SLOW_FLOWS_MAX, rows, key=array("d", self._table._packed("server_ns", "d")).__getitem__)
        return sorted({self._transfers.flow_of[row] for row in rows} - self._transfers.legs)

    def of_flow(self, flow: int) -> FlowTurns | None:
        """Returns the turns of a flow, None if it has none."""
        if flow not in self._flows:
            self._flows[flow] = self._read(flow) if len(self._table) else None
        return self._flows[flow]

    def _read(self, flow: int, with_jumps: bool = False) -> FlowTurns | None:
        names = ("turn", "direction", "asked_frame", "last_frame", "asked_ns", *COLUMNS)
        base_ns = self._transfers.base_ns
        fields = [(name, "d", base_ns if name == "asked_ns" else 0, 1) for name in names]
        packed = [array("d", data) for data in self._table._packed_columns(fields, [flow])]
        places = [place for place, turn in enumerate(packed[0]) if turn == turn]
        if not places:
            return None
        _, directions, first, last, started, *times = (array("d", (data[place] for place in places)) for data in packed)
        columns = dict(zip(COLUMNS, times, strict=True))
        asked_ns = [base_ns + start + ns for start, ns in zip(started, columns["request_ns"], strict=True)]
        if not with_jumps:
            self._leave_out_jumps(started, times)
        row = row_at(self._transfers.trace.flows, flow)
        return FlowTurns(flow, int(directions[0]), columns, first, last, asked_ns, started, row["first_capture"])

    def _leave_out_jumps(self, started: array[float], times: list[array[float]]) -> None:
        """Takes jumps of the capture's clock from the longest part of the turns that they fall into."""
        for jump in self._transfers.clock_jumps:
            for turn, start in enumerate(started):
                longest = max(times, key=lambda column: column[turn] if column[turn] == column[turn] else 0.0)
                total = math.fsum(column[turn] for column in times if column[turn] == column[turn])
                if jump.within(start, total, self._transfers.base_ns):
                    longest[turn] = max(longest[turn] - jump.ns, 0.0)

    @cached_property
    def accounts(self) -> Accounts:
        """The time account of each judged flow that has one, without jumps of the capture's clock."""
        accounts = Accounts(self._transfers.trace.flows, ACCOUNT, self._transfers.legs)
        for jump in self._transfers.clock_jumps:
            for flow in set(jump.flows):
                part = self._part_at(flow, jump) if flow in accounts else None
                if part:
                    accounts.take_off(flow, part, jump.ns)
        return accounts

    def _part_at(self, flow: int, jump: ClockJump) -> str | None:
        """Returns the part of a flow's account that a jump of the capture's clock counts to; None if it is not known."""
        turns = self._read(flow, with_jumps=True)
        if turns is None:
            return None
        for turn, start in enumerate(turns.started_ns):
            times = {name: ns for name in COLUMNS if (ns := turns.columns[name][turn]) == ns}
            if jump.within(start, math.fsum(times.values()), self._transfers.base_ns):
                longest = max(times, key=times.__getitem__)
                return {"server_ns": "server", "network_ns": "path", "request_ns": "client"}.get(longest)
        return "client"

    @cached_property
    def slow_servers(self) -> list[SlowServer]:
        """The servers with a slow answer among the flows that waited the longest for one."""
        return slow_servers(self._transfers)

    def account(self, flow: int) -> dict[str, float]:
        """Returns the time account of a flow in ns by part; zeros if it is unknown."""
        return self.accounts.get(flow) or dict.fromkeys(ACCOUNT, 0.0)

    def split_of(self, flow: int) -> Split | None:
        """Returns the time in which somebody waited, of one flow; None if it is unknown or nobody did."""
        account = self.accounts.get(flow)
        split = split_of_account(account) if account else None
        return split if split and split.total_ns else None

    @cached_property
    def waiting(self) -> list[int]:
        """The flows in whose time accounts somebody waited, in order."""
        waited_ns = array("d", map(math.fsum, zip(*map(self.accounts.columns.__getitem__, ACCOUNT), strict=True)))
        return [flow for flow in self.accounts if waited_ns[flow] > 0]

    def waited_ns(self, flows: list[FlowRow]) -> float:
        """Returns the time in which somebody waited, of some flows."""
        return math.fsum(split.total_ns for row in flows if (split := self.split_of(row["flow"])))

    @cached_property
    def waits(self) -> dict[str, float]:
        """The time in which somebody waited, of all flows, by part of their time accounts, ns."""
        return {part: self.accounts.total_ns(part) for part in ACCOUNT}

    def _sum_of(self, part: str) -> float:
        """Returns the time that all flows with a time account spent in a part of it in which nobody waited, ns."""
        column = array("d", self._transfers.trace.flows._packed(f"time_{part}_ns", "d"))
        return self.accounts.sum_of(column)

    @cached_property
    def idle_ns(self) -> float:
        """The time in which nobody waited, of all flows, ns."""
        return self._sum_of("idle")

    @cached_property
    def unknown_ns(self) -> float:
        """The time of which it is not known who waited for what, of all flows, ns."""
        return self._sum_of("unknown")

    def waited_beside_ns(self, kind: str) -> float:
        """Returns the time in which an answer to exchanges of a kind was waited for, beside flows with a time account, ns."""
        rows = numbers_where(self._transfers, "kind", kind, len(self._table))
        if not rows:
            return 0.0
        fields = [("flow", "I", 0, 1), ("asked_ns", "d", self._transfers.base_ns, 1), ("waited_ns", "d", 0, 1)]
        packed = self._table._packed_columns(fields)
        flows, asked_ns, waited_ns = (array(code, raw) for (_, code, *_), raw in zip(fields, packed, strict=True))
        beside = [row for row in rows if flows[row] not in self.accounts and flows[row] not in self._transfers.legs]
        spans = (
            Span(asked_ns[row], asked_ns[row] + waited_ns[row])
            for row in beside
            if asked_ns[row] == asked_ns[row] and waited_ns[row] > 0
        )
        return union_ns(spans) or 0.0

    @property
    def life_ns(self) -> float:
        """The life of all flows with a time account, ns."""
        return math.fsum((*self.waits.values(), self.idle_ns, self.unknown_ns))

    @cached_property
    def split(self) -> Split:
        """The time in which somebody waited, of all flows."""
        return split_of_account(self.waits)

    @property
    def capture_ns(self) -> int:
        """The time from the first packet of all interfaces to the last, ns; 0 without times."""
        interfaces = self._transfers.trace.interfaces
        starts = [ns for ns in interfaces.column("first_ns") if ns is not None]
        ends = [ns for ns in interfaces.column("last_ns") if ns is not None]
        return max(ends) - min(starts) if starts and ends else 0

    @property
    def overlap(self) -> bool:
        """Whether flows waited at the same time: the sum is longer than the capture by a tenth."""
        return self.split.total_ns > OVERLAP * self.capture_ns > 0


def split_of_account(account: dict[str, float]) -> Split:
    """Returns the time in which somebody waited; idle and unknown time is left out."""
    network, transfer = (math.fsum(account[part] for part in parts) for parts in (NETWORK_PARTS, TRANSFER_PARTS))
    return Split(account["server"], network, account["client"], transfer)


class SlowServer(NamedTuple):
    """The turns of the flows to one server."""

    flows: list[FlowRow]
    turns: list[FlowTurns]

    @property
    def is_opened(self) -> bool:
        """Whether the handshake of each flow shows who is the client."""
        return all(flow["initiator_evidence"] in ("syn", "syn_ack") for flow in self.flows)

    @property
    def slow(self) -> list[float]:
        """Server times of the slow requests in ascending order, ns."""
        return sorted(ns for turns in self.turns for ns in turns.known_ns("server_ns") if ns >= SLOW_NS)

    @property
    def slowest(self) -> list[tuple[FlowTurns, int]]:
        """The slowest turns of which both frames are known."""
        ranked = sorted(
            (-ns, turns.flow, number, turns)
            for turns in self.turns
            for number, ns in enumerate(turns.columns["server_ns"])
            if ns >= SLOW_NS and not math.isnan(turns.first_frames[number] + turns.last_frames[number])
        )
        return [(turns, number) for *_, number, turns in ranked[:SHOWN]]

    @property
    def waited(self) -> list[Span]:
        """The times in which clients waited for the slow requests."""
        return [
            Span(asked_ns, asked_ns + ns)
            for turns in self.turns
            for asked_ns, ns in zip(turns.asked_ns, turns.columns["server_ns"], strict=True)
            if ns >= SLOW_NS
        ]

    def packets(self, transfers: Transfers) -> list[list[Cited]]:
        """Returns the first and the last packet of each of the slowest turns, as far as their files are known."""
        return list(filter(None, (turns.ends(transfers, number) for turns, number in self.slowest)))


def sending_ns(bins: Bins, start_ns: float, end_ns: float) -> float:
    """Returns the time of the bins between two times in which data is sent, not small requests alone."""
    places, least = zip(bins.start_ns, bins.payload_bytes, strict=True), UPLOAD_BPS * bins.width_ns / 8e9
    return math.fsum(
        max(min(at + bins.width_ns, end_ns) - max(at, start_ns), 0.0) for at, size in places if size > least
    )


def without_uploads(transfers: Transfers, flow: FlowRow, turns: FlowTurns) -> FlowTurns:
    """Returns the turns without server times for half of which the client sent data to the server over another connection:
    the server may have waited for that data, as it does over a control connection."""
    ends = (flow["source"], flow["destination"])[:: -1 if turns.direction else 1]
    uploads = [
        transfers.bins(transfer)
        for transfer in transfers.largest
        if (transfer.row["source"], transfer.row["destination"]) == ends and transfer.row["flow"] != turns.flow
    ]
    times = array("d", turns.columns["server_ns"])
    for number, (asked_ns, ns) in enumerate(zip(turns.asked_ns, times, strict=True)):
        if ns >= SLOW_NS and any(sending_ns(bins, asked_ns, asked_ns + ns) >= UPLOAD_SHARE * ns for bins in uploads):
            times[number] = math.nan
    return turns._replace(columns={**turns.columns, "server_ns": times})


def server_end(flow: FlowRow, direction: int | None) -> tuple[str, int | None]:
    """Returns address and port of the end that answers requests of a direction."""
    if direction:
        return flow["source"], flow["source_port"]
    return flow["destination"], flow["destination_port"]


def slow_servers(transfers: Transfers) -> list[SlowServer]:
    """Returns the servers with a slow answer among the flows that waited the longest for one."""
    servers: dict[tuple[str, int | None], SlowServer] = {}
    for number in transfers.turns.slowest:
        flow_turns = transfers.turns.of_flow(number)
        if flow_turns is None or max(flow_turns.known_ns("server_ns"), default=0.0) < SLOW_NS:
            continue
        flow = row_at(transfers.trace.flows, number)
        if flow["client"] != flow_turns.direction or flow["server_talk"] is not None:
            continue
        flow_turns = without_uploads(transfers, flow, flow_turns)
        if max(flow_turns.known_ns("server_ns"), default=0.0) < SLOW_NS:
            continue
        server = servers.setdefault(server_end(flow, flow_turns.direction), SlowServer([], []))
        server.flows.append(flow)
        server.turns.append(flow_turns)
    return list(servers.values())


def took(times: list[float]) -> Words:
    """Returns the words `0.80 s` and `each of 6 requests`, or the range and the median; times must ascend."""
    count, middle = len(times), times[len(times) // 2]
    if count == 1:
        return {"took": show_duration(times[0]), "median": "", "requests": "a request"}
    if times[-1] <= ALIKE * times[0]:
        return {"took": show_duration(middle), "median": "", "requests": f"each of {count:,} requests"}
    span = f"{show_duration(times[0])} to {show_duration(times[-1])}"
    return {"took": span, "median": f" (median {show_duration(middle)})", "requests": plural(count, "request")}


@finding(
    code="slow-server",
    title="Slow server",
    severity="warning if the time above 200 ms is 10% of the time in which somebody waited, else info",
    computed="Server time of a turn (exchanges.server_ns): from the last byte of a request to the first byte of its response, "
    "less the least round trip between capture point and server. Requests from 200 ms on are counted, over the 500 slowest "
    "turns' flows, by server. TLS handshakes are turns, too. Stalls by loss do not count as server time, if the capture shows "
    "the loss. If the client sent data (80 kbit/s) to the server over another connection for half of the time, it does not "
    "count: the server may have waited for that data. Servers that push, hold requests, or wait for a person do not count "
    "(flows.server_talk). Connections count if the handshake, HTTP, TLS or the only port of a service shows who is the client "
    "(flows.client); without a handshake no saving is stated.",
    unknown="What the server did: it may have computed, asked another server, or held the request on purpose (long "
    "polling). If the first segment of a response is lost before the capture point, and no later one shows the gap, the "
    "server's RTO counts as server time.",
    sentence="The server {server} took {took}[{median}] to answer {requests}[ ({time} of {whole})][: client and network waited "
    "for it].",
    advice="Look into the log of the application on {host} for these requests: its computation, its database, the "
    "servers that it asks.",
    unit="seconds",
)
def slow_server(transfers: Transfers) -> Matches:
    for server in transfers.turns.slow_servers:
        flow, turns, slow = server.flows[0], server.turns[0], server.slow
        host, port = server_end(flow, turns.direction)
        time, total_ns = math.fsum(slow), transfers.turns.waited_ns(server.flows)
        numbers, packets = [row["flow"] for row in server.flows], server.packets(transfers)
        excess_ns, waited_ns = math.fsum(ns - SLOW_NS for ns in slow), union_ns(server.waited)
        yield Match(
            "warning" if excess_ns >= SHARE_WARNING * total_ns else "info",
            flows=numbers,
            cost=seconds(time),
            waited_ns=waited_ns,
            saving_ns=waited_ns if server.is_opened else None,
            figures="exchanges: server_ns",
            filter=" or ".join(flow_filter(row) for row in server.flows[:SHOWN]),
            impact=sum(row["wire_bytes"] for row in server.flows) / transfers.wire_bytes,
            cited=packets[0] if packets else transfers.span(numbers[0]),
            frames=list(chain.from_iterable(packets)),
            packets=2 * len(slow),
            server=endpoint_str(host, port),
            host=host,
            **took(slow),
            time=show_duration(time),
            whole=show_duration(total_ns),
        )
