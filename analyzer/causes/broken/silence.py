# SPDX-License-Identifier: Apache-2.0
"""An end of an open connection falls silent: an idle connection that a device forgot, or an end that is gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import filter_of, largest_groups, server_str, times_str
from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.cost import Span, union_ns
from wiretale.analyzer.findings.evidence import CITED, FIRST, LAST, SHOWN, Cited
from wiretale.analyzer.findings.model import flow_str
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection, Silence
    from wiretale.analyzer.rows import DirectionRow

IDLE_MIN_NS = 25_000_000_000  # no common device forgets a connection sooner (Linux: UDP 30 s)
TIMEOUTS_MIN = 3
LADDER_SHARE = 0.4  # of the time: the last of pauses that double is half of it
LADDER_REPEATS = 3
#: findings that follow from silence
EFFECTS = (
    *("keep-alive-unanswered", "timeout-stalls", "suspected-timeout", "retransmission-unlocated", "lost-downstream"),
    *(
        "retransmission-cost",
        "reset",
        "request-unanswered",
        "loss-pattern",
        "one-way",
        "recovery-limited",
        "window-full",
    ),
    *("slow-server", "loss-limited-window"),
)


def silent_cited(silences: Sequence[Silence]) -> list[Cited]:
    """Returns the packets that ended the pauses, or the ends of each flow."""
    packets = []
    for silence in silences[:SHOWN]:
        row = silence.connection.flow
        if silence.idle_ns:
            packets.append(Cited(row["pause_frame"], row["pause_until_ns"], row["flow"], row["pause_capture"], CITED))
        else:
            packets.append(Cited(row["last_frame"], row["last_ns"], row["flow"], row["first_capture"], LAST))
    return packets


def waits_of(silences: Sequence[Silence]) -> float | None:
    """Returns the time in which somebody waited for an answer, ns."""
    return union_ns(Span(each.began_ns, each.began_ns + each.silent_ns) for each in silences)


def silent_end(silences: Sequence[Silence]) -> str:
    """Returns the end that does not answer: the server, or the client if the server sent into the silence."""
    if all(each.side == each.connection.client_side for each in silences):
        return server_str([each.connection for each in silences])
    return "The client " + silences[0].connection.end(1 - silences[0].side)[0]


@cause(
    code="nat-forgot",
    title="Idle connection forgotten by a NAT or firewall",
    sentence="{end} stopped answering after {idle} without traffic: {tries:packet was|packets were} sent in {silent} and none "
    "got an answer{fresh}{harmless}. A NAT or firewall "
    "{probably}forgot the idle {count:~connection|connections}.",
    advice="Send keep-alives more often than every {idle} (SO_KEEPALIVE, `net.ipv4.tcp_keepalive_time=120`), or raise the idle "
    "timeout of the NAT or firewall.",
    shows="After at least 25 s without a packet, data or three keep-alives of one end get no answer for 3 s or more, and so "
    "the connection ends. No connection to that server survived a pause as long.",
    rivals={
        "peer-gone": "a new connection to the server is established while the old one is silent",
        "idle-timeout": "an end, or a device that says so, sends RST or FIN; here nothing comes back",
        "hung-server": "a server that hangs acknowledges the request",
        "outage": "only connections that were idle are silent",
    },
    unknown="Which device forgot the connection: a capture at each side of it shows where the packets end.",
    explains=EFFECTS,
)
def nat_forgot(case: Case) -> Matches:
    connections = case.connections
    candidates = [each for each in connections.silent if each.idle_ns >= IDLE_MIN_NS]
    for server, silences in largest_groups(candidates, lambda each: each.connection.server):
        harmless = connections.harmless_ns(server, {each.flow for each in silences})
        victims = [each for each in silences if each.idle_ns > harmless]
        if not victims:
            continue
        began_ns = min(each.began_ns for each in victims)
        fresh = connections.connected_after(server, began_ns)
        if fresh is None and connections.states_of(server, began_ns)["syn_sent"]:
            continue  # peer-gone
        yield forgotten(victims, harmless, fresh)


def forgotten(victims: Sequence[Silence], harmless: int, fresh: Connection | None) -> Match:
    """Returns the match of connections to one server that were forgotten."""
    shortest = min(each.idle_ns for each in victims)
    excluded = {
        "hung-server": "the requests were not even acknowledged",
        "idle-timeout": "no RST and no FIN came back",
    }
    decide = {"peer-gone": "Open a new connection to the server while the old one is silent, or capture at the server."}
    if fresh is not None:
        excluded["peer-gone"] = f"a new connection took {show_duration(fresh.flow['handshake_rtt_ns'])}"
    return Match(
        certainty="likely" if fresh is None else "proven",
        place="device",
        flows=[each.flow for each in victims],
        failed=len(victims),
        waited_ns=waits_of(victims),
        frames=silent_cited(victims),
        filter=filter_of(each.connection for each in victims),
        proof=f"nothing came back after the pause; the longest pause that did no harm took {show_duration(harmless)}"
        if harmless
        else "nothing came back after the pause, neither an ACK nor a RST",
        excluded=excluded,
        undecided={} if fresh else decide,
        end=silent_end(victims),
        idle=show_duration(shortest),
        tries=sum(each.attempts for each in victims),
        silent=times_str([each.silent_ns for each in victims]),
        fresh=f", while a new connection took {show_duration(fresh.flow['handshake_rtt_ns'])}" if fresh else "",
        harmless=f" (pauses of up to {show_duration(harmless)} did no harm)" if harmless > IDLE_MIN_NS / 5 else "",
        count=len(victims),
    )


@cause(
    code="peer-gone",
    title="An end of open connections fell silent",
    sentence="{end} {probably}went away or lost its network{when}: {repeats} in {silent} got no answer{beside}.",
    advice="Look at the console and the log of {host} at that time: a crash, a restart, a cable or a firewall that began to "
    "drop. TCP_USER_TIMEOUT (RFC 5482) lets clients fail sooner.",
    shows="Data in mid-connection is repeated in at least three timeouts over 3 s or more, and nothing comes back to the end. "
    "Or the capture has only one end, which repeats a segment in pauses that double: it hears no ACK either.",
    rivals={
        "nat-forgot": "no pause of 25 s before, or a new connection fails, too",
        "mtu-black-hole": "small segments fail, too, or large ones were acknowledged before",
        "hung-server": "a server that hangs acknowledges",
        "one-direction": "the sender repeats, so the ACKs that the capture lacks did not reach it",
        "outage": "nothing of it comes back until the capture ends",
        "zero-window": "its window was open",
    },
    unknown="A crash, a cable and a firewall that drops all look alike from the other end.",
    explains=EFFECTS,
)
def peer_gone(case: Case) -> Matches:
    yield from silent_in_both_directions(case)
    yield from repeating_alone(case)


def is_closed_window(silence: Silence) -> bool:
    """Returns whether the silent end had closed its window, so that its peer may only have probed it."""
    return bool(silence.connection.directions[1 - silence.side]["zero_windows"])


def was_large_delivered(silence: Silence) -> bool:
    """Returns whether the silent end acknowledged as large segments before, or small ones are unanswered as well."""
    row = silence.connection.directions[silence.side]
    unacked, largest = row["unacked_bytes"] or 0, row["segment_max"] or 0
    return largest < 1200 or (row["unique_bytes"] or 0) - unacked >= 10 * largest


def is_gone(case: Case, silence: Silence) -> bool:
    """Returns whether nothing but a peer that is gone, or the path to it, explains a silence."""
    timeouts = silence.connection.directions[silence.side]["timeouts"] or 0
    return timeouts >= TIMEOUTS_MIN and not is_closed_window(silence) and was_large_delivered(silence)


def silent_in_both_directions(case: Case) -> Matches:
    """Yields servers that stopped answering in mid-connection."""
    connections, explained = case.connections, case.flows_of()
    candidates = [each for each in connections.silent if each.flow not in explained and is_gone(case, each)]
    for server, silences in largest_groups(candidates, lambda each: each.connection.server):
        began_ns = min(each.began_ns for each in silences)
        if connections.connected_after(server, began_ns) is None:
            yield gone_match(silences, connections.states_of(server, began_ns)["syn_sent"])


def gone_match(silences: Sequence[Silence], failed: int) -> Match:
    """Returns the match of connections to one server, and of as many new ones that failed."""
    excluded, undecided = {"hung-server": "the data was not even acknowledged"}, {}
    if failed:
        excluded["nat-forgot"] = f"{plural(failed, 'new connection')} got no answer either"
    else:
        undecided["nat-forgot"] = (
            "Open a new connection to it, or capture at its side: a firewall that lost its state looks the same."
        )
    first, retransmissions = silences[0], sum(each.attempts for each in silences)
    is_server = first.side == first.connection.client_side
    return Match(
        certainty="likely" if undecided else "proven",
        place="server" if is_server else "client",
        flows=[each.flow for each in silences],
        failed=len(silences) + failed,
        waited_ns=waits_of(silences),
        frames=silent_cited(silences),
        filter=filter_of(each.connection for each in silences),
        proof=f"{plural(retransmissions, 'retransmission')}, each after twice the pause before, and no packet came back",
        excluded=excluded,
        undecided=undecided,
        end=silent_end(silences),
        when=" in mid-connection",
        repeats=plural(retransmissions, "retransmission"),
        silent=times_str([each.silent_ns for each in silences]),
        beside=f", nor did {plural(failed, 'new connection')}" if failed else "",
        host=first.connection.end(1 - first.side)[0],
    )


def is_ladder(row: DirectionRow) -> bool:
    """Returns whether an end that was captured alone repeated one segment in pauses that double."""
    life_ns = (row["last_ns"] or 0) - (row["first_ns"] or 0)
    repeats = row["retransmissions"] or 0
    return (
        repeats >= LADDER_REPEATS
        and repeats + 1 == (row["data_packets"] or 0) == row["packets"]
        and not row["syns"]
        and life_ns > 0
        and (row["idle_ns_max"] or 0) >= LADDER_SHARE * life_ns
    )


def repeating_alone(case: Case) -> Matches:
    """Yields flows of which the capture has one end alone, which repeats itself without success."""
    for number, _ in case.transfers.flow_counts["one_way"][:200]:
        connection = case.connections[number]
        row = next((row for row in connection.directions if row["packets"]), None)
        if row is None or connection.flow["protocol"] != "tcp" or not is_ladder(row):
            continue
        life_ns = (row["last_ns"] or 0) - (row["first_ns"] or 0)
        yield Match(
            certainty="likely",
            place="path",
            flows=[number],
            failed=1,
            waited_ns=life_ns,
            frames=[
                Cited(connection.flow["first_frame"], row["first_ns"], number, connection.flow["first_capture"], FIRST),
                Cited(connection.flow["last_frame"], row["last_ns"], number, connection.flow["first_capture"], LAST),
            ],
            filter=flow_filter(connection.flow),
            proof=f"one segment {row['data_packets']} times, the last pause {show_duration(row['idle_ns_max'])} long",
            undecided={"one-direction": "Capture both directions, or at the silent end: do its ACKs leave it?"},
            end=row["destination"],
            when="",
            repeats=f"{plural(row['retransmissions'] or 0, 'retransmission')} of one segment of {flow_str(row)}",
            silent=show_duration(life_ns),
            beside=", each pause twice as long as the one before",
            host=row["destination"],
        )
