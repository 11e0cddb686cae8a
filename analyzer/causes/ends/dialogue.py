# SPDX-License-Identifier: Apache-2.0
"""Dialogues that are slow because of the client: it asks one thing after another, pauses, or waits for a leave to send."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.ends.talk import (
    OVERLAP,
    TRIPS_SHARE,
    Requests,
    Talk,
    backoffs_of,
    is_equal,
    middle,
    parts_str,
    requests_of,
    server_str,
    talks,
)
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import places_of
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case

REQUESTS_LEAST, REQUESTS_MANY = 10, 20  # in a row that are a note, a warning
TRIPS_WITHIN = 1.3  # times the round trip of handshakes: requests that take longer need several round trips each
WAIT_NS, WAIT_LONG_NS = 200_000_000, 1_000_000_000  # the same of the time
SLOW_NS = 200_000_000  # a round trip of a long path
HARDLY, LOSS_SHARE = 0.1, 0.33  # of the round trips, that losses cost: with more, losses are the cause
FEW_TRIPS = 3.0  # requests of a connection: with fewer, each has its own
CLIENT_SHARE, PAUSES_MANY, PAUSED_LONG_NS = 0.6, 20, 3_000_000_000
CLIENTS_PACED = 3  # of one service
CAPTURE_SHARE = 0.25  # of the capture: a person who reads for less of it is not what somebody waited for
MAIN_SHARE = 0.25  # of its packets: with fewer, the capture is about other traffic
POLL_NS, POLL_WITHIN = 50_000_000, 0.2  # a timer that polls, and by how much the middle half of its pauses differ
EXPECT_LEAST_NS = 300_000_000  # the shortest timer in use is 350 ms
EXPECT_TIMERS_NS = (1_000_000_000, 350_000_000)  # curl; .NET
EXPECT_WITHIN, EXPECT_UPLOADS_MAX = 0.05, 1000


def trips_of(talk: Talk) -> int:
    """Returns the number of round trips: requests, and connections that were opened."""
    return talk.count + sum(flow["handshake_rtt_ns"] is not None for flow in talk.flows)


def is_of_trips(talk: Talk, closing_ns: float = 0.0) -> bool:
    """Returns whether most of the time was round trips of requests, one after another, without losses; `closing_ns` of them is
    the end of connections, for which nobody waits."""
    parts, waited_ns, life_ns = talk.parts, talk.trips_ns - closing_ns, talk.life_ns - closing_ns
    remaining_ns = parts["server"] + parts["client"] + parts["queue"]
    return (
        waited_ns >= max(WAIT_NS, TRIPS_SHARE * life_ns)
        and remaining_ns <= waited_ns
        and parts["loss"] <= LOSS_SHARE * waited_ns
        and (not talk.is_parallel or (closing_ns > 0 and are_in_turn(talk)))
        and not talk.has_no_answer_times
    )


def are_in_turn(talk: Talk) -> bool:
    """Returns whether each connection was opened when the one before had its answers."""
    used = talk.spans_in_use
    return math.fsum(span.ns for span in used) <= OVERLAP * (union_ns(used) or 0.0)


class Trips(NamedTuple):
    """The round trips of a conversation."""

    number: float
    rtt_ns: float

    @property
    def rtt(self) -> str:
        return show_duration(self.rtt_ns)


def round_trips(talk: Talk, closing_ns: float = 0.0) -> Trips:
    """Returns how many round trips were waited for: one for each request and connection, or more, if a request waits for several
    of those that handshakes took (slow start)."""
    waited_ns, least = talk.trips_ns - closing_ns, trips_of(talk)
    handshakes = [flow["handshake_rtt_ns"] for flow in talk.flows if flow["handshake_rtt_ns"]]
    rtt_ns = middle(handshakes) if handshakes else math.inf
    return (
        Trips(waited_ns / rtt_ns, rtt_ns)
        if waited_ns > TRIPS_WITHIN * least * rtt_ns
        else Trips(least, waited_ns / least)
    )


def is_long_wait(case: Case, requests: int, waited_ns: float) -> bool:
    """Returns whether somebody surely noticed the round trips: many of a second or more, or few that are much of the capture."""
    is_much = waited_ns >= max(PAUSED_LONG_NS, CAPTURE_SHARE * case.transfers.turns.capture_ns)
    return is_much or (requests >= REQUESTS_MANY and waited_ns >= WAIT_LONG_NS)


def trips_match(talk: Talk, requests: int, trips: Trips, closing_ns: float = 0.0, **words: Any) -> Match:
    """Returns a match about the number of round trips."""
    waited_ns, parts = talk.trips_ns - closing_ns, talk.parts
    return Match(
        certainty="proven",
        place="client",
        severity=None if is_long_wait(talk.case, requests, waited_ns) else "info",
        flows=talk.numbers,
        waited_ns=waited_ns,
        saving_ns=waited_ns - trips.rtt_ns,
        members=requests,
        frames=talk.cited(),
        proof=f"the server took {show_duration(parts['server'])} and the client {show_duration(parts['client'])} of it, and "
        "never were two requests open at once",
        excluded={
            "slow-server": f"it took {show_duration(parts['server'] / max(requests, 1))} for an answer, on average",
            "long-path": f"one round trip takes {trips.rtt}; there were {trips.number:,.0f}",
        },
        server=talk.server,
        spent=parts_str(waited_ns, talk.life_ns - closing_ns),
        requests=requests,
        **words,
    )


@cause(
    code="reconnects",
    title="A new connection for each request",
    sentence="Each of {requests} requests to {server} opened a new connection{tls}, {about} round trips of {rtt} each time: "
    "{spent}.",
    advice="Keep connections open: HTTP keep-alive, a connection pool, TLS session resumption.",
    shows="A client opens at least ten connections to a service, one after another, each with at most three requests (TLS "
    "handshake messages included). Round trips and handshakes are at least half of the time. The end of a connection doesn't "
    "count, because nobody waits for it: a client opens the next one meanwhile. A request waits for more round trips than one if "
    "its answer is longer than the first window (slow start).",
    rivals={
        "slow-server": "its share of the time is in the account; round trips are more",
        "long-path": "the number of round trips makes the time, not one of them",
    },
    unknown="Whether the server would keep a connection open.",
)
def reconnects(case: Case) -> Matches:
    for talk in talks(case):
        count = len(talk.flows)
        if count < REQUESTS_LEAST or talk.count > FEW_TRIPS * count:
            continue
        closing_ns = talk.closing_ns if talk.is_parallel else 0.0
        if not is_of_trips(talk, closing_ns):
            continue
        trips = round_trips(talk, closing_ns)
        yield trips_match(
            talk,
            count,
            trips,
            tls=" and a TLS session in it" if talk.flows[0]["application"] == "tls" else "",
            closing_ns=closing_ns,
            about=f"{trips.number / count:.2g}",
            rtt=trips.rtt,
        )


def lost_str(talk: Talk, waited_ns: float) -> str:
    """Returns what losses cost beside the time in which somebody waited for round trips."""
    lost_ns = talk.parts["loss"]
    if lost_ns > HARDLY * waited_ns:
        return f"Losses cost {show_duration(lost_ns)}"
    return "Hardly anything was lost" if lost_ns else "Nothing was lost"


@cause(
    code="serial-requests",
    title="Requests one after another",
    sentence="{lost}; {spent} went into {many} of {rtt}, one request after the other: {server} itself needs {each} for an "
    "answer.",
    advice="Batch or pipeline the requests to {server}, or open several connections.",
    shows="A connection has at least ten requests, never two at once. Their minimum round trips are at least half of the time "
    "in which somebody waited, and more than client, server and queues together; losses cost less than a third of them. A "
    "warning from 20 requests and 1 s on, or from 3 s and a quarter of the capture. At ports of terminals (SSH), requests must "
    "be of one size, come within 5 ms, and get 8 KiB or more (medians): a program reads a file, and nobody types.",
    rivals={
        "slow-server": "answers come after the least round trip",
        "long-path": "the number of round trips makes the time, not one of them",
        "application-window": "answers do not all have the 65,535 bytes of a window of HTTP/2",
    },
    unknown="Whether a request needs the answer to the one before it.",
)
def serial_requests(case: Case) -> Matches:
    delayed = {flow for each in case.all_findings("delayed-ack") for flow, _ in each.finding.flows}
    for talk in talks(case):
        if not is_of_trips(talk) or talk.count < REQUESTS_LEAST or talk.count <= FEW_TRIPS * len(talk.flows):
            continue
        if delayed.intersection(talk.numbers) or talk.is_of_windows:  # each request takes more round trips than one
            continue
        trips, least = round_trips(talk), trips_of(talk)
        more = f"{talk.count:,} requests, each with {trips.number / least:.2g} round trips"
        yield trips_match(
            talk,
            talk.count,
            trips,
            lost=lost_str(talk, talk.trips_ns),
            many=more if trips.number > least else plural(talk.count, "round trip"),
            rtt=trips.rtt,
            each=show_duration(middle(talk.times("server_ns"))),
        )


def pauses_of(talk: Talk) -> list[float]:
    """Returns the pauses of the client before and within requests, ns."""
    return [ns for name in ("pause_ns", "request_pause_ns") for ns in talk.times(name) if ns > 0]


def are_polls(pauses: list[float]) -> bool:
    """Returns whether pauses are those of a timer: the middle half of them are nearly equal, and longer than most work takes."""
    quarter, ordered = len(pauses) // 4, sorted(pauses)
    half = ordered[quarter : len(ordered) - quarter]
    return is_equal(ordered[1:-1], EXPECT_WITHIN) or (half[0] >= POLL_NS and is_equal(half, POLL_WITHIN))


def was_put_off(talk: Talk, backoffs: Mapping[int, list[Span]]) -> bool:
    """Returns whether half of a client's pauses came because the server told it to come later."""
    return 2 * math.fsum(span.ns for flow in talk.numbers for span in backoffs.get(flow, ())) >= talk.parts["client"]


