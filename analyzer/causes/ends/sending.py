# SPDX-License-Identifier: Apache-2.0
"""Senders that send less than the path would take: an application, a send buffer, slow start."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Certainty, Match, Matches, cause
from wiretale.analyzer.causes.ends.talk import is_http2_window, is_web, middle, parts_str, talks
from wiretale.analyzer.causes.ends.windows import fills_window, limited_transfers, transfers_of
from wiretale.analyzer.causes.path.pauses import held_up_ns
from wiretale.analyzer.findings.exchanges.exchange_rows import rows_numbered
from wiretale.analyzer.findings.model import Words, endpoint_str
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_rate, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.findings.transfers import Transfer
    from wiretale.analyzer.rows import ExchangeRow

OWN_WINDOWS = ("tls", "http2", "quic")  # protocols with a window of the application
OWN_WINDOW_PORTS = (22, 445, 2049)  # SSH, SMB, NFS
LEAVES_MIN, LEAVES_OF_FLIGHT, LEAVE_BYTES = 8, 0.5, 300  # small messages of a receiver; of each flight; bytes of one
TRIP_LEAST_NS, TRIPS_LEAST_NS, TRIPS_SHARE = 5_000_000, 1_000_000_000, 0.4  # of a path; of its round trips in all
ROUNDS_MIN, FULL_ROUNDS, WINDOW_ROOM = 10, 0.6, 1.5  # round trips; of which are full; of the flight
OPEN_MOST, OPEN_WITHIN = 64, 0.15  # requests
BY_DEFAULT = ", as HTTP/2 does by default (65,535 bytes)"
UPLOAD_MIN, UPLOAD_MIN_NS = 1_000_000, 1_000_000_000  # bytes and time of a request
IDLE_SHARE = 0.5  # of the time in which the path did not stand still
SLOW_START_NS = 1_000_000_000  # over all flows: less is a note
BEYOND_SEEN = 2.0  # the bytes of a round trip, in those that the capture sees in flight


def sender_str(transfer: Transfer) -> str:
    """Returns the sender and its port."""
    return endpoint_str(transfer.row["source"], transfer.row["source_port"])


def may_wait_for_peer(case: Case, transfer: Transfer) -> bool:
    """Returns whether the protocol may have a window of its own, whose messages the receiver sends."""
    flow = case.flow(transfer.row["flow"])
    ports = (flow["source_port"], flow["destination_port"])
    answers = (transfer.back["data_packets"] or 0) * 20 >= (transfer.row["data_packets"] or 0)
    return flow["application"] in OWN_WINDOWS or any(port in OWN_WINDOW_PORTS for port in ports) or answers


def leaves_of(transfer: Transfer, level: int) -> int:
    """Returns how many small messages the receiver sent, if there is at least one for two flights of this size; else 0."""
    count, size = transfer.back["data_packets"] or 0, transfer.back["payload_bytes"] or 0
    flights = (transfer.row["unique_bytes"] or 0) / max(level, 1)
    is_enough = count >= max(LEAVES_MIN, LEAVES_OF_FLIGHT * flights)
    return (
        count if is_enough and size <= LEAVE_BYTES * count and count * 4 <= (transfer.row["data_packets"] or 0) else 0
    )


class Reads(NamedTuple):
    """A bulk transfer in answers to requests of which only so many are open at a time."""

    transfer: Transfer
    open: int
    unit: float  # bytes of an answer
    spent_ns: float  # in round trips

    def is_whole(self, level: int) -> bool:
        """Returns whether a flight is a whole number of answers."""
        return 2 <= self.open <= OPEN_MOST and abs(level / self.unit - self.open) <= OPEN_WITHIN


def reads_of(case: Case, transfer: Transfer) -> Reads | None:
    """Returns a transfer that is held by the number of requests for it; None if it is not."""
    row, trip_ns = transfer.row, transfer.path_rtt_ns or 0
    level, size = row["flight_max"] or 0, row["unique_bytes"] or 0
    leaves = leaves_of(transfer, level) if level and trip_ns >= TRIP_LEAST_NS and not transfer.lost else 0
    if not leaves or level * WINDOW_ROOM > (transfer.back["window_max"] or 0):
        return None
    reads = Reads(
        transfer, round(level * leaves / size), size / leaves, case.transfers.turns.account(row["flow"])["path"]
    )
    rounds = transfer.duration_ns / trip_ns
    is_full = rounds >= ROUNDS_MIN and FULL_ROUNDS * level * rounds <= size
    return reads if is_full and reads.is_whole(level) and is_of_round_trips(case, transfer, reads.spent_ns) else None


def is_of_round_trips(case: Case, transfer: Transfer, spent_ns: float) -> bool:
    """Returns whether a time in round trips is much of the time of a transfer."""
    whole_ns = math.fsum(case.transfers.turns.account(transfer.row["flow"]).values())
    return spent_ns >= max(TRIPS_LEAST_NS, TRIPS_SHARE * whole_ns)


def held_reads(case: Case) -> Matches:
    """Yields transfers that are held by the number of requests for them, though each request comes when an answer is there, so
    that the sender never stops at one level."""
    explained = case.flows_of() | {
        flow for each in case.findings("send-buffer-limited") for flow, _ in each.finding.flows
    }
    for transfer in case.transfers.tcp():
        reads = reads_of(case, transfer) if transfer.row["flow"] not in explained else None
        if reads is None:
            continue
        row, level, unit = transfer.row, transfer.row["flight_max"] or 0, show_bytes(reads.unit)
        yield Match(
            certainty="likely",
            place="client" if row["direction"] != transfer.flow["client"] else "server",
            flows=[transfer.side],
            waited_ns=reads.spent_ns,
            proof=f"the flight is {show_bytes(level)} at most: {reads.open} times the {unit} that pass for each small message",
            excluded={
                "small-window": f"the window was {show_bytes(transfer.back['window_max'] or 0)}",
                "serial-requests": f"{reads.open} are open",
            },
            undecided={"send-buffer": f"`ss -ti` at {row['source']}: no sndbuf_limited"},
            **window_words(transfer, level, f" ({reads.open} requests of {unit})"),
        )


def window_words(transfer: Transfer, size: float, which: str) -> Words:
    """Returns the words for a window of the application, and what it makes of the path."""
    return {
        "receiver": transfer.row["destination"],
        "sender": sender_str(transfer),
        "most": show_bytes(size),
        "which": which,
        "rate": show_rate(transfer.row["goodput_bps"] or 0),
        "rtt": show_duration(transfer.path_rtt_ns or 0),
    }


def granted_windows(case: Case) -> Matches:
    """Yields transfers of which the first window of HTTP/2 passes for each small message of the client."""
    sides = {transfer.side: transfer for transfer in case.transfers.tcp()}
    for talk in (each for each in talks(case) if each.count >= ROUNDS_MIN and each.is_of_windows):
        flow, size = talk.flows[0], middle(talk.times("response_bytes"))
        transfer = sides.get((flow["flow"], 1 - (flow["client"] or 0)))
        if transfer is None or len(talk.flows) > 1 or not transfer.path_rtt_ns:
            continue
        window = transfer.back["window_max"] or 0
        if size * WINDOW_ROOM > window or not is_of_round_trips(case, transfer, talk.parts["path"]):
            continue
        asked = show_bytes(middle(talk.times("request_bytes")))
        yield Match(
            certainty="likely",
            place="client",
            flows=[transfer.side],
            waited_ns=talk.parts["path"],
            frames=talk.cited(),
            proof=f"{show_bytes(size)} pass for each message of {asked}, {talk.count:,} times",
            excluded={
                "small-window": f"the window was {show_bytes(window)}",
                "serial-requests": f"{asked} are too short for a request",
            },
            undecided={"send-buffer": f"`ss -ti` at {transfer.row['source']}: no sndbuf_limited"},
            **window_words(transfer, size, BY_DEFAULT),
        )


@cause(
    code="application-window",
    title="A window of the application is the limit",
    sentence="The program at {receiver} {probably}lets only {most} be under way at a time{which}: {sender} stops there until a "
    "small message of the receiver comes. That is {rate} at a round trip of {rtt}, though TCP's windows and the path are free.",
    advice="Raise that window at {receiver}: HTTP/2 stream and connection window (`SETTINGS_INITIAL_WINDOW_SIZE`, gRPC "
    "flow control, nginx `http2_body_preread_size`), SSH (HPN-SSH), SMB credits, more or larger reads (`sftp -R 256 -B 262144`, "
    "NFS `rsize`); or use several connections.",
    shows="As send-buffer, and the receiver sends a small message (at most 300 bytes on average) at least once for two "
    "flights, as programs do that grant leave to send. A program that only receives sends none. Or it requests parts of a "
    "file, so many at a time. Over at least 10 round trips, the flight never exceeds a whole number (at most 64) of the bytes "
    "per small message, and fills at least 60% of them without a loss. Or the 65,535 bytes of HTTP/2 pass for each message of "
    "at most 100 bytes. The receive window is half as large again, and at least 40% of the time is round trips.",
    rivals={
        "send-buffer": "the receiver's messages come with the flights",
        "small-window": "the window of TCP has room",
        "serial-requests": "the flights follow one another in one answer",
    },
    unknown="Within TLS and SSH, what the messages of the receiver say.",
    explains=("path-limited", "slow-start", "sender-idle", "window-full"),
)
def application_window(case: Case) -> Matches:
    for each, transfer in limited_transfers(case, "send-buffer-limited"):
        level = transfer.row["send_buffer_bytes"] or 0
        leaves = leaves_of(transfer, level)
        if not leaves or fills_window(case, transfer):
            continue
        flow = case.flow(transfer.row["flow"])
        is_http2 = is_web(flow) and is_http2_window(level)
        yield Match(
            certainty="likely",
            place="client" if transfer.row["direction"] != flow["client"] else "server",
            findings=[each],
            flows=[transfer.side],
            waited_ns=transfer.times["send_buffer"],
            severity="info" if each.finding.severity == "info" else None,
            proof=f"the flight returns to {show_bytes(level)}, and the receiver sent {plural(leaves, 'small message')}",
            excluded={
                "send-buffer": f"{plural(leaves, 'message')} of the receiver, one for two flights or more",
                "small-window": f"the window was {show_bytes(transfer.back['window_max'] or 0)} at most",
            },
            undecided={"serial-requests": f"`ss -ti` at {transfer.row['source']}: no sndbuf_limited"},
            **window_words(transfer, level, BY_DEFAULT if is_http2 else ""),
        )
    yield from held_reads(case)
    yield from granted_windows(case)


def level_of(transfer: Transfer) -> float:
    """Returns the bytes that a sender with a small buffer has in flight: those of a round trip at its rate, if the capture at the
    receiver sees much less without an ACK."""
    level = transfer.row["send_buffer_bytes"] or 0
    carried = (transfer.row["goodput_bps"] or 0) / 8 * (transfer.path_rtt_ns or 0) / 1e9
    return carried if carried > BEYOND_SEEN * level else level


@cause(
    code="send-buffer",
    title="Small send buffer",
    sentence="{sender} {probably}has a send buffer of only {most}, which holds it to {rate} at a round trip of {rtt}, "
    "though window, path and queue are free. It waited {waited} for room.",
    advice="Do not set SO_SNDBUF at {sender}, and check `net.ipv4.tcp_wmem`; `ss -ti` there shows sndbuf_limited.",
    shows="The flight stays at one level for at least eight round trips, below the window, without loss or a queue. It leaves "
    "a gap in each round trip, for at least 10% of the time (finding send-buffer-limited). A congestion window would grow.",
    rivals={
        "app-limited": "ACKs release the next data",
        "small-window": "the window has room",
        "slow-start": "the flight does not grow",
        "bottleneck": "each round trip has a gap, and no queue stands",
    },
    unknown="The application may have a window of its own (SSH, HTTP/2, SMB), which looks the same if its messages are "
    "encrypted.",
    explains=("path-limited", "slow-start", "sender-idle", "window-full"),
)
def send_buffer(case: Case) -> Matches:
    for each, transfer in limited_transfers(case, "send-buffer-limited"):
        if fills_window(case, transfer):
            continue
        waits_for_peer = may_wait_for_peer(case, transfer)
        level = level_of(transfer)
        is_seen = level == transfer.row["send_buffer_bytes"]
        certainty: Certainty = "proven" if is_seen and not waits_for_peer else "likely"
        yield Match(
            certainty=certainty,
            place="client" if transfer.row["direction"] == case.flow(transfer.row["flow"])["client"] else "server",
            findings=[each],
            flows=[transfer.side],
            waited_ns=transfer.times["send_buffer"],
            severity="info" if each.finding.severity == "info" else None,
            proof=f"the flight returns to {show_bytes(level)} in each round trip, then a gap until an ACK",
            excluded={
                "app-limited": "ACKs release the next data each time",
                "small-window": f"the window was {show_bytes(transfer.back['window_max'] or 0)} at most",
                "slow-start": f"the flight stays at {show_bytes(level)}",
            },
            undecided={
                "app-limited": f"`ss -ti` at {transfer.row['source']}: sndbuf_limited, or a window of the application"
            }
            if certainty == "likely"
            else {},
            sender=sender_str(transfer),
            most=show_bytes(level),
            rate=show_rate(transfer.row["goodput_bps"] or 0),
            rtt=show_duration(transfer.path_rtt_ns or 0),
            waited=parts_str(transfer.times["send_buffer"], transfer.waited_ns),
        )


@cause(
    code="app-limited",
    title="The sending application is the limit",
    sentence="The application at {sender} is the limit: it had nothing to send for {waited}, and neither loss nor window nor "
    "path held it back.",
    advice="Profile the program that sends at {sender}: its disk (`iostat -x`), its CPU (`perf top`), its own rate limit.",
    shows="For at least half of the time, the sender had no data to send, although all was acknowledged or the window had "
    "room (finding sender-idle). It was a transfer of at least 1 MB in one direction, or one request or answer of that size.",
    rivals={
        "send-buffer": "no ACK releases the next data",
        "slow-server": "no request is open",
        "small-window": "the window had room",
    },
    unknown="Why: disk, CPU, or a rate that the program keeps on purpose (`--limit-rate`, video).",
    explains=("slow-start", "path-limited"),
)
def app_limited(case: Case) -> Matches:
    for each, transfer in transfers_of(case, "sender-idle"):
        times, held_ns = transfer.times, held_up_ns(case, transfer)
        paused_ns = times["pause"] - held_ns
        if held_ns and paused_ns < IDLE_SHARE * (transfer.duration_ns - held_ns):
            continue  # at the receiver, a path that stands still looks like a pause
        yield Match(
            certainty="proven",
            place="client" if transfer.row["direction"] == case.flow(transfer.row["flow"])["client"] else "server",
            severity="warning",
            findings=[each],
            flows=[transfer.side],
            waited_ns=paused_ns,
            proof="each pause began when the sender had sent all that it had, and no ACK ended it",
            excluded={
                "send-buffer": f"it waited {show_duration(times['send_buffer'])} for room in its send buffer",
                "small-window": f"and {show_duration(times['window'])} for the window",
                "slow-server": "data goes one way, no request is open",
            },
            sender=sender_str(transfer),
            waited=parts_str(paused_ns, transfer.duration_ns),
        )
    yield from slow_messages(case)


class Message(NamedTuple):
    """A long request or answer, and the time in which its sender paused within it."""

    flow: int
    direction: int  # of its sender
    sent_ns: int
    paused_ns: int


def long_rows(case: Case) -> list[ExchangeRow]:
    """Returns the exchanges of judged flows that have a long message: they are few of many."""
    exchanges, numbers = case.trace.exchanges, set[int]()
    for message in ("request", "response"):
        long = {*exchanges._rows_where(f"{message}_bytes", UPLOAD_MIN)}
        numbers |= long.intersection(exchanges._rows_where(f"{message}_ns", UPLOAD_MIN_NS) if long else ())
    rows = case.transfers.without_legs(rows_numbered(case.transfers, sorted(numbers)))
    return [row for row in rows if row["kind"] in ("turn", "http")]


def long_messages(case: Case) -> Iterator[Message]:
    """Yields the long requests and answers in which the sender paused."""
    explained = case.flows_of()
    of_answers = explained - case.flows_of("slow-server")  # one that begins late may go on slowly
    for row in long_rows(case):
        flow, direction = row["flow"], row["direction"] or 0
        sizes = (row["request_bytes"], row["response_bytes"])
        times = ((row["request_ns"], row["request_pause_ns"]), (row["response_ns"], row["response_pause_ns"]))
        for side, (size, (sent_ns, paused_ns)) in enumerate(zip(sizes, times, strict=True)):
            is_long = (size or 0) >= UPLOAD_MIN and (sent_ns or 0) >= UPLOAD_MIN_NS
            if flow is not None and flow not in (of_answers if side else explained) and is_long:
                yield Message(flow, direction ^ side, sent_ns or 0, paused_ns or 0)


def slow_messages(case: Case) -> Matches:
    """Yields long requests and answers in which the sender itself paused: nobody waits for an answer meanwhile."""
    for flow, direction, sent_ns, paused_ns in long_messages(case):
        sender = case.direction(flow, direction)
        idle_ns = min(paused_ns, sender["time_pause_ns"] or 0)
        idle_ns -= round(
            sum(held_up_ns(case, each) for each in case.transfers.limited() if each.side == (flow, direction))
        )
        if 2 * idle_ns >= sent_ns:
            yield Match(
                certainty="proven",
                place="client" if direction == case.flow(flow)["client"] else "server",
                severity="warning",
                flows=[(flow, direction)],
                waited_ns=idle_ns,
                proof=f"all was acknowledged in its pauses, {show_duration(idle_ns)} of {show_duration(sent_ns)}",
                excluded={
                    "small-window": f"it waited {show_duration(sender['time_window_ns'] or 0)} for the window",
                    "slow-server": "the request was not complete, or the answer had begun",
                },
                sender=endpoint_str(sender["source"], sender["source_port"]),
                waited=parts_str(idle_ns, sent_ns),
            )


@cause(
    code="slow-start",
    title="Slow start",
    sentence="{transfers} {spent} in slow start: at a round trip of {rtt}, {size} pass before the congestion window has "
    "grown to what the path carries.",
    advice="Reuse connections, keep them warm (`net.ipv4.tcp_slow_start_after_idle=0`), or raise the initial window "
    "(`initcwnd 20`).",
    shows="The flight doubles from its initial window, without a loss or a queue, for 30% of the time or more (finding "
    "slow-start). Below 1 s in all it is a note.",
    rivals={
        "app-limited": "ACKs release the data",
        "small-window": "the window has room",
    },
    unknown="Whether the path carries more at once.",
)
def slow_start(case: Case) -> Matches:
    pairs = [(each, transfer) for each, transfer in limited_transfers(case, "slow-start") if not transfer.lost]
    if not pairs:
        return
    waited_ns = math.fsum(transfer.times["slow_start"] for _, transfer in pairs)
    saved_ns = math.fsum(each.finding.waited_ns or 0 for each, _ in pairs)
    whole_ns = math.fsum(transfer.waited_ns for _, transfer in pairs)
    largest = max((transfer for _, transfer in pairs), key=lambda transfer: transfer.times["slow_start"])
    yield Match(
        certainty="proven",
        place="path",
        severity=None if saved_ns >= SLOW_START_NS else "info",
        findings=[each for each, _ in pairs],
        flows=[transfer.side for _, transfer in pairs],
        waited_ns=waited_ns,
        saving_ns=saved_ns,
        members=len(pairs),
        proof=f"the flight doubles each round trip for {show_share(waited_ns, whole_ns)} of the time, and nothing is lost",
        excluded={
            "app-limited": f"the application paused for {show_duration(largest.times['pause'])}",
            "small-window": f"the window held it back for {show_duration(largest.times['window'])}",
        },
        transfers=plural(len(pairs), "transfer"),
        spent=f"spent {parts_str(waited_ns, whole_ns)}",
        rtt=show_duration(largest.path_rtt_ns or 0),
        size=show_bytes(largest.row["unique_bytes"] or 0),
    )
