# SPDX-License-Identifier: Apache-2.0
"""Time of servers that no late answer shows: many answers that are each a little late, or one that stops after its start."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.ends.talk import Talk, middle, parts_str, server_str, talks
from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.exchanges.turns import SLOW_NS, server_end
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.ends.talk import Requests

ANSWERS_MIN, TIME_MIN_NS = 20, 2_000_000_000  # of a server's time
SERVER_SHARE = 0.6  # of the time in which somebody waited
ABOVE_NETWORK = 2.0  # times the network's part of a request
STOPPED_NS = 2_000_000_000
ONE_PAUSE = 0.9  # of all pauses within the answer
SMB_PORT = 445
BROKEN_NS = 100_000_000  # between a request and the message of the server to another client


@cause(
    code="server-time",
    title="The server takes its time for each request",
    sentence="The server {server} took the time: {each} (median) for each of {requests}, {spent}; the network took "
    "{network}.",
    advice="Look at what {host} does for each request: synchronous disk writes (NFS `sync` and COMMIT, database commits, "
    "iSCSI: `iostat -x`), its CPU, its own lookups. Fewer or larger requests help, too.",
    shows="A client makes at least 20 requests to a service, each answered in less than 200 ms. The server's part is at least "
    "60% of the time in which somebody waited, and 2 s. For half of the requests, it is twice the network's.",
    rivals={
        "serial-requests": "the answers come long after the least round trip",
        "slow-server": "no answer takes 200 ms, as a rule",
        "nagle-delack": "no delayed ACK precedes the answers",
    },
    unknown="What the server did for each request.",
)
def server_time(case: Case) -> Matches:
    delayed = {flow for each in case.all_findings("delayed-ack") for flow, _ in each.finding.flows}
    explained = case.flows_of()
    for talk in talks(case):
        spent_ns, times = talk.parts["server"], talk.times("server_ns")
        if len(times) < ANSWERS_MIN or spent_ns < max(TIME_MIN_NS, SERVER_SHARE * talk.life_ns) or talk.is_parallel:
            continue
        network_ns = middle(talk.times("network_ns"))
        if not ABOVE_NETWORK * network_ns <= middle(times) < SLOW_NS or (delayed | explained).intersection(
            talk.numbers
        ):
            continue
        if any(flow["server_talk"] for flow in talk.flows):
            continue
        yield Match(
            certainty="proven",
            place="server",
            flows=talk.numbers,
            waited_ns=spent_ns,
            members=len(times),
            frames=talk.cited(),
            proof=f"half of the answers left {show_duration(middle(times))} after their requests or later; a round trip takes "
            f"{show_duration(network_ns)}",
            excluded={
                "serial-requests": f"round trips took {show_duration(talk.trips_ns)} of the time",
                "slow-server": f"half of the answers took {show_duration(middle(times))} or less",
                "nagle-delack": "no delayed ACK precedes the answers",
            },
            server=talk.server,
            host=server_end(talk.flows[0], talk.flows[0]["client"])[0],
            each=show_duration(middle(times)),
            requests=plural(len(times), "request"),
            spent=parts_str(spent_ns, talk.life_ns),
            network=show_duration(talk.trips_ns),
        )


class Stop(NamedTuple):
    """One answer that began and then stopped."""

    requests: Requests
    number: int  # of the request in its connection
    paused_ns: float

    @property
    def asked_ns(self) -> float:
        """When the request was sent, since the first packet."""
        return self.requests.columns["asked_ns"][self.number]

    @property
    def began_ns(self) -> float:
        """How soon the answer began."""
        return self.requests.columns["answered_ns"][self.number] - self.asked_ns


def stops_of(talk: Talk) -> list[Stop]:
    """Returns the answers of which the server's last long silence in the connection is nearly all its pauses."""
    stops = []
    for requests in talk.requests:
        silent_ns = requests.flow["pause_ns"] or 0
        is_of_server = requests.flow["pause_direction"] == 1 - (requests.flow["client"] or 0)
        if silent_ns < STOPPED_NS or not is_of_server or requests.flow["server_talk"]:
            continue
        for number, ns in enumerate(requests.columns["response_pause_ns"]):
            answered_ns = requests.columns["answered_ns"][number]
            is_one = ONE_PAUSE * ns <= silent_ns <= ns / ONE_PAUSE  # an ACK may have cut it
            if is_one and answered_ns == answered_ns:
                stops.append(Stop(requests, number, ns))
    return stops


