# SPDX-License-Identifier: Apache-2.0
"""Who is slow: the time of turns (requests and responses) by server, network, client and transfer; servers that answer late.

The turns table has the times of each turn; columns are summed as packed arrays, and rows are read only for the flows that
are explained. A transfer without turns has its idle time at its sender, and its loss recovery in the network.
"""

from __future__ import annotations

import math
from array import array
from functools import cached_property
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.model import SHOWN, Match, Matches, Row, endpoint_str, finding, row_at, seconds
from wiretale.analyzer.units import plural, show_duration, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.findings.transfers import Transfer, Transfers

CHAPTER = "Requests and responses"
SLOW_NS = 200_000_000  # a person notices it
SHARE_WARNING = 0.1  # of the time of the turns
ALIKE = 1.25  # the longest time over the shortest, if they are given as one
SLOW_FLOWS_MAX = 500  # flows with the longest server time that are examined
PART_MIN = 0.005  # of the whole; a smaller part is not named
#: columns of `turns` by the part of the split that they belong to
PARTS = {
    "server": ("server_ns",),
    "network": (
        *("network_ns", "client_network_ns", "retransmission_client_ns"),
        *("retransmission_network_ns", "retransmission_server_ns"),
    ),
    "client": ("pause_ns",),
    "transfer": ("request_ns", "response_ns"),
}
COLUMNS = tuple(name for names in PARTS.values() for name in names)
NETWORK_LIMITS = ("limit_recovery_ns", "limit_timeout_ns")


class Split(NamedTuple):
    """Time by who took it, ns."""

    server: float = 0.0
    network: float = 0.0
    client: float = 0.0
    transfer: float = 0.0

    @property
    def whole(self) -> float:
        """The sum."""
        return math.fsum(self)

    def plus(self, other: Split) -> Split:
        """Returns the sum of both."""
        return Split(*(a + b for a, b in zip(self, other, strict=True)))

    def parts(self) -> list[tuple[str, float]]:
        """Returns names and times that matter, in the order of the bar."""
        return [(name, ns) for name, ns in self._asdict().items() if ns > 0 and ns >= PART_MIN * self.whole]

    def text(self) -> str:
        """Returns `server 4.81 s (81%), network 0.9 s (15%)`."""
        return ", ".join(f"{name} {show_duration(ns)} ({show_share(ns, self.whole)})" for name, ns in self.parts())


def split_of(columns: dict[str, float]) -> Split:
    """Sums the columns of `turns` by part."""
    return Split(**{part: math.fsum(columns[name] for name in names) for part, names in PARTS.items()})


class FlowTurns(NamedTuple):
    """The turns of one flow. A time is NaN if it is unknown."""

    flow: int
    direction: int  # of the requests
    handshake_ns: float  # its RTT, 0 if it was not captured
    columns: dict[str, array[float]]  # COLUMNS
    first_frames: array[float]
    last_frames: array[float]

    def known(self, name: str) -> list[float]:
        """Returns the known values of a column, ns."""
        return [ns for ns in self.columns[name] if ns == ns]

    @property
    def sums(self) -> dict[str, float]:
        """The sum of each column, ns."""
        return {name: math.fsum(self.known(name)) for name in COLUMNS}

    @property
    def split(self) -> Split:
        """The time by who took it, the handshake included."""
        return split_of(self.sums).plus(Split(network=self.handshake_ns))


