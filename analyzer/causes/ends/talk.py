# SPDX-License-Identifier: Apache-2.0
"""The conversations of a client with a service: their requests, and where their time went."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from functools import cached_property
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.evidence import REQUEST, RESPONSE, Cited
from wiretale.analyzer.findings.exchanges.exchange_rows import numbers_where
from wiretale.analyzer.findings.exchanges.turns import server_end
from wiretale.analyzer.findings.model import endpoint_str
from wiretale.analyzer.units import show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import FlowRow

WAITED_LEAST_NS = 1_000_000  # of a flow
FLOWS_MAX = 500  # with the longest waits that are examined
SPANS_FLOWS = 3  # conversations whose packets prove a cause
OVERLAP = 1.1  # times the time in which any was open: a longer sum is of connections that overlap
TRIPS_SHARE = 0.5  # of the time of a conversation
SYN_TIMER_NS = 500_000_000  # a handshake that takes so much longer than its round trip lost a SYN (RFC 6298: 1 s)
HTTP2_WINDOW, NEAR, NEARLY_ALL = 65_535, 0.05, 0.8  # RFC 9113 section 6.9.2; of answers
UPDATES_BYTES = 100  # of two window updates in records of TLS, and their share of a handshake; a request is longer
WEB, HTTPS_PORT = ("tls", "http2", "http"), 443
LIMITED, LIMITED_MAX, BACKOFF_NS = (
    ("429", "503"),
    1_000,
    400_000_000,
)  # statuses that say: later; the shortest pause then
READ_PAUSE_NS, READ_BYTES = 5_000_000, 8_192  # of a program at a port of terminals: before each request; of each answer
COLUMNS = (
    *(
        "turn",
        "asked_ns",
        "asked_frame",
        "answered_ns",
        "answered_frame",
        "request_ns",
        "request_pause_ns",
        "network_ns",
    ),
    *("server_ns", "pause_ns", "request_bytes", "response_bytes", "response_ns", "response_pause_ns"),
)


def parts_str(part_ns: float, whole_ns: float) -> str:
    """`9.03 of 9.85 s`, `25.7 s of 2 min`, `all 5.06 s`: a time and the time that it is part of."""
    part, total = show_duration(part_ns), show_duration(max(whole_ns, part_ns))
    number, _, unit = part.rpartition(" ")
    if part == total:
        return f"all {total}"
    return (
        f"{number} of {total}"
        if unit and total.endswith(f" {unit}") and number.count(" ") == 0
        else f"{part} of {total}"
    )


def is_equal(times: Sequence[float], within: float) -> bool:
    """Returns whether times differ from each other by at most a share of the least."""
    return bool(times) and max(times) - min(times) <= within * min(times)


def middle(times: Sequence[float]) -> float:
    """Returns the median of some times; 0 without any."""
    return sorted(times)[len(times) // 2] if times else 0.0


def server_str(flow: FlowRow) -> str:
    """Returns the server's name, else its address, with the port."""
    host, port = server_end(flow, flow["client"])
    name = flow["server_name"]
    return name if name and ":" in name else endpoint_str(name or host, port)


def is_http2_window(level: float) -> bool:
    """Returns whether a flight is as long as the window that HTTP/2 begins with."""
    return abs(level - HTTP2_WINDOW) <= NEAR * HTTP2_WINDOW


def is_web(flow: FlowRow) -> bool:
    """Returns whether a flow may be HTTP/2."""
    return flow["application"] in WEB or HTTPS_PORT in (flow["source_port"], flow["destination_port"])


class Requests(NamedTuple):
    """The requests of one flow by column of exchanges; NaN is null."""

    flow: FlowRow
    columns: dict[str, array[float]]

    def __len__(self) -> int:
        return len(self.columns["turn"])

    def times(self, name: str) -> list[float]:
        """Returns the known values of a column."""
        return [number for number in self.columns[name] if number == number]

    def cited(self, base_ns: int, number: int) -> list[Cited]:
        """Returns the packets of a request and its answer that are known."""
        packets = []
        for name, role in (("asked", REQUEST), ("answered", RESPONSE)):
            frame, ns = self.columns[f"{name}_frame"][number], self.columns[f"{name}_ns"][number]
            if frame == frame and ns == ns:
                packets.append(
                    Cited(int(frame), base_ns + int(ns), self.flow["flow"], self.flow["first_capture"], role)
                )
        return packets