def is_main(case: Case, talk: Talk) -> bool:
    """Returns whether a conversation has so much of the capture's packets that it may be what the capture is about."""
    return sum(flow["packets"] for flow in talk.flows) >= MAIN_SHARE * case.trace.totals["packets"]


def is_felt(case: Case, talk: Talk, paused_ns: float, pauses: list[float]) -> bool:
    """Returns whether pauses are so many, so long and so much of the capture that somebody may wait for the client, and the
    capture is about them."""
    is_many = len(pauses) >= PAUSES_MANY and middle(pauses) < WAIT_LONG_NS
    return (
        is_many
        and is_main(case, talk)
        and paused_ns >= max(PAUSED_LONG_NS, CAPTURE_SHARE * case.transfers.turns.capture_ns)
    )


def remaining_str(talk: Talk, remaining_ns: float) -> str:
    """Returns what server and network needed, with the unknown time if that is more."""
    unknown_ns = math.fsum(flow["time_unknown_ns"] or 0 for flow in talk.flows)
    needed = show_duration(remaining_ns)
    return f"{needed}, and where {show_duration(unknown_ns)} went is unknown" if unknown_ns > remaining_ns else needed


@cause(
    code="client-pause",
    title="The client pauses",
    sentence="The client took the time: it paused {paused} in all between {requests} answers of {server} and its next "
    "requests; server and network needed {remaining}.",
    advice="Profile the client between its requests (`perf top`, its disk): it computes, waits for something else, or sleeps.",
    shows="The client's own time before and within requests is at least 60% of the time in which somebody waited, over 20 "
    "requests and 3 s. It is a note if there are fewer requests, if the last one was never answered, or if at least three "
    "clients of one service pause. So it is if the pauses take less than a quarter of the capture, or the flows have less "
    "than a quarter of its packets: the capture is about other traffic. Some pauses are idle time: those above 5 s, and of "
    "terminals at which a person types. So are those of a timer: equal to 5%, or the middle half of them to 20% from 50 ms "
    "on.",
    rivals={
        "slow-server": "the answers come in the server's own time, which is short",
        "zero-window": "the window was open",
        "expect-continue": "the pauses are not equal",
    },
    unknown="What the client did meanwhile; at the server, a request that was lost before the capture point and repeated.",
)
def client_pause(case: Case) -> Matches:
    talked = talks(case)
    backoffs = case.once(backoffs_of) if talked else {}
    paced = Counter(talk.server for talk in talked if talk.parts["client"] >= CLIENT_SHARE * talk.life_ns > 0)
    for talk in talked:
        paused_ns, pauses = talk.parts["client"], pauses_of(talk)
        if (
            paused_ns < max(WAIT_LONG_NS, CLIENT_SHARE * talk.life_ns)
            or len(pauses) < REQUESTS_LEAST
            or talk.is_parallel
        ):
            continue
        if any(flow["server_talk"] for flow in talk.flows) or are_polls(pauses) or was_put_off(talk, backoffs):
            continue
        is_long = paced[talk.server] < CLIENTS_PACED and is_felt(case, talk, paused_ns, pauses)
        is_answered = case.connections.open_requests.keys().isdisjoint(talk.numbers)
        yield Match(
            certainty="proven",
            place="client",
            severity=None if is_long and is_answered else "info",
            flows=talk.numbers,
            waited_ns=paused_ns,
            frames=talk.cited(),
            proof=f"{plural(len(pauses), 'pause')}, {show_duration(middle(pauses))} (median)",
            excluded={
                "slow-server": f"its answers took {show_duration(middle(talk.times('server_ns')))} (median)",
                "zero-window": f"windows held it back for {show_duration(talk.parts['window'])}",
                "expect-continue": f"pauses from {show_duration(min(pauses))} to {show_duration(max(pauses))}",
            },
            paused=show_duration(paused_ns),
            requests=talk.count,
            server=talk.server,
            remaining=remaining_str(talk, talk.life_ns - paused_ns),
        )


