# SPDX-License-Identifier: Apache-2.0
"""Connections that were closed or cut while idle, or while their client alone was silent, and the request that met it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.connections import (
    EQUAL,
    EXCHANGE_KINDS,
    ROWS_MAX,
    ending_cited,
    filter_of,
    is_alike,
    largest_groups,
    server_str,
    times_str,
)
from wiretale.analyzer.causes.ended.age import AGE_TEST, of_closes
from wiretale.analyzer.causes.ended.resets import Reset, are_at_once, reset_of
from wiretale.analyzer.causes.ended.timer import FAREWELL_NS, is_closed_by_server
from wiretale.analyzer.findings.evidence import SHOWN, Cited
from wiretale.analyzer.findings.exchanges.exchange_rows import rows_where
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.connections import Connection
    from wiretale.analyzer.findings.model import Words
    from wiretale.analyzer.rows import EndingRow, ExchangeRow

CUT_MIN_NS = 4_500_000_000  # of the pause before a reset; common servers close after 5 s
CLOSED_MIN_NS = 900_000_000  # of the pause before a FIN; a server that closes after each answer has none
ALERT_MOST = 64  # bytes of a TLS record with close_notify
SILENT_MIN_NS = 25_000_000_000  # before a RST that answers no packet; no common device waits for less
NEAR_SHARE = 0.2  # of that silence: shorter pauses without harm say nothing
ALONE_MIN_NS = 60_000_000_000  # of one such RST alone
ANSWER_MAX_NS = 5_000_000_000  # from the first packet after the pause to the reset
TURN_NS = 2_000_000  # in which a client that has a FIN may still send
EFFECTS = (
    *("idle-reset", "reset", "retransmission-unlocated", "timeout-stalls", "keep-alive-unanswered", "lost-downstream"),
    *("request-unanswered", "retransmission-cost"),
)
BEATING_PORTS = frozenset((5671, 5672))  # AMQP, of which both ends send heartbeats
MISSED_MIN_NS = 10_000_000_000  # of the client's silence
SPOKE_SHARE = 0.25  # of that silence, after which the server still sent something


class Cut(NamedTuple):
    """A connection that ended while it was idle."""

    connection: Connection
    reset: EndingRow
    fin: EndingRow | None  # by the same end before
    idle_ns: int  # until the FIN, the first packet after the pause, or the RST if that answers no packet
    is_waiting: bool = False  # the RST answers no packet: it came while a request waited for its answer

    @property
    def reply_ns(self) -> int:
        """From the request to its reset."""
        return self.reset["reply_ns"] or 0

    @property
    def is_race(self) -> bool:
        """Whether the request left before the FIN can have arrived."""
        if self.fin is None:
            return False
        if self.fin["unacked_bytes"]:
            return True
        near_ns = self.connection.rtt_to(1 - self.fin["direction"]) or 0
        return self.fin["late_ns"] is not None and self.fin["late_ns"] <= near_ns + TURN_NS


def closed_idle(connection: Connection, reset: EndingRow, fin: EndingRow) -> Cut | None:
    """Returns a connection that an end closed while it was idle, and that met data; None if it is another one."""
    resumed_ns, pause_ns, closed_ns = connection.flow["pause_until_ns"], connection.flow["pause_ns"], fin["time_ns"]
    met = (fin["unacked_bytes"] or 0) + fin["late_bytes"]
    is_farewell = connection.flow["application"] == "tls" and met <= ALERT_MOST
    if closed_ns is None or not met or is_farewell or fin["direction"] == connection.client_side:
        return None  # a client that closes while it waits gave up
    idle_ns = fin["idle_ns"] or 0
    trip_ns = (connection.flow["handshake_rtt_ns"] or 0) + TURN_NS
    if fin["unacked_bytes"] and resumed_ns is not None and 0 <= closed_ns - resumed_ns <= trip_ns:
        idle_ns = max(idle_ns, (pause_ns or 0) + closed_ns - resumed_ns)  # the request ended the pause
    return Cut(connection, reset, fin, idle_ns) if idle_ns >= CLOSED_MIN_NS else None


def reset_idle(connection: Connection, reset: EndingRow, is_open: bool) -> Cut | None:
    """Returns a connection whose first packet after a pause was reset; None if it is another one. A device may acknowledge the
    request that it resets (`is_open`); a server whose program refuses it resets with a live window or timestamps."""
    flow, time_ns = connection.flow, reset["time_ns"]
    resumed_ns, pause_ns = flow["pause_until_ns"], flow["pause_ns"] or 0
    if time_ns is None or resumed_ns is None or pause_ns < CUT_MIN_NS or flow["pause_direction"] == reset["direction"]:
        return None
    is_stateless = is_open and not reset["window"] and not reset["timestamps"]
    is_wanted = reset["unacked_bytes"] or is_stateless or any(row["keep_alives"] for row in connection.directions)
    is_answer = 0 <= time_ns - resumed_ns <= ANSWER_MAX_NS
    return Cut(connection, reset, None, pause_ns) if is_answer and is_wanted else None


def reset_waiting(connection: Connection, reset: EndingRow, is_open: bool) -> Cut | None:
    """Returns a connection that was reset from the server's side in silence, long after its last packet, while a request waited
    for its answer; None if it is another one."""
    idle_ns = reset["idle_ns"] or 0
    is_silent = idle_ns >= SILENT_MIN_NS and reset["direction"] == connection.server_side
    return Cut(connection, reset, None, idle_ns, True) if is_silent and is_open else None


def cut_of(connection: Connection, endings: Sequence[EndingRow], is_open: bool) -> Cut | None:
    """Returns how an idle connection ended, by the reset of an end that answers a packet after the pause; None if it did not.
    `is_open`: the last request got no answer."""
    reset = next((row for row in endings if row["kind"] == "reset"), None)
    if reset is None:
        return None
    fin = next((row for row in endings if row["kind"] == "fin" and row["direction"] == reset["direction"]), None)
    if fin is not None:
        return closed_idle(connection, reset, fin)
    return reset_idle(connection, reset, is_open) or reset_waiting(connection, reset, is_open)


def cuts(case: Case) -> list[Cut]:
    """Returns the idle connections that ended by a reset which no earlier cause explains."""
    explained, connections = case.flows_of(), case.connections
    resets = connections.endings_with_reset.items()
    requests = connections.open_requests
    ends = (cut_of(connections[flow], endings, flow in requests) for flow, endings in resets if flow not in explained)
    return [cut for cut in ends if cut]


def age_of(case: Case, group: Sequence[Cut]) -> list[int]:
    """Returns the ages of connections at their FIN, if these are as alike as their idle times; [] otherwise."""
    closes = [(cut.connection, cut.fin) for cut in group if cut.fin]
    are_alike = len(closes) == len(group) and is_alike([cut.idle_ns for cut in group])
    return [each.age_ns for each in of_closes(case, closes)] if are_alike else []


def or_age_str(case: Case, group: Sequence[Cut]) -> str:
    """Returns ` (or 120 s after each was opened)`, if the age may be what counts, and is another time; "" otherwise."""
    ages = age_of(case, group)
    is_other = bool(ages) and min(ages) > EQUAL * max(cut.idle_ns for cut in group)
    return f" (or {times_str(ages)} after each was opened)" if is_other else ""


class Missed(NamedTuple):
    """A connection that its server closed."""

    connection: Connection
    last: ExchangeRow  # message of the client
    silent_ns: int  # from then to the close
    spoke_ns: int  # from then to the server's last message


def close_of(case: Case, connection: Connection) -> int | None:
    """Returns when the server closed a connection first, ns; None if it did not."""
    endings = case.connections.endings_of.get(connection.number, [])
    fin = next((row for row in endings if row["kind"] == "fin"), None)
    if fin is not None:
        return fin["time_ns"] if fin["direction"] == connection.server_side else None
    return connection.last_ns if is_closed_by_server(connection) else None


def missed_of(connection: Connection, closed_ns: int, messages: list[ExchangeRow]) -> Missed | None:
    """Returns a connection whose client was silent while its server went on sending, until it closed."""
    before = [row for row in messages if (row["asked_ns"] or 0) < closed_ns]
    if not before:
        return None
    last = before[-1]
    sent_ns = (last["asked_ns"] or 0) + (last["request_ns"] or 0)
    spoke_ns = (last["answered_ns"] or sent_ns) + (last["response_ns"] or 0) - sent_ns
    silent_ns = closed_ns - sent_ns
    is_acked = not connection.directions[connection.server_side]["unacked_bytes"]
    is_timed = silent_ns >= MISSED_MIN_NS and SPOKE_SHARE * silent_ns <= spoke_ns <= silent_ns - FAREWELL_NS
    return Missed(connection, last, silent_ns, spoke_ns) if is_acked and is_timed else None


def messages_on(case: Case, flows: Collection[int]) -> dict[int, list[ExchangeRow]]:
    """Returns the messages of the clients of some connections."""
    messages: dict[int, list[ExchangeRow]] = {flow: [] for flow in flows}
    for row in rows_where(case.transfers, "kind", *EXCHANGE_KINDS) if flows else ():
        if row["flow"] in messages and row["asked_ns"] is not None:
            messages[row["flow"]].append(row)
    return messages


def missed_heartbeats(case: Case) -> list[Missed]:
    """Returns the connections of this kind that no earlier cause explains."""
    explained, attempts = case.flows_of(), case.transfers.attempts
    flows = [flow for flow, port in enumerate(case.transfers.ports) if port in BEATING_PORTS and flow not in explained]
    closed = {
        flow: closed_ns
        for flow in flows[:ROWS_MAX]
        if attempts.is_connection(flow) and (closed_ns := close_of(case, case.connections[flow])) is not None
    }
    messages = messages_on(case, closed)
    ends = (missed_of(case.connections[flow], closed_ns, messages[flow]) for flow, closed_ns in closed.items())
    return [each for each in ends if each]


@cause(
    code="heartbeats-missed",
    title="A broker closes connections without heartbeats",
    sentence="The broker {server} closed {count:connection} of {client} {silent} after the last message of the client, although "
    "it kept sending: {client} {probably}sends no heartbeats, as its program is busy.",
    advice="Let {client} answer heartbeats while it works: long jobs in a thread of their own (pika: `add_callback_threadsafe`), "
    "a client library with a heartbeat thread, or a longer `heartbeat`. The log of {server} says `missed heartbeats`.",
    shows="The server of AMQP closes a connection 10 s or more after the client's last message. Meanwhile it sent messages, at "
    "least until a quarter of that time, which the client's host acknowledged.",
    rivals={
        "idle-timeout": "the connection was not idle: the server sent messages",
        "peer-gone": "the client's host acknowledged what came",
        "closed-by-timer": "the log of the broker names missed heartbeats",
    },
    unknown="Within TLS, whether the server's messages are heartbeats; which time the ends agreed on.",
    explains=EFFECTS,
)
def heartbeats_missed(case: Case) -> Matches:
    groups = largest_groups(
        missed_heartbeats(case),
        lambda each: (each.connection.server, each.connection.end(each.connection.client_side)[0]),
    )
    for (_, client), group in groups:
        connections, silences = [each.connection for each in group], [each.silent_ns for each in group]
        spoke = show_duration(max(each.spoke_ns for each in group))
        server = server_str(connections)
        yield Match(
            certainty="likely",
            place="client",
            flows=[connection.number for connection in connections],
            failed=len(group),
            attempts=max(len(group), len(case.connections.to_server(connections[0].server))),
            frames=[
                Cited(
                    each.last["asked_frame"] or 0, each.last["asked_ns"], each.connection.number, each.last["capture"]
                )
                for each in group[:SHOWN]
            ],
            filter=filter_of(connections),
            proof=f"{plural(len(group), 'FIN')} of the server, which had sent messages until {spoke} after the client's last",
            excluded={"idle-timeout": "the server sent messages", "peer-gone": "the client's host acknowledged them"},
            undecided={"closed-by-timer": f"the log of {server}: does it say 'missed heartbeats'?"},
            server=server,
            client=client,
            count=len(group),
            silent=times_str(silences),
        )


@cause(
    code="close-race",
    title="Requests met the close of an idle connection",
    sentence="The server {server} closed idle connections after {idle}{or_age}, and {met} of {total:request} {were} already on "
    "the way: {they} reset.",
    advice="Let the server keep idle connections longer than the client does (nginx `keepalive_timeout 75s`), and let the "
    "client repeat idempotent requests (RFC 9110 section 9.2.2).",
    shows="After a pause of 1 s or more, the server's FIN does not acknowledge a request that was sent before the FIN can "
    "have arrived. A RST of the server answers that request.",
    rivals={
        "idle-timeout": "the request leaves before the FIN can arrive",
        "reset-by-peer": "a FIN comes first",
        "age-limit": "the idle times are alike, or the ages are not",
    },
    unknown="At the client's side of a long path, how long before the FIN the request left.",
    explains=EFFECTS,
)
def close_race(case: Case) -> Matches:
    races = [cut for cut in cuts(case) if cut.is_race]
    for server, group in largest_groups(races, lambda cut: cut.connection.server):
        total = max(case.connections.requests_to(server), len(group))
        yield Match(
            certainty="proven",
            place="server",
            flows=[cut.connection.number for cut in group],
            failed=len(group),
            attempts=total,
            frames=[ending_cited(row) for cut in group[:SHOWN] for row in (cut.fin, cut.reset) if row],
            filter=filter_of(cut.connection for cut in group),
            proof="the FIN does not acknowledge the request, which was on the way",
            excluded={
                "idle-timeout": "the request left before the FIN arrived",
                "reset-by-peer": "its FIN came before the RST",
            },
            undecided={"age-limit": AGE_TEST} if age_of(case, group) else {},
            server=server_str([cut.connection for cut in group]),
            idle=times_str([cut.idle_ns for cut in group]),
            or_age=or_age_str(case, group),
            met=len(group),
            total=total,
            were="was" if len(group) == 1 else "were",
            they="it was" if len(group) == 1 else "they were",
        )


@cause(
    code="idle-timeout",
    title="Idle connections cut after a timeout",
    sentence="{who} {probably}{cut} {connections} after {idle}{or_age}: {met}{harmless}.",
    advice="Send keep-alives sooner (`net.ipv4.tcp_keepalive_time=120`, SO_KEEPALIVE), let the client drop pooled connections "
    "before that time, or raise the idle timeout (AWS NLB: `tcp.idle_timeout.seconds`).",
    shows="The first packet after a pause of 4.5 s or more gets a RST within 5 s. Or it follows a FIN that had arrived at "
    "least 1 s into a pause. Or a RST comes 25 s or more (60 s of one alone) after the last packet, while a request waits, each "
    "time after the same silence. No connection to that server survived a pause as long.",
    rivals={
        "nat-forgot": "nothing at all comes back",
        "close-race": "the request leaves before the FIN can arrive",
        "reset-by-peer": "the length of the pause separates requests that are reset from those that are answered",
        "server-restarted": "the pauses have a common length, or a connection that was in use survived",
        "age-limit": "the idle times are alike, or the ages are not",
    },
    unknown="Without another TTL or too soon a reply, whether the server or a device before it cut the connection.",
    explains=EFFECTS,
)
def idle_timeout(case: Case) -> Matches:
    late = [cut for cut in cuts(case) if not cut.is_race]
    for (server, is_waiting), group in largest_groups(late, lambda cut: (cut.connection.server, cut.is_waiting)):
        if is_waiting and not are_timed(group):
            continue
        closed = {cut.connection.number: cut.idle_ns for cut in group if cut.fin}
        harmless = case.connections.harmless_ns(server, {cut.connection.number for cut in group}, closed)
        victims = [cut for cut in group if cut.idle_ns > harmless]
        if victims:
            yield timeout_match(case, victims, harmless)


def who_str(victims: Sequence[Cut], resets: Sequence[Reset]) -> tuple[str, bool]:
    """Returns who cut the connections, and whether that is known."""
    server, first = server_str([cut.connection for cut in victims]), victims[0]
    if any(reset.is_forged for reset in resets):
        return f"A device before {server} ({resets[0].signs_str})", True
    if all(cut.fin for cut in victims):
        return f"The server {server}", True
    if first.reset["direction"] == first.connection.client_side:
        return f"The client of {server}, or a device before it,", False
    return f"A load balancer, NAT or firewall before {server}, or the server itself,", False


def met_str(victims: Sequence[Cut], fast: str) -> str:
    """Returns what the requests met."""
    count = len(victims)
    if victims[0].is_waiting:
        waited = (
            "a request still waited for its answer" if count == 1 else f"{count} requests still waited for an answer"
        )
        return f"{waited} when a RST came that answers no packet"
    if victims[0].fin is None:
        first = "the first packet after the pause was" if count == 1 else f"the first packets after {count} pauses were"
        return f"{first} reset within {fast}"
    where = "a connection" if count == 1 else "connections"
    return f"{plural(count, 'request')} went out on {where} that it had closed before and {'was' if count == 1 else 'were'} reset"


def idle_words(victims: Sequence[Cut], closed: bool) -> Words:
    """Returns the words for what was cut, and after how long."""
    idles = [cut.idle_ns for cut in victims]
    return {
        "cut": "closes" if closed else "cut",
        "connections": "idle connections" if len(victims) > 1 or closed else "the idle connection",
        "idle": times_str(idles) if is_alike(idles) else f"{show_duration(min(idles))} or less",
    }


def certainty_fields(is_sure: bool, has_one_age: bool) -> Words:
    """Returns certainty and rivals."""
    by_age = {"age-limit": AGE_TEST} if has_one_age else {}
    return {
        "certainty": "proven" if is_sure else "likely",
        "excluded": {"nat-forgot": "a RST came back", "close-race": "the request came after the close"},
        "undecided": by_age | ({} if is_sure else {"reset-by-peer": "Capture at the server: does it send the RST?"}),
    }


def are_timed(waiting: Sequence[Cut]) -> bool:
    """Returns whether a timer explains that connections were reset in silence: the silences are alike, and the RSTs did not come
    in one moment."""
    if len(waiting) == 1:
        return waiting[0].idle_ns >= ALONE_MIN_NS
    return is_alike([cut.idle_ns for cut in waiting]) and not are_at_once(
        [reset_of(cut.connection, cut.reset) for cut in waiting]
    )


def spared_str(victims: Sequence[Cut], harmless: int) -> str:
    """Returns which pauses did no harm, without its first letter; "" if they are too short to tell something."""
    is_near = harmless >= NEAR_SHARE * victims[0].idle_ns or not victims[0].is_waiting
    return f"auses of up to {show_duration(harmless)} did no harm" if harmless and is_near else ""


def timeout_match(case: Case, victims: Sequence[Cut], harmless: int) -> Match:
    """Returns the match of connections to one server that were cut after a pause."""
    resets = [reset_of(cut.connection, cut.reset) for cut in victims]
    who, is_known = who_str(victims, resets)
    closed, count = all(cut.fin for cut in victims), len(victims)
    fast = show_duration(max(cut.reply_ns for cut in victims))
    spared = spared_str(victims, harmless)
    besides = f", while p{spared}" if spared else ""
    return Match(
        **certainty_fields(is_known and (count > 1 or bool(harmless)), bool(age_of(case, victims))),
        place="server" if closed else "device",
        flows=[cut.connection.number for cut in victims],
        failed=count,
        attempts=max(case.connections.requests_to(victims[0].connection.server), count),
        frames=[ending_cited(cut.reset) for cut in victims[:SHOWN]],
        filter=filter_of(cut.connection for cut in victims),
        proof=f"RST after silence alone{besides}"
        if victims[0].is_waiting
        else f"RST {fast} after the first packet that followed the pause{besides}",
        who=who,
        **idle_words(victims, closed),
        or_age=or_age_str(case, victims),
        met=met_str(victims, fast),
        harmless=f". P{spared}" if spared else "",
    )