def requests_of(case: Case, flow: FlowRow) -> Requests:
    """Returns the requests of a flow."""
    base_ns = case.transfers.base_ns
    fields = [(name, "d", base_ns if name in ("asked_ns", "answered_ns") else 0, 1) for name in COLUMNS]
    packed = [array("d", data) for data in case.trace.exchanges._packed_columns(fields, [flow["flow"]])]
    places = [place for place, turn in enumerate(packed[0]) if turn == turn]
    columns = (array("d", (column[place] for place in places)) for column in packed)
    return Requests(flow, dict(zip(COLUMNS, columns, strict=True)))


def backoffs_of(case: Case) -> dict[int, list[Span]]:
    """Returns the pauses of clients that were told to come later, by flow."""
    if not numbers_where(case.transfers, "kind", "http", 1):
        return {}
    codes = case.transfers.codes
    rows = [] if set(LIMITED).isdisjoint(codes) else [number for number, code in enumerate(codes) if code in LIMITED]
    limited: dict[int, set[int]] = {}
    for row in case.trace.exchanges._rows_at(rows[:LIMITED_MAX]):
        if row["flow"] is not None and row["turn"] is not None:
            limited.setdefault(row["flow"], set()).add(row["turn"] + 1)
    return {flow: pauses_before(case, flow, turns) for flow, turns in limited.items()}


def pauses_before(case: Case, flow: int, turns: set[int]) -> list[Span]:
    """Returns the long pauses before some requests of a flow."""
    columns, base_ns = requests_of(case, case.flow(flow)).columns, case.transfers.base_ns
    starts = zip(columns["turn"], columns["asked_ns"], columns["pause_ns"], strict=True)
    return [
        Span(base_ns + asked_ns - pause_ns, base_ns + asked_ns)
        for turn, asked_ns, pause_ns in starts
        if turn in turns and pause_ns >= BACKOFF_NS
    ]