def expecting(case: Case) -> dict[tuple[str, str | None], list[tuple[Requests, int]]]:
    """Returns the uploads that waited for 100 Continue, by client and server: requests of a flow, and which of them.

    Later requests of a connection are not read: those that pause as long as the first count, too.
    """
    column = case.transfers.bytes_of("exchanges", "expects_continue")
    uploads: dict[tuple[str, str | None], list[tuple[Requests, int]]] = {}
    for place in places_of(column, 1, EXPECT_UPLOADS_MAX):
        row = case.trace.exchanges.rows(place, place + 1)[0]
        timer_ns = row["request_pause_ns"]
        if row["flow"] is None or row["flow"] in case.transfers.legs or not timer_ns or timer_ns < EXPECT_LEAST_NS:
            continue
        requests = requests_of(case, case.flow(row["flow"]))
        alike = [
            number
            for number, ns in enumerate(requests.columns["request_pause_ns"])
            if abs(ns - timer_ns) <= EXPECT_WITHIN * timer_ns
        ]
        uploads.setdefault((str(row["client"]), row["server"]), []).extend((requests, number) for number in alike)
    return uploads


@cause(
    code="expect-continue",
    title="100 Continue never came",
    sentence="{each} to {server} {probably}waits {timer}: the client sends Expect: 100-continue, the server does not answer it, "
    "and the content follows only after a timeout, which took {waited}.",
    advice="Send no Expect header (`curl -H 'Expect:'`), or let the server answer it with `100 Continue`.",
    shows="The head of an HTTP request has `Expect: 100-continue` (RFC 9110 section 10.1.1). The content follows at least 300 "
    "ms later, without a byte from the server in between. Proven if the pauses are equal to 5%, or last as long as curl's (1 "
    "s) or .NET's (350 ms).",
    rivals={
        "client-pause": "the pauses are equal, or a known timer of this header",
        "slow-server": "the server sent nothing, and the client went on without it",
    },
    unknown="Heads within TLS, and those of later requests in a connection, which count if they pause as long as the first.",
)
def expect_continue(case: Case) -> Matches:
    for uploads in expecting(case).values():
        pauses = [requests.columns["request_pause_ns"][number] for requests, number in uploads]
        timer_ns, count, waited_ns = middle(pauses), len(pauses), math.fsum(pauses)
        is_usual = any(abs(timer_ns - usual) <= EXPECT_WITHIN * usual for usual in EXPECT_TIMERS_NS)
        is_timer = (count > 1 and is_equal(pauses, EXPECT_WITHIN)) or is_usual
        base_ns, flows = case.transfers.base_ns, list(dict.fromkeys(requests.flow["flow"] for requests, _ in uploads))
        fact = f"{plural(count, 'pause')} of {show_duration(timer_ns)}"
        yield Match(
            certainty="proven" if is_timer else "likely",
            place="server",
            flows=flows,
            waited_ns=waited_ns,
            saving_ns=waited_ns,
            members=count,
            frames=[packet for requests, number in uploads[:3] for packet in requests.cited(base_ns, number)],
            proof=f"{fact} between head and content, without a byte of the server",
            excluded={
                "slow-server": "the client sent the content without an answer",
                **({"client-pause": fact} if is_timer else {}),
            },
            undecided={} if is_timer else {"client-pause": "a second upload: a timer makes equal pauses"},
            each=f"Each of {count:,} uploads" if count > 1 else "The upload",
            server=server_str(uploads[0][0].flow),
            timer=show_duration(timer_ns),
            waited=parts_str(waited_ns, math.fsum(sum(case.transfers.turns.account(flow).values()) for flow in flows)),
        )


