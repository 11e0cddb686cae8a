# SPDX-License-Identifier: Apache-2.0
"""Clients that close before the answer comes, servers that never close, and FINs that alone are repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import (
    EXCHANGE_KINDS,
    ending_cited,
    filter_of,
    is_alike,
    largest_groups,
    server_str,
    times_str,
)
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.evidence import SHOWN
from wiretale.analyzer.findings.exchanges.exchange_rows import packets_of, rows_where
from wiretale.analyzer.findings.shared.servers import first_packets
from wiretale.analyzer.findings.transfers import only_fin_repeated
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection
    from wiretale.analyzer.findings.model import Words
    from wiretale.analyzer.rows import DirectionRow, EndingRow, ExchangeRow

WAIT_MIN_NS = 200_000_000  # a client that closes sooner did not wait
ROUND_S = (1, 2, 3, 4, 5, 8, 10, 15, 20, 25, 30, 45, 60, 90, 120, 180, 300)
ROUND_SHARE = 0.02  # off a round number of seconds
LATE_ANSWER_NS, GIVEN_UP_MIN = 300_000_000, 2  # of a SYN-ACK; no timeout for connecting is shorter; attempts
HALF_OPEN_NS, HALF_OPEN_MIN = 10_000_000_000, 3
ALERT_BYTES_MAX = 85  # a TLS record with an alert, of the longest MAC and padding (RFC 5246 section 6.2.3.2)
TIMEOUTS_MIN, FIN_MIN_NS, FINS_MIN = 3, 3_000_000_000, 3  # repeats of one FIN, and their time; connections
FLOWS_MAX = 1_000
GAVE_UP_EFFECTS = ("slow-server", "reset", "request-unanswered", "idle-reset", "tls-handshake-slow")


class GivenUp(NamedTuple):
    """A request whose client closed before the answer."""

    connection: Connection
    fin: EndingRow
    request: ExchangeRow
    waited_ns: int  # until it closed
    answered_ns: int  # until the answer came


def is_round(ns: int) -> bool:
    """Returns whether a wait is a round number of seconds, as timeouts are."""
    return any(abs(ns / 1e9 - seconds) <= ROUND_SHARE * seconds for seconds in ROUND_S)


def closed_before_answer(case: Case) -> dict[int, EndingRow]:
    """Returns the FINs of clients that reset what came after them, by flow."""
    connections, explained = case.connections, case.flows_of()
    late: dict[int, EndingRow] = {}
    for flow, endings in connections.endings_with_reset.items():
        side = connections[flow].client_side
        kinds = {row["kind"]: row for row in endings if row["direction"] == side}
        if flow not in explained and "reset" in kinds and "fin" in kinds and is_answer(connections[flow], kinds["fin"]):
            late[flow] = kinds["fin"]
    return late


def is_answer(connection: Connection, fin: EndingRow) -> bool:
    """Returns whether what came after a FIN can be an answer: no close_notify of TLS, with which a server
    closes as well."""
    return fin["late_bytes"] > (ALERT_BYTES_MAX if connection.flow["application"] == "tls" else 0)


def given_up(case: Case) -> list[GivenUp]:
    """Returns the requests whose clients closed, and reset the answer that came later."""
    late = closed_before_answer(case)
    rows = rows_where(case.transfers, "kind", *EXCHANGE_KINDS) if late else []
    last = {row["flow"]: row for row in rows if row["flow"] in late and row["asked_ns"] is not None}
    requests = []
    for flow, request in last.items():
        fin = late[flow or 0]
        closed_ns = fin["time_ns"] or 0
        waited_ns = closed_ns - (request["asked_ns"] or 0)
        # what comes behind the FIN of a client that has its answer is a farewell (a TLS close_notify), which it resets
        had_answer = request["answered_ns"] is not None and request["answered_ns"] < closed_ns
        if waited_ns >= WAIT_MIN_NS and not had_answer:
            answered_ns = waited_ns + (fin["late_ns"] or 0)
            requests.append(GivenUp(case.connections[flow or 0], fin, request, waited_ns, answered_ns))
    return requests


@cause(
    code="client-gave-up",
    title="The client gave up before the answer",
    sentence="The client {client} gave up after {timer}{waited}: it closed {closed} of {total:connection} to {server} before the "
    "{answers} came, after {late}, and reset {them}.",
    advice="Raise the client's timeout above the slowest answer ({late}; `curl --max-time`, `proxy_read_timeout`, a driver's "
    "socket timeout), or find out why {server} takes so long.",
    shows="A client closes at least 0.2 s after its request. The server's answer comes later, and the client resets it. A "
    "wait that is the same each time (5%) or a round number of seconds is a timeout.",
    rivals={
        "reset-by-peer": "the client's FIN comes before its RST",
        "hung-server": "the answer comes, too late",
    },
    unknown="What the server did meanwhile.",
    explains=GAVE_UP_EFFECTS,
)
def client_gave_up(case: Case) -> Matches:
    for server, group in largest_groups(given_up(case), lambda each: each.connection.server):
        yield gave_up_match(group, max(len(case.connections.to_server(server)), len(group)))


def gave_up_match(group: Sequence[GivenUp], total: int) -> Match:
    """Returns the match of requests to one server that clients gave up, of so many connections."""
    waits, answers = [each.waited_ns for each in group], [each.answered_ns for each in group]
    is_timer = (len(waits) > 1 and is_alike(waits)) or all(map(is_round, waits))
    starts = [each.request["asked_ns"] or 0 for each in group]
    return Match(
        certainty="proven" if is_timer else "likely",
        place="client",
        flows=[each.connection.number for each in group],
        failed=len(group),
        attempts=total,
        waited_ns=union_ns(Span(start, start + ns) for start, ns in zip(starts, waits, strict=True)),
        frames=[ending_cited(each.fin) for each in group[:SHOWN]],
        filter=filter_of(each.connection for each in group),
        proof=f"FIN of the client {times_str(waits)} after the request, the answer after {times_str(answers)}",
        excluded={"hung-server": "the answer came"} | ({"reset-by-peer": "its FIN came first"} if is_timer else {}),
        undecided={} if is_timer else {"reset-by-peer": "Does the user stop waiting, or a timer? Repeat the request."},
        timer="its timeout of " if is_timer else "",
        total=total,
        **words_of(group),
    )


def words_of(group: Sequence[GivenUp]) -> Words:
    """Returns the words of the sentence that follow from the requests alone."""
    clients = list({each.connection.end(each.connection.client_side)[0] for each in group})
    return {
        "client": clients[0] if len(clients) == 1 else f"({len(clients):,} of them)",
        "waited": times_str([each.waited_ns for each in group]),
        "closed": len(group),
        "server": server_str([each.connection for each in group]),
        "answers": "answer" if len(group) == 1 else "answers",
        "late": times_str([each.answered_ns for each in group]),
        "them": "it" if len(group) == 1 else "them",
    }


def late_handshakes(case: Case) -> list[tuple[Connection, int]]:
    """Returns the attempts whose SYN-ACK came late and was reset by the client, with the time that it took."""
    explained, late = case.flows_of(), []
    for row in case.exchanges("outcome", "abandoned"):
        if row["kind"] != "connect" or row["flow"] is None or row["flow"] in explained:
            continue
        connection = case.connections[row["flow"]]
        client, server = (connection.directions[side] for side in (connection.client_side, connection.server_side))
        rtt_ns = client["rtt_ns_min"]  # the SYN-ACK acknowledges the SYN
        if rtt_ns and rtt_ns >= LATE_ANSWER_NS and client["resets"] and not server["resets"]:
            late.append((connection, rtt_ns))
    return late


@cause(
    code="connect-given-up",
    title="Clients give up connecting before the SYN-ACK comes",
    sentence="The client {client} {probably}gives up connecting to {server} too soon: the SYN-ACKs of {count} of "
    "{total:connection} came after {waits}, when it had closed already, and it reset them.",
    advice="Raise the timeout for connecting of the program on {client} above {longest}, and find what makes the way so long "
    "(`ping {host}`: a mobile network, a satellite, a VPN, a full queue).",
    shows="At least two SYN-ACKs of a server come 0.3 s or more after the SYN that they acknowledge, and the client resets them. "
    "No connection to that server came about after as long.",
    rivals={
        "port-reuse": "the SYN-ACK acknowledges this SYN",
        "client-gave-up": "the handshake is not complete",
        "accept-queue": "the first SYN is answered",
    },
    unknown="Whether the client scans ports: a scanner resets each SYN-ACK, soon or late.",
    explains=("reset",),
)
def connect_given_up(case: Case) -> Matches:
    for (server, client), group in largest_groups(
        late_handshakes(case), lambda pair: (pair[0].server, pair[0].end(pair[0].client_side)[0])
    ):
        waits, flows = [ns for _, ns in group], [connection.number for connection, _ in group]
        patient = [case.flow(flow)["handshake_rtt_ns"] or 0 for flow in case.connections.to_server(server)]
        if len(group) < GIVEN_UP_MIN or max(patient, default=0) >= min(waits):
            continue
        yield Match(
            certainty="likely",
            place="client",
            flows=flows,
            failed=len(group),
            attempts=len(patient),
            waited_ns=union_ns(Span(each.flow["first_ns"] or 0, each.last_ns) for each, _ in group),
            filter=filter_of(each for each, _ in group),
            proof=f"{plural(len(group), 'RST')} of the client in answer to a SYN-ACK, {times_str(waits)} after the SYN",
            excluded={"port-reuse": "each SYN-ACK acknowledges its SYN", "client-gave-up": "no handshake was complete"},
            undecided={"accept-queue": f"`ping {server[0]}`: is the way as long, or does the server answer late?"},
            client=client,
            server=server_str([connection for connection, _ in group]),
            host=server[0],
            count=len(group),
            total=len(patient),
            waits=times_str(waits),
            longest=show_duration(max(waits)),
        )


def half_closed_requests(case: Case) -> list[tuple[Connection, ExchangeRow]]:
    """Returns the only requests of connections that the client closed right behind them, and the server without a byte."""
    explained, requests = case.flows_of(), []
    for row in case.exchanges("outcome", "farewell"):
        if row["kind"] != "http" or not row["type"] or row["flow"] is None or row["flow"] in explained:
            continue
        connection = case.connections[row["flow"]]
        client, server = (connection.directions[side] for side in (connection.client_side, connection.server_side))
        if (
            client["fins"]
            and not client["resets"]
            and not server["payload_bytes"]
            and (server["fins"] or server["resets"])
        ):
            requests.append((connection, row))
    return requests


@cause(
    code="half-closed",
    title="The server takes the client's FIN for the end",
    sentence="The client {client} closes its half of the connection right after its request, and the server {server} "
    "{probably}takes that for the end. It closed {count:connection} without an answer{beside}.",
    advice="Let {client} keep its half open until it has the answer (no `shutdown(SHUT_WR)`, no `nc -N`), or let the program on "
    "{host} answer after a FIN: it ends only what the client sends (RFC 9112 section 9.6).",
    shows="The client sends its FIN within 50 ms of its only HTTP request, without a RST after it, and the server closes or "
    "resets without a byte. If it answers other requests, whose clients stay open, the FIN separates them.",
    rivals={
        "closed-unanswered": "the client closes first",
        "client-gave-up": "it closes at once, and resets nothing",
    },
    unknown="Whether the client wants an answer: one that closes its whole socket sends the same FIN.",
)
def half_closed(case: Case) -> Matches:
    for (server, client), group in largest_groups(
        half_closed_requests(case), lambda pair: (pair[0].server, pair[0].end(pair[0].client_side)[0])
    ):
        connections, flows = [connection for connection, _ in group], {connection.number for connection, _ in group}
        answered = sum(
            row["outcome"] == "answered" and case.connections[row["flow"] or 0].server == server
            for row in case.exchanges("kind", "http")
            if row["flow"] not in flows
        )
        yield Match(
            certainty="likely" if answered else "possible",
            place="server",
            flows=sorted(flows),
            failed=len(group),
            attempts=len(group) + answered,
            frames=packets_of([row for _, row in group]),
            filter=filter_of(connections),
            severity=None if answered else "warning",
            proof="FIN of the client behind the request, then the server's, and not one byte of it",
            excluded={"closed-unanswered": "the client's FIN came first"},
            undecided={"client-gave-up": f"The program on {client}: does it read after it closes?"},
            client=client,
            server=server_str(connections),
            host=server[0],
            count=len(group),
            beside=f", while it answered {plural(answered, 'request')} whose clients stayed open" if answered else "",
        )


@cause(
    code="close-wait",
    title="The server never closes",
    sentence="{server} never closes: it acknowledged the FIN of {count:client connection} and kept its own side open for "
    "{open_time} (CLOSE-WAIT){beside}. It will run out of sockets.",
    advice="Let the program on {host} close its socket when the client has closed (end of file); `ss -tanp state close-wait` "
    "shows which process it is.",
    shows="On at least three connections, the client's FIN was acknowledged 10 s or longer before the end of the capture. "
    "Since then, the server has sent no FIN, RST or byte.",
    rivals={
        "hung-server": "the requests were answered before",
        "cut-open": "the halves stay open for 10 s and more",
    },
    unknown="Whether the server closes later than the capture ends.",
    explains=("request-unanswered",),
)
def close_wait(case: Case) -> Matches:
    connections, explained = case.connections, case.flows_of()
    halves: list[tuple[Connection, EndingRow]] = []
    for row in connections.endings:
        is_fin = row["kind"] == "fin" and row["acknowledged"] and not row["late_bytes"]
        is_long = row["time_ns"] is not None and connections.end_ns - row["time_ns"] >= HALF_OPEN_NS
        if not is_fin or not is_long or row["flow"] in explained:
            continue
        connection = connections[row["flow"]]
        peer = connection.directions[1 - row["direction"]]
        if not peer["fins"] and not peer["resets"] and row["direction"] == connection.client_side:
            halves.append((connection, row))
    for server, group in largest_groups(halves, lambda pair: pair[0].server):
        if len(group) >= HALF_OPEN_MIN:
            yield held_match(case, server, group)


def held_match(case: Case, server: tuple[str, int | None], group: list[tuple[Connection, EndingRow]]) -> Match:
    """Returns the match of connections of which one server kept its half open."""
    since = [case.connections.end_ns - (row["time_ns"] or 0) for _, row in group]
    closed = case.connections.states_of(server)["closed"]
    return Match(
        certainty="proven",
        place="server",
        flows=[connection.number for connection, _ in group],
        members=len(group),
        attempts=len(group) + closed,
        frames=[ending_cited(row) for _, row in group[:SHOWN]],
        packets=len(group),
        filter=filter_of(connection for connection, _ in group),
        proof=f"the FINs were acknowledged, and the server sent nothing for {times_str(since)}",
        excluded={"cut-open": f"the halves stayed open for {show_duration(min(since))} at least"},
        severity="warning",
        server=server_str([connection for connection, _ in group]),
        count=len(group),
        open_time=times_str(since),
        beside=f", while {plural(closed, 'other was', 'others were')} closed by both ends" if closed else "",
        host=server[0],
    )


class Repeated(NamedTuple):
    """An end whose FIN was repeated, after all of its data was acknowledged."""

    row: DirectionRow
    peer: DirectionRow
    repeated_ns: int

    @property
    def is_acknowledged(self) -> bool:
        """Whether the other end took the last repeat: it closed, too."""
        return bool(self.peer["fins"])

    @property
    def answers(self) -> bool:
        """Whether the other end answers the repeats, with ACKs that leave the FIN out."""
        return 2 * (self.peer["duplicate_acks"] or 0) >= (self.row["fins"] or 0) - 1


def repeated_fin(case: Case, flow: int, side: int) -> Repeated | None:
    """Returns an end whose FIN was repeated and never acknowledged, or of which the FIN alone was repeated, until it was; None if
    it is another one, or a RST answered."""
    row, peer = case.direction(flow, side), case.direction(flow, 1 - side)
    is_open = row["unacked_bytes"] or peer["resets"] or not peer["packets"]
    if (row["fins"] or 0) < TIMEOUTS_MIN or is_open:
        return None
    if peer["fins"]:
        return Repeated(row, peer, row["rto_idle_ns"] or 0) if only_fin_repeated(row) else None
    fin = ignored_fin(case, flow, side)
    return Repeated(row, peer, (row["last_ns"] or 0) - (fin["time_ns"] or 0)) if fin else None


def ignored_fin(case: Case, flow: int, side: int) -> EndingRow | None:
    """Returns the FIN of an end that was never acknowledged, and after which no data came; None without one."""
    endings = case.connections.endings_of.get(flow, ())
    fin = next((each for each in endings if (each["kind"], each["direction"]) == ("fin", side)), None)
    return fin if fin and fin["acknowledged"] is False and not fin["late_bytes"] else None


def repeated_fins(case: Case) -> list[Repeated]:
    """Returns the ends whose FIN was repeated, and of which no request is open."""
    explained = {*case.flows_of(), *case.connections.open_requests}
    numbers = [number for number, _ in case.transfers.counts["timeouts"] if number // 2 not in explained]
    fins = (repeated_fin(case, *divmod(number, 2)) for number in numbers[:FLOWS_MAX])
    return [fin for fin in fins if fin]


def is_ignored(group: Sequence[Repeated]) -> bool:
    """Returns whether FINs were repeated too often for a loss by chance, on one connection or on several."""
    longest = max(group, key=lambda fin: fin.repeated_ns)
    if len(group) >= FINS_MIN:
        return True
    return (longest.row["fins"] or 0) > TIMEOUTS_MIN and longest.repeated_ns >= FIN_MIN_NS


@cause(
    code="fin-ignored",
    title="A FIN is not acknowledged",
    sentence="{what}: the FIN of {count:connection} was repeated {repeats} in {time}, though all data before it was "
    "acknowledged. {why}.",
    advice="{advice}",
    shows="The FIN of an end, without data, is all that its timers repeat, after all of its data was acknowledged: on one "
    "connection three times or more over 3 s or more, or twice or more on three connections with one host. No RST answers. The "
    "FIN is never acknowledged, or only at the last repeat. ACKs to half of the repeats show that the packets arrive.",
    rivals={
        "outage": "the FIN alone is repeated, and no data: nobody waits for it",
        "random-loss": "the FIN alone is repeated, several times, and no data",
        "peer-gone": "an end that is gone sends no ACKs; without one, all data before was acknowledged",
        "silent-after-close": "the other end has nothing more to send",
    },
    unknown="If nothing comes back, whether the host is gone, or a device forgot the connection and drops its packets.",
    explains=(
        *("lost-upstream", "lost-downstream", "timeout-stalls", "suspected-timeout", "retransmission-unlocated"),
        *("retransmission-cost", "half-open", "loss-pattern"),
    ),
)
def fin_ignored(case: Case) -> Matches:
    def kind(fin: Repeated) -> tuple[str, bool, bool]:
        return fin.row["destination"], fin.is_acknowledged, fin.answers

    for (host, *_), group in largest_groups(repeated_fins(case), kind):
        if is_ignored(group):
            yield fins_match(case, group, host)


def late_words(host: str, closer: str, count: int) -> Words:
    """Returns what is said of an end that takes only the last repeat of a FIN."""
    why = "the path was down just then, or a device dropped the FINs"
    if count >= FINS_MIN:
        why = f"a device on the way probably drops FINs, or {host} ignores the first ones"
    return {
        "what": f"{host} acknowledged late that {closer} closes",
        "why": f"No data was under way, so nobody waited: {why}",
        "advice": f"Capture at {host}: does the first FIN arrive there? If not, look for a firewall that takes FINs for invalid "
        "(`nft` or `iptables` counters of `ct state invalid`).",
    }


def fin_words(host: str, closer: str, answers: bool) -> Words:
    """Returns what is said of an end that answers the repeats of a FIN, or does not."""
    if answers:
        return {
            "what": f"{host} ignores that {closer} closes",
            "why": "It answers the repeats with ACKs that leave the FIN out: its TCP stack does not handle a FIN, or a device "
            "answers in its place",
            "advice": f"Update the TCP stack of {host}: it must acknowledge a FIN, and send its own when its program closes (RFC "
            "9293 section 3.10.7.4).",
        }
    return {
        "what": f"{host} fell silent when {closer} closed",
        "why": "It probably left the network, or a NAT or firewall forgot the connection",
        "advice": f"Capture at {host}: do the FINs arrive there? If nobody misses it, only a socket waits for nothing.",
    }


def fin_rivals(group: Sequence[Repeated], host: str) -> Words:
    """Returns certainty, proof and rivals."""
    excluded, fact = {"random-loss": "no data was repeated"}, "all data before it is acknowledged"
    if group[0].is_acknowledged:
        test = {"outage": f"other traffic to {host} meanwhile: does it pass?"} if len(group) < FINS_MIN else {}
        return {
            "certainty": "likely",
            "proof": f"only the last repeat of the FIN is acknowledged, and {fact}",
            "excluded": excluded if test else excluded | {"outage": "it is always the FIN, and never data"},
            "undecided": test,
        }
    answers = group[0].answers
    return {
        "certainty": "proven" if answers else "likely",
        "proof": f"no packet of the other end acknowledges the FIN, and {fact}",
        "excluded": excluded | ({"peer-gone": "it answers the repeats"} if answers else {}),
        "undecided": {} if answers else {"peer-gone": f"Capture at {host}: do the FINs arrive, and does it answer?"},
    }


def fins_match(case: Case, group: Sequence[Repeated], host: str) -> Match:
    """Returns the match of an end that does not acknowledge FINs, or late."""
    first, connections = group[0], [case.connections[fin.row["flow"]] for fin in group]
    by_server = first.row["direction"] == connections[0].server_side
    closer = server_str(connections) if by_server else first.row["source"]
    return Match(
        place="client" if by_server else "server",
        flows=[connection.number for connection in connections],
        severity="warning",
        frames=first_packets(case.transfers, [connection.number for connection in connections]),
        filter=filter_of(connections),
        count=len(group),
        repeats=plural(sum((fin.row["fins"] or 1) - 1 for fin in group), "time"),
        time=times_str([fin.repeated_ns for fin in group]),
        **fin_rivals(group, host),
        **(late_words(host, closer, len(group)) if first.is_acknowledged else fin_words(host, closer, first.answers)),
    )