class Talk:
    """The connections from one client to one service."""

    def __init__(self, case: Case, flows: list[FlowRow]) -> None:
        self.case, self.flows = case, flows
        self.numbers = [flow["flow"] for flow in flows]
        accounts = [case.transfers.turns.account(number) for number in self.numbers]
        self.parts = {part: math.fsum(account[part] for account in accounts) for part in accounts[0]}

    @property
    def server(self) -> str:
        """The server's name, else its address, with the port."""
        return server_str(self.flows[0])

    @property
    def life_ns(self) -> float:
        """The time in which somebody waited, over all connections."""
        return math.fsum(self.parts.values())

    @property
    def spans(self) -> list[Span]:
        """When each connection was open."""
        ends = ((flow["first_ns"], flow["last_ns"]) for flow in self.flows)
        return [Span(first, last) for first, last in ends if first is not None and last is not None]

    @property
    def open_ns(self) -> float:
        """The time in which at least one connection was open."""
        return union_ns(self.spans) or 0.0

    @property
    def is_parallel(self) -> bool:
        """Whether somebody waited on several connections at the same time."""
        return self.life_ns > OVERLAP * self.open_ns

    @cached_property
    def spans_in_use(self) -> list[Span]:
        """When each connection was in use: from its SYN to its last answer. A program that is done with a connection opens the
        next one while the end of the first is still under way."""
        base_ns, used = self.case.transfers.base_ns, []
        for requests, span in zip(self.requests, self.spans, strict=True):
            last_ns = base_ns + max(requests.times("answered_ns"), default=math.inf)
            used.append(Span(span.start_ns, min(span.end_ns, last_ns)))
        return used

    @property
    def closing_ns(self) -> float:
        """The time that is accounted to connections after their last answers."""
        accounts = (math.fsum(self.case.transfers.turns.account(number).values()) for number in self.numbers)
        return math.fsum(
            max(0.0, total_ns - used.ns) for total_ns, used in zip(accounts, self.spans_in_use, strict=True)
        )

    @property
    def trips_ns(self) -> float:
        """The time of round trips, without that of SYNs that were lost."""
        return self.parts["path"] + self.parts["connecting"] - self.lost_syns_ns

    @property
    def lost_syns_ns(self) -> float:
        """The time in which clients waited to repeat a SYN."""
        pairs = ((flow["time_connecting_ns"], flow["handshake_rtt_ns"]) for flow in self.flows)
        return math.fsum(waited - trip for waited, trip in pairs if waited and trip and waited - trip >= SYN_TIMER_NS)

    @cached_property
    def requests(self) -> list[Requests]:
        """The requests of each connection."""
        return [requests_of(self.case, flow) for flow in self.flows]

    def times(self, name: str) -> list[float]:
        """Returns the known values of a column over all requests."""
        return [number for requests in self.requests for number in requests.times(name)]

    @property
    def count(self) -> int:
        """The number of requests."""
        return sum(map(len, self.requests))

    @property
    def is_of_windows(self) -> bool:
        """Whether nearly all messages of the client grant the next window of HTTP/2, and ask for nothing."""
        sizes = list(zip(self.times("request_bytes"), self.times("response_bytes"), strict=False))
        grants = sum(request <= UPDATES_BYTES and is_http2_window(got) for request, got in sizes)
        return all(map(is_web, self.flows)) and grants >= NEARLY_ALL * max(len(sizes), 1)

    @property
    def has_no_answer_times(self) -> bool:
        """Whether the server speaks by itself or a person types, so that its messages are no answers. A program at a port of
        terminals, as one that reads a file over SFTP, asks the same again at once and gets much; a person does neither."""
        return any(flow["server_talk"] for flow in self.flows) and not self.is_reader

    @property
    def is_reader(self) -> bool:
        """Whether a program reads by requests of one size at ports at which persons usually type."""
        if any(flow["server_talk"] != "typed" for flow in self.flows):
            return False
        sizes = sorted(self.times("request_bytes"))
        quarter = len(sizes) // 4
        is_same = is_equal(sizes[quarter : len(sizes) - quarter], 0.0)
        is_much = middle(self.times("response_bytes")) >= READ_BYTES
        return is_same and is_much and middle(self.times("pause_ns")) <= READ_PAUSE_NS

    def cited(self) -> list[Cited]:
        """Returns packets of the first requests."""
        base_ns = self.case.transfers.base_ns
        return [
            packet
            for requests in self.requests[:SPANS_FLOWS]
            for number in range(min(2, len(requests)))
            for packet in requests.cited(base_ns, number)
        ]


def longest_talks(case: Case) -> list[Talk]:
    """Returns the conversations among the flows in which clients or the network took the most time."""
    accounts = case.transfers.turns.accounts
    columns = [accounts.columns[part] for part in ("path", "connecting", "client", "queue")]
    waited = list(map(sum, zip(*columns, strict=True)))
    services: dict[tuple[str, str, int | None], list[FlowRow]] = {}
    for number in sorted(nlargest(FLOWS_MAX, accounts, key=waited.__getitem__)):
        flow = case.flow(number) if waited[number] >= WAITED_LEAST_NS else None
        if flow is None or flow["client"] is None or flow["exchange"] != "turns" or flow["first_ns"] is None:
            continue
        client, server = (flow["source"], flow["destination"])[:: -1 if flow["client"] else 1]
        services.setdefault((client, server, server_end(flow, flow["client"])[1]), []).append(flow)
    return [Talk(case, flows) for flows in services.values()]


def talks(case: Case) -> list[Talk]:
    """Returns these conversations, which are computed once."""
    return case.once(longest_talks)
