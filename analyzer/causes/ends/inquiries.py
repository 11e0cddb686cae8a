# SPDX-License-Identifier: Apache-2.0
"""Requests by who asked whom, and whether those of one host lie within those of another."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.model import endpoint_str

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case

NESTED_REQUESTS, NESTED_TIME = 0.8, 0.7  # shares of the slow requests, and of the time of each
OUTSIDE_MOST = 0.5  # of the share within slow requests: with more, the other server is always busy
SHARED_LEAST = 0.3  # of a slow request: less is not worth a word
DNS = "dns"


class Inquiry(NamedTuple):
    """The requests of a host to a server, or to several at one port."""

    client: str
    servers: tuple[str, ...]
    kind: str
    spans: list[Span]
    sizes: list[tuple[float, float]]  # of each request and its answer
    unanswered: list[int]  # which of them
    flows: list[int]

    def port(self, case: Case) -> int | None:
        """Returns the port that was asked; None if no flow shows it."""
        if not self.flows:
            return None
        flow = case.flow(self.flows[0])
        return flow["destination_port"] if flow["destination"] in self.servers else flow["source_port"]

    def name(self, case: Case) -> str:
        """Returns the server's address and port."""
        return endpoint_str(self.servers[0], self.port(case)) if self.flows else self.servers[0]


class Row(NamedTuple):
    """An exchange: its row, when it began and ended since Transfers.base_ns, and more numbers of it; NaN is null."""

    begun_ns: float
    answered_ns: float
    waited_ns: float
    flow: float
    sent: float
    received: float

    @property
    def is_answered(self) -> bool:
        """Whether an answer came."""
        return self.answered_ns == self.answered_ns

    @property
    def end_ns(self) -> float:
        """When it ended: with the answer, or with the last attempt."""
        return self.answered_ns if self.is_answered else self.begun_ns + self.waited_ns


def rows_of(case: Case) -> Iterator[Row]:
    """Yields the numbers of all exchanges."""
    base_ns = case.transfers.base_ns
    names = ("asked_ns", "answered_ns", "waited_ns", "flow", "request_bytes", "response_bytes")
    fields = [(name, "d", base_ns if name in names[:2] else 0, 1) for name in names]
    columns = (array("d", packed) for packed in case.trace.exchanges._packed_columns(fields))
    return map(Row, *columns)


def inquiries_of(case: Case, hosts: AbstractSet[str]) -> list[Inquiry]:
    """Returns what was asked by these hosts, or of them, by client, server and kind."""
    exchanges, base_ns = case.trace.exchanges, case.transfers.base_ns
    ends = zip(*(exchanges.column(name) for name in ("client", "server", "kind")), strict=True)
    by_server: dict[tuple[str, str, str], Inquiry] = {}
    for row, (client, server, kind) in zip(rows_of(case), ends, strict=True):
        if (
            kind == "connect"
            or None in (client, server)
            or hosts.isdisjoint((client, server))
            or math.isnan(row.end_ns)
        ):
            continue
        key = (client, server, DNS if kind == DNS else "requests")
        inquiry = by_server.setdefault(key, Inquiry(client, (server,), key[2], [], [], [], []))
        inquiry.spans.append(Span(base_ns + row.begun_ns, base_ns + row.end_ns))
        inquiry.sizes.append((row.sent, row.received))
        if not row.is_answered:
            inquiry.unanswered.append(len(inquiry.spans) - 1)
        if row.flow == row.flow and int(row.flow) not in inquiry.flows[-1:]:
            inquiry.flows.append(int(row.flow))
    return list(by_server.values())


def pools_of(case: Case, every: Iterable[Inquiry]) -> list[Inquiry]:
    """Returns the requests of each client to several servers at one port together."""
    groups: dict[tuple[str, str, int | None], list[Inquiry]] = {}
    for inquiry in every:
        groups.setdefault((inquiry.client, inquiry.kind, inquiry.port(case)), []).append(inquiry)
    return [together(group) for group in groups.values() if len(group) > 1]


def together(group: Sequence[Inquiry]) -> Inquiry:
    """Returns the requests to several servers in the order of time."""
    rows = sorted(
        (span, sizes, number in open_ones)
        for inquiry in group
        for open_ones in (set(inquiry.unanswered),)
        for number, (span, sizes) in enumerate(zip(inquiry.spans, inquiry.sizes, strict=True))
    )
    return Inquiry(
        group[0].client,
        tuple(server for inquiry in group for server in inquiry.servers),
        group[0].kind,
        [span for span, *_ in rows],
        [sizes for _, sizes, _ in rows],
        [number for number, (*_, is_open) in enumerate(rows) if is_open],
        [flow for inquiry in group for flow in inquiry.flows],
    )


def shared_ns(waits: Sequence[Span], inner: Sequence[Span]) -> list[float]:
    """Returns for each wait the time of it that lies within others which began in it: a server asks when it has been asked."""
    return [
        union_ns(
            Span(other.start_ns, min(wait.end_ns, other.end_ns))
            for other in inner
            if wait.start_ns <= other.start_ns < wait.end_ns
        )
        or 0.0
        for wait in waits
    ]


def is_nested(waits: Sequence[Span], inner: Sequence[Span]) -> bool:
    """Returns whether the waits consist of others, which are rarely there at other times."""
    within = shared_ns(waits, inner)
    nested = sum(shared >= NESTED_TIME * wait.ns for shared, wait in zip(within, waits, strict=True))
    first, last = min(wait.start_ns for wait in waits), max(wait.end_ns for wait in waits)
    waiting_ns, all_ns = union_ns(waits) or 1.0, shared_ns([Span(first, last)], inner)[0]
    outside = (all_ns - min(math.fsum(within), all_ns)) / max(last - first - waiting_ns, 1.0)
    share = math.fsum(within) / max(math.fsum(wait.ns for wait in waits), 1.0)
    return nested >= NESTED_REQUESTS * len(waits) and (len(waits) > 1 or outside <= OUTSIDE_MOST * share)


def pairs_of(waits: Sequence[Span], inner: Sequence[Span], shift: float = 0.0) -> list[tuple[int, int]]:
    """Returns each wait with the longest of the others that lies within it, is a part of it that matters, and is not another
    one's; the others are shifted by a time. Both must ascend."""
    starts, used, pairs = [other.start_ns + shift for other in inner], set[int](), list[tuple[int, int]]()
    for number, wait in enumerate(waits):
        begin, end = bisect_left(starts, wait.start_ns), bisect_left(starts, wait.end_ns)
        fitting = [
            place
            for place in range(begin, end)
            if place not in used
            and inner[place].end_ns + shift <= wait.end_ns
            and inner[place].ns >= SHARED_LEAST * wait.ns
        ]
        if fitting:
            best = max(fitting, key=lambda place: inner[place].ns)
            used.add(best)
            pairs.append((number, best))
    return pairs