class Turns:
    """The turns of a trace."""

    def __init__(self, transfers: Transfers) -> None:
        self._table = transfers.trace.turns
        self._transfers = transfers
        self._flows: dict[int, FlowTurns | None] = {}

    def __len__(self) -> int:
        return len(self._table)

    def _column(self, name: str) -> array[float]:
        return array("d", self._table.packed(name, "d"))

    @cached_property
    def slowest(self) -> list[int]:
        """The flows with the turns that waited the longest for a server."""
        if not len(self):
            return []
        times = [ns if ns == ns else 0.0 for ns in self._column("server_ns")]
        flows = array("I", self._table.packed("flow", "I"))
        rows = nlargest(SLOW_FLOWS_MAX, range(len(times)), key=times.__getitem__)
        return sorted({flows[row] for row in rows if times[row] > 0})

    def of_flow(self, flow: int) -> FlowTurns | None:
        """Returns the turns of a flow, None if it has none."""
        if flow not in self._flows:
            self._flows[flow] = self._read(flow) if len(self) else None
        return self._flows[flow]

    def _read(self, flow: int) -> FlowTurns | None:
        names = (*COLUMNS, "first_frame", "last_frame", "direction")
        packed = self._table.packed_columns([(name, "d", 0, 1) for name in names], [flow])
        columns = {name: array("d", data) for name, data in zip(names, packed, strict=True)}
        directions = columns.pop("direction")
        if not directions:
            return None
        first, last = columns.pop("first_frame"), columns.pop("last_frame")
        handshake = self._transfers.trace.flows.rows(flow, flow + 1)[0]["handshake_rtt_ns"] or 0
        return FlowTurns(flow, int(directions[0]), float(handshake), columns, first, last)

    def _handshakes_ns(self) -> float:
        """Returns the sum of the handshakes' RTTs of flows with turns."""
        flows, word = self._transfers.trace.flows, self._transfers.words["turns"]
        if not len(self):
            return 0.0
        times = array("d", flows.packed("handshake_rtt_ns", "d"))
        kinds = flows.packed("exchange", "B")
        return math.fsum(ns for ns, kind in zip(times, kinds, strict=True) if kind == word and ns == ns)

    @cached_property
    def split(self) -> Split:
        """The time of all turns with their handshakes, and of the largest transfers without turns."""
        whole = Split(network=self._handshakes_ns())
        if len(self):
            sums = {name: math.fsum(ns for ns in self._column(name) if ns == ns) for name in COLUMNS}
            whole = whole.plus(split_of(sums))
        for one in self._transfers.tcp():
            if one.flow["exchange"] != "turns":
                whole = whole.plus(split_of_transfer(one))
        return whole

    def idle_parts(self, one: Transfer) -> dict[str, float]:
        """Returns the idle time of a transfer whose flow has turns: its own application's, and that in which it waited
        for the other end, in proportion to these times of the turns. Without turns it is empty."""
        found, idle = self.of_flow(one.row["flow"]), float(one.limits.get("limit_idle_ns", 0))
        if found is None or not idle:
            return {}
        sums = found.sums
        pause, computed = sums["pause_ns"], sums["server_ns"]
        asked = pause + sums["client_network_ns"] + sums["request_ns"] + sums["network_ns"]
        if one.row["direction"] == found.direction:
            name, own, other, waited = "client", pause, "responses", computed + sums["network_ns"] + sums["response_ns"]
        else:
            name, own, other, waited = "server", computed, "requests", asked
        share = own / (own + waited) if own + waited else 1.0
        return {f"the {name}": share * idle, f"waiting for {other}": (1 - share) * idle}


def split_of_transfer(one: Transfer) -> Split:
    """Returns the split of a transfer without turns by its limits; nothing if they are unknown."""
    limits = one.limits
    idle = float(limits.get("limit_idle_ns", 0))
    network = float(sum(limits.get(name, 0) for name in NETWORK_LIMITS))
    rest = float(sum(limits.values())) - idle - network
    server, client = (idle, 0.0) if one.row["direction"] else (0.0, idle)
    return Split(server, network, client, max(rest, 0.0))