def acked_ns(talk: Talk) -> float:
    """Returns the median time to the ACK of a request, ns: that which the server's kernel sends."""
    return middle(talk.times("network_ns"))


@cause(
    code="long-path",
    title="Long round trips",
    sentence="The network is slow, not {server}: its SYN-ACK took {rtt}, its ACK of a request {acked}, and the answer came "
    "{thought} later. Nothing was lost; {spent} went into the network.",
    advice="Move the server nearer or cache near the client, keep connections open, and use TLS 1.3, so that fewer round "
    "trips are needed.",
    shows="The handshake of each connection takes 200 ms or more, and round trips and queues are at least half of the time. A "
    "connection has fewer than 10 requests. Kernels answer SYNs and requests at once, so this time is the network's.",
    rivals={
        "slow-server": "its kernel's SYN-ACK takes as long as the answer",
        "serial-requests": "there are few requests",
        "bufferbloat": "every handshake takes as long",
    },
    unknown="Whether the path is long (1 ms for 100 km and back, 480 ms by satellite), or a queue stood all the time. A "
    "shorter round trip in the file would tell.",
)
def long_path(case: Case) -> Matches:
    for talk in talks(case):
        trips = [flow["handshake_rtt_ns"] for flow in talk.flows if flow["handshake_rtt_ns"] is not None]
        spent_ns = talk.trips_ns + talk.parts["queue"]
        if not trips or min(trips) < SLOW_NS or spent_ns < TRIPS_SHARE * talk.life_ns or talk.parts["loss"]:
            continue
        acked, server_ns = acked_ns(talk), middle(talk.times("server_ns"))
        if talk.count >= REQUESTS_LEAST * len(talk.flows) or acked < SLOW_NS or server_ns > acked:
            continue
        yield Match(
            certainty="proven",
            place="path",
            flows=talk.numbers,
            waited_ns=min(spent_ns, talk.open_ns),
            frames=talk.cited(),
            proof="SYN-ACKs and ACKs come from the server's kernel, which answers at once",
            excluded={
                "slow-server": f"it answered {show_duration(server_ns)} after its ACK of the request",
                "serial-requests": plural(talk.count, "request"),
            },
            server=talk.server,
            rtt=show_duration(min(trips)),
            acked=show_duration(acked),
            thought=show_duration(server_ns),
            spent=parts_str(spent_ns, talk.life_ns),
        )