def asked_meanwhile(case: Case, stop: Stop) -> str | None:
    """Returns the other client that an SMB server sent its last message to as this answer stopped, and that said no more."""
    flow = stop.requests.flow
    host, port = server_end(flow, flow["client"])
    if port != SMB_PORT:
        return None
    since_ns = case.transfers.base_ns + stop.asked_ns
    ends = zip(*(case.trace.flows.column(name) for name in ("source", "destination")), strict=True)
    rows = (case.flow(number) for number, pair in enumerate(ends) if host in pair and number != flow["flow"])
    for row in (row for row in rows if server_end(row, row["client"]) == (host, port)):
        client = row["client"] or 0
        message, words = case.direction(row["flow"], 1 - client), case.direction(row["flow"], client)
        if not message["payload_bytes"] or message["last_ns"] is None or words["last_ns"] is None:
            continue
        if 0 <= message["last_ns"] - since_ns <= BROKEN_NS and words["last_ns"] - since_ns <= stop.paused_ns / 2:
            return (row["destination"], row["source"])[not client]
    return None


@cause(
    code="server-stops",
    title="The server stops within its answer",
    sentence="The server {server} stopped for {stopped} within {answers}: the first bytes came {began} after the request, the "
    "rest only then{why}.",
    advice="{repair}",
    shows="Between two parts of an answer the server is silent for 2 s or longer. That is 90% of all its pauses within that "
    "answer and the connection's last silence, and nothing is lost meanwhile. HTTP answers count, and those of an SMB server "
    "(port 445) that sends its last message to another client within 100 ms of the request. It waits for that client's oplock "
    "or lease. Elsewhere it may be a message that the server pushes.",
    rivals={
        "slow-server": "the answer had begun",
        "app-limited": "it stopped once, for most of the time",
        "tail-loss": "nothing was repeated after the pause",
        "client-pause": "the client waited for the rest",
    },
    unknown="What the server did; an event stream of HTTP with one event looks alike.",
)
def server_stops(case: Case) -> Matches:
    explained = case.flows_of()
    for talk in talks(case):
        stops = [each for each in stops_of(talk) if each.requests.flow["flow"] not in explained]
        stops = [each for each in stops if talk.flows[0]["application"] == "http" or asked_meanwhile(case, each)]
        spent_ns = math.fsum(each.paused_ns for each in stops)
        if not stops or talk.parts["server"] < ONE_PAUSE * spent_ns or spent_ns < SERVER_SHARE * talk.life_ns:
            continue
        yield stops_match(case, talk, stops)


def stops_match(case: Case, talk: Talk, stops: list[Stop]) -> Match:
    """Returns the match of answers of one server that stopped."""
    base_ns, paused = case.transfers.base_ns, sorted(each.paused_ns for each in stops)
    flows = list(dict.fromkeys(each.requests.flow["flow"] for each in stops))
    first = case.flow(flows[0])
    host = server_end(first, first["client"])[0]
    client = (first["destination"], first["source"])[not first["client"]]
    other = asked_meanwhile(case, stops[0])
    spans = (Span(base_ns + each.asked_ns, base_ns + each.asked_ns + each.paused_ns) for each in stops)
    stopped = show_duration(paused[0])
    if len(stops) > 1:
        stopped = f"{stopped} to {show_duration(paused[-1])}"
    return Match(
        certainty="likely",
        place="server",
        flows=flows,
        waited_ns=union_ns(spans),
        members=len(stops),
        frames=[packet for each in stops[:3] for packet in each.requests.cited(base_ns, each.number)],
        filter=" or ".join(flow_filter(case.flow(flow)) for flow in flows[:3]),
        proof=f"the answer to {client} began {show_duration(stops[0].began_ns)} after its request, and its next bytes came "
        f"{stopped} later",
        excluded={
            "slow-server": f"the answer began after {show_duration(stops[0].began_ns)}",
            "client-pause": "the client sent nothing and waited",
        },
        undecided={"app-limited": f"the log of the program on {host}: what it waited for meanwhile"},
        server=server_str(first),
        stopped=stopped,
        answers="an answer" if len(stops) == 1 else f"{len(stops):,} answers",
        began=show_duration(stops[0].began_ns),
        why=f". It probably waited for {other}, which did not answer a message sent at that moment (the break "
        "of an oplock or lease)"
        if other
        else "",
        repair=f"Close the file at {other}, find out why that client does not acknowledge the break, or turn oplocks and leases "
        "off for this share."
        if other
        else f"Look at what the program on {host} waits for once it has begun to answer: a scanner or proxy that holds the "
        "content back, a lock, its disk, a server behind it.",
    )