class SlowServer(NamedTuple):
    """The turns of the flows to one server."""

    flows: list[Row]
    turns: list[FlowTurns]

    @property
    def slow(self) -> list[float]:
        """Server times of the slow requests in ascending order, ns."""
        return sorted(ns for one in self.turns for ns in one.known("server_ns") if ns >= SLOW_NS)

    @property
    def split(self) -> Split:
        """The time of all turns."""
        whole = Split()
        for one in self.turns:
            whole = whole.plus(one.split)
        return whole

    def evidence(self) -> str:
        """Returns the frames of the slowest turns: `frames 4-9 of flow 0`."""
        found = sorted(
            (-ns, one.flow, first, last)
            for one in self.turns
            for ns, first, last in zip(one.columns["server_ns"], one.first_frames, one.last_frames, strict=True)
            if ns >= SLOW_NS and not math.isnan(first + last)
        )
        shown = [f"{first:.0f}-{last:.0f} of flow {flow}" for _, flow, first, last in found[:SHOWN]]
        return f"frames {', '.join(shown)}; turns: server_ns" if shown else "turns: server_ns"


def slow_servers(transfers: Transfers) -> list[SlowServer]:
    """Returns the servers with a slow answer among the flows that waited the longest for one."""
    servers: dict[tuple[str, int], SlowServer] = {}
    for number in transfers.turns.slowest:
        found = transfers.turns.of_flow(number)
        if found is None or max(found.known("server_ns"), default=0.0) < SLOW_NS:
            continue
        flow = row_at(transfers.trace.flows, number)
        end = ("source", "source_port") if found.direction else ("destination", "destination_port")
        server = servers.setdefault((flow[end[0]], flow[end[1]]), SlowServer([], []))
        server.flows.append(flow)
        server.turns.append(found)
    return list(servers.values())


def took(times: list[float]) -> str:
    """Returns `0.80 s to answer each of 6 requests`, or the range and the median; times must ascend."""
    count, middle = len(times), times[len(times) // 2]
    if count == 1:
        return f"{show_duration(times[0])} to answer a request"
    if times[-1] <= ALIKE * times[0]:
        return f"{show_duration(middle)} to answer each of {count:,} requests"
    span = f"{show_duration(times[0])} to {show_duration(times[-1])}"
    return f"{span} (median {show_duration(middle)}) to answer {plural(count, 'request')}"


@finding(
    code="slow-server",
    title="Slow server",
    severity="warning from 10% of the time of the turns, else info",
    computed="Server time of a turn (turns.server_ns): from the last byte of a request to the first byte of its response, "
    "less the least round trip between capture point and server. Requests from 200 ms on are counted, over the 500 "
    "slowest turns' flows, by server; the cost is their time above 200 ms. TLS handshakes are turns, too. Stalls by loss "
    "do not count as server time, if the capture shows the loss.",
    unknown="What the server did: it may have computed, asked another server, or held the request on purpose (long "
    "polling). If the first segment of a response is lost before the capture point, and no later one shows the gap, the "
    "server's RTO counts as server time.",
    sentence="The server {server} took {took} ({time} of {whole}): client and network waited for it.",
    advice="Look into the log of the application on {host} for these requests: its computation, its database, the "
    "servers that it asks.",
    unit="seconds",
)
def slow_server(transfers: Transfers) -> Matches:
    for server in slow_servers(transfers):
        flow, turns, slow = server.flows[0], server.turns[0], server.slow
        host, port = ("source", "source_port") if turns.direction else ("destination", "destination_port")
        time, whole = math.fsum(slow), server.split.whole
        numbers = [one["flow"] for one in server.flows]
        cost = math.fsum(ns - SLOW_NS for ns in slow)
        yield Match(
            "warning" if cost >= SHARE_WARNING * whole else "info",
            flow=numbers[0] if len(numbers) == 1 else None,
            cost=seconds(cost),
            evidence=server.evidence(),
            filter=" or ".join(flow_filter(one) for one in server.flows[:SHOWN]),
            impact=sum(one["wire_bytes"] for one in server.flows) / transfers.wire_bytes,
            server=endpoint_str(flow[host], flow[port]),
            host=flow[host],
            took=took(slow),
            time=show_duration(time),
            whole=show_duration(whole),
        )
