# SPDX-License-Identifier: Apache-2.0
"""Senders that wait for an ACK which the other end delays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.ends.talk import Talk, middle, parts_str, talks
from wiretale.analyzer.findings.model import Words, endpoint_str
from wiretale.analyzer.findings.shared.places import waits_of
from wiretale.analyzer.units import plural, show_bytes, show_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.rows import DirectionRow

SINGLES_MIN, OPTIONS_BYTES = 8, 12  # full segments, one after the other; their timestamps
FULL = 0.9  # of a segment, on average: what waits is no short segment
PIECES = "writes messages in small pieces and holds each next piece back until the last is acknowledged (Nagle)"
TAILS = "holds the last, short piece of its messages back until the full segments before it are acknowledged (Nagle)"
SINGLES = "waits for the ACK of each segment before it sends the next (a small stack with one buffer, or Nagle)"
SMALL_MSS = 1_220  # of IPv6; hosts take more
ONE_BUFFER = (
    " If it has one buffer (uIP), split segments in two (UIP_SPLIT), so that each pair is acknowledged at once."
)
TAIL_SHARE = 0.5  # of a full segment, the mean of messages of full segments and a tail
#: delayed-ACK timers in use, the shortest and the longest wait for one, ms: Linux; Windows and BSD
TIMERS_MS = ((40, 30, 60), (200, 150, 240))
MS = 1_000_000
TRIP_MIN_NS, TRIP_LEAST, TRIP_MOST, TRIP_ROOM_NS = 5 * MS, 0.98, 1.1, MS  # round trips, and how long a piece is held
TRIPS_MIN, TRIPS_OF_SPLIT, TRIPS_OF_ALL = 8, 0.8, 0.5  # messages; of those in pieces; of all
TRIP_COST = 0.15  # of the time from request to answer
HELD_MIN_NS, HELD_SHARE, ANSWERS_MIN = 120_000_000, 0.1, 3  # as of finding delayed-ack; answers that were held back


def delayed(case: Case) -> Iterator[tuple[Numbered, DirectionRow, DirectionRow]]:
    """Yields the findings of delayed ACKs with the direction whose data waited, and the other."""
    for each in case.findings("delayed-ack"):
        flow, direction = each.finding.flows[0]
        if direction is not None:
            yield each, case.direction(flow, direction), case.direction(flow, 1 - direction)


def is_full(row: DirectionRow, back: DirectionRow) -> bool:
    """Returns whether all segments of a direction are full, so that Nagle's algorithm holds none. If there is one at a time, it
    must be as large as the ends permit: a shorter one would be held."""
    unit, flight = row["wire_mss"] or row["segment_max"] or 0, row["flight_max"] or 0
    are_full = (row["unique_bytes"] or 0) >= FULL * unit * (row["data_packets"] or 0)
    permitted = min(row["mss"] or 0, back["mss"] or 0)
    is_whole = flight >= permitted - OPTIONS_BYTES > 0 and (row["data_packets"] or 0) >= SINGLES_MIN
    return are_full and unit > 0 and (flight > unit or is_whole)


def is_single(row: DirectionRow) -> bool:
    """Returns whether no two segments of a direction are in flight together."""
    return (row["flight_max"] or 0) <= (row["wire_mss"] or row["segment_max"] or 0)


def most_str(row: DirectionRow) -> str:
    """Returns the most that a direction has in flight: `4.38 kB`, `one segment (1.46 kB)`."""
    most = show_bytes(row["flight_max"] or 0)
    return f"one segment ({most})" if is_single(row) else most


def mean_segment(row: DirectionRow) -> float:
    """Returns the mean size of the segments of a direction."""
    return (row["unique_bytes"] or 0) / max(row["data_packets"] or 1, 1)


class Timer(NamedTuple):
    """How long a receiver delays ACKs."""

    text: str
    is_usual: bool  # one that systems have


def usual_timer(waited_ns: float) -> int | None:
    """Returns the delayed-ACK timer in use that a wait fits, ms; None if none does."""
    return next((timer for timer, least, most in TIMERS_MS if least * MS <= waited_ns <= most * MS), None)


def timer_of(case: Case, row: DirectionRow) -> Timer:
    """Returns the timer of the receiver: `40 ms`, or `up to 67 ms`, the longest wait, if that is none in use."""
    longest = next(iter(waits_of(case.transfers, row, "delayed_ack")), None)
    ends = [packet.time_ns for packet in longest or () if packet and packet.time_ns is not None]
    trips = (case.direction(row["flow"], side)["rtt_ns_min"] or 0 for side in (0, 1))  # to both ends
    longest_ns = max(max(ends, default=0) - min(ends, default=0) - sum(trips), 0)
    usual = usual_timer(longest_ns)
    return Timer(f"{usual} ms" if usual else f"up to {show_duration(longest_ns)}", bool(usual))


def delayed_ns(rows: Sequence[DirectionRow]) -> int:
    """Returns the time in which directions waited for delayed ACKs."""
    return sum(row["time_delayed_ack_ns"] or 0 for row in rows)


def words_of(case: Case, row: DirectionRow, *more: DirectionRow) -> Words:
    """Returns the words that both causes have, of one connection or several between the same two hosts."""
    rows = (row, *more)
    life_ns = sum(sum(case.transfers.turns.account(each["flow"]).values()) for each in rows)
    waited = parts_str(delayed_ns(rows), life_ns)
    return {
        "sender": endpoint_str(row["source"], row["source_port"]),
        "receiver": endpoint_str(row["destination"], None if more else row["destination_port"]),
        "timer": timer_of(case, row).text,
        "waited": f"{waited} of {plural(len(rows), 'connection')}" if more else waited,
    }


@cause(
    code="delack-tail",
    title="Delayed ACK of the last segment",
    sentence="{sender} can have only {most} in flight, and {receiver} delays the ACK of {segment} by {timer}: "
    "{waited} were spent waiting for such ACKs.",
    advice="Give {sender} a larger send buffer (no SO_SNDBUF) or window, or turn off delayed ACKs at the receiver (Windows "
    "`TcpAckFrequency=1`, Linux route `quickack 1`).",
    shows="As nagle-delack, but all segments are full (90% of the segment size on average). No short segment is held, so the "
    "limit is the sender's. A device with a single buffer sends one full segment at a time, at least eight times.",
    rivals={
        "nagle-delack": "no short segment is held back: all are full",
        "tail-loss": "nothing is repeated",
        "zero-window": "the window stays open",
    },
    unknown="Whether the send buffer or a window of the application is the limit.",
    explains=("send-buffer-limited", "window-full"),
)
def delack_tail(case: Case) -> Matches:
    for each, row, back in delayed(case):
        if is_full(row, back):
            yield Match(
                certainty="proven",
                place="server" if row["direction"] == case.flow(row["flow"])["client"] else "client",
                findings=[each],
                flows=[(row["flow"], row["direction"])],
                waited_ns=row["time_delayed_ack_ns"],
                saving_ns=row["time_delayed_ack_ns"],
                proof=f"{show_bytes(row['flight_max'] or 0)} in flight, then a pause until a pure ACK, then data at once",
                excluded={
                    "nagle-delack": "all segments are full",
                    "tail-loss": f"{row['retransmissions'] or 0:,} retransmissions",
                    "zero-window": f"closed for {show_duration(back['zero_window_ns'] or 0)}",
                },
                most=most_str(row),
                segment="a single segment" if is_single(row) else "an odd last segment",
                **words_of(case, row),
            )


@cause(
    code="nagle-delack",
    title="Nagle's algorithm waits for a delayed ACK",
    sentence="{sender} {writes}, and {receiver} delays that ACK by {timer}. That took {waited}.",
    advice="Set TCP_NODELAY at {sender}, or write each message at once (writev, a buffer, TCP_CORK).{remedy}",
    shows="After short segments, the sender waits at least 30 ms, until a pure ACK releases the next data at once. The waits "
    "are 120 ms and 10% of the time or more (finding delayed-ack). Or at least three answers that fit into one segment come in "
    "pieces, the last when an ACK had come after 40 or 200 ms, and the server had not paused.",
    rivals={
        "delack-tail": "the held segment is short, and not the last of a full flight",
        "slow-server": "the ACK that ends the wait carries no data",
    },
    unknown="Whether the receiver was slow for another reason at those times. Of a sender with an MSS below 1,220 bytes, whether "
    "its stack has a single buffer.",
)
def nagle_delack(case: Case) -> Matches:
    pairs: dict[tuple[str, int | None, str], list[tuple[Numbered, DirectionRow]]] = {}
    for each, row, _ in delayed(case):
        pairs.setdefault((row["source"], row["source_port"], row["destination"]), []).append((each, row))
    for group in pairs.values():
        rows = [row for _, row in group]
        row, waited_ns = rows[0], delayed_ns(rows)
        is_usual = all(timer_of(case, each).is_usual for each in rows)
        yield Match(
            certainty="proven" if is_usual else "likely",
            place="client" if row["direction"] == case.flow(row["flow"])["client"] else "server",
            findings=[each for each, _ in group],
            flows=[(each["flow"], each["direction"]) for each in rows],
            waited_ns=waited_ns,
            saving_ns=waited_ns,
            severity="info" if all(each.finding.severity == "info" for each, _ in group) else None,
            proof="a short segment, a pure ACK after the timer, and the next data right after that, each time",
            excluded={
                "delack-tail": f"segments of {show_bytes(mean_segment(row))} on average",
                **({"slow-server": "the ACK that ends each wait carries no data"} if is_usual else {}),
            },
            undecided={} if is_usual else {"slow-server": "a capture at the receiver: no timer in use is that long"},
            writes=writes_of(row),
            remedy=ONE_BUFFER if is_small(row) else "",
            **words_of(case, *rows),
        )
    yield from held_answers(case)


def is_small(row: DirectionRow) -> bool:
    """Returns whether a sender takes short segments only and has one in flight: a small stack may have a single buffer."""
    return is_single(row) and 0 < (row["mss"] or 0) < SMALL_MSS


def writes_of(row: DirectionRow) -> str:
    """Returns what a sender does that waits for the ACK of a short segment."""
    if is_small(row):
        return SINGLES
    return TAILS if mean_segment(row) >= TAIL_SHARE * (row["wire_mss"] or 0) > 0 else PIECES


class Held(NamedTuple):
    """An answer whose second piece waited for an ACK."""

    flow: int
    ns: float
    timer: int  # ms


def held_of(case: Case, talk: Talk) -> list[Held]:
    """Returns the answers of a conversation that would fit into one segment, but whose last piece came when an ACK had been
    delayed for as long as systems delay them."""
    answers = []
    for requests in talk.requests:
        number, server = requests.flow["flow"], 1 - (requests.flow["client"] or 0)
        unit = case.direction(number, server)["wire_mss"] or 0
        trips_ns = sum(case.direction(number, side)["rtt_ns_min"] or 0 for side in (0, 1))
        names = ("response_ns", "response_pause_ns", "response_bytes")
        for took_ns, paused_ns, size in zip(*(requests.columns[name] for name in names), strict=True):
            timer = usual_timer(took_ns - paused_ns - trips_ns) if size < unit else None
            if timer:
                answers.append(Held(number, took_ns - paused_ns, timer))
    return answers


def held_answers(case: Case) -> Matches:
    """Yields the matches of conversations whose answers were held back, often once on each of many connections: too short for
    the finding."""
    explained = {flow for each in case.all_findings("delayed-ack") for flow, _ in each.finding.flows} | case.flows_of()
    for talk in talks(case):
        answers = held_of(case, talk) if explained.isdisjoint(talk.numbers) else []
        waited_ns = math.fsum(each.ns for each in answers)
        if len(answers) < ANSWERS_MIN or waited_ns < max(HELD_MIN_NS, HELD_SHARE * talk.life_ns):
            continue
        flow, flows = talk.flows[0], list(dict.fromkeys(each.flow for each in answers))
        yield Match(
            certainty="likely",
            place="server",
            flows=flows,
            members=len(answers),
            waited_ns=waited_ns,
            saving_ns=waited_ns,
            frames=talk.cited(),
            proof=f"{plural(len(answers), 'answer')} of less than a segment in pieces, the last "
            f"{show_duration(waited_ns / len(answers))} after the first, when an ACK had come",
            excluded={"delack-tail": "each answer fits into one segment"},
            undecided={"slow-server": f"the program at {talk.server}: does it write header and body apart?"},
            writes=PIECES,
            remedy="",
            sender=talk.server,
            receiver=flow["destination" if flow["client"] else "source"],
            timer=f"{middle([each.timer for each in answers]):.0f} ms",
            waited=f"{parts_str(waited_ns, talk.life_ns)}, in {len(answers):,} of {plural(talk.count, 'answer')}",
        )


class Split(NamedTuple):
    """The messages of one side of a conversation that would fit into a segment and came in pieces."""

    late: list[Held]  # whose last piece came a round trip after the first
    pieces: int
    spent_ns: float  # by all requests of the conversation, from the first byte to the last of the answer


def split_of(case: Case, talk: Talk, name: str) -> Split:
    """Returns the requests or the responses of a conversation (`name`) that came in pieces."""
    late, pieces, spent_ns = list[Held](), 0, 0.0
    for requests in talk.requests:
        number, client = requests.flow["flow"], requests.flow["client"] or 0
        unit = case.direction(number, client if name == "request" else 1 - client)["wire_mss"] or 0
        trip_ns = sum(case.direction(number, side)["rtt_ns_min"] or 0 for side in (0, 1))
        columns = (requests.columns[f"{name}_{what}"] for what in ("ns", "pause_ns", "bytes"))
        for took_ns, paused_ns, size in zip(*columns, strict=True):
            if took_ns <= paused_ns or size >= unit:
                continue
            pieces += 1
            is_trip = TRIP_LEAST * trip_ns <= took_ns - paused_ns <= TRIP_MOST * trip_ns + TRIP_ROOM_NS
            if is_trip and trip_ns >= TRIP_MIN_NS:
                late.append(Held(number, took_ns - paused_ns, round(trip_ns)))
        parts = ("request_ns", "network_ns", "server_ns", "response_ns")
        spent_ns += math.fsum(math.fsum(requests.times(part)) for part in parts)
    return Split(late, pieces, spent_ns)


@cause(
    code="nagle-trip",
    title="Nagle's algorithm waits for a round trip",
    sentence="{sender} writes messages in pieces and holds the next one back (Nagle) until an ACK comes, a round trip of {trip} "
    "later. That took {waited} of {count:request}.",
    advice="Set TCP_NODELAY at {sender}, or write each message at once (writev, a buffer, TCP_CORK).",
    shows="At least eight requests or answers of a conversation that would fit into one segment come in pieces, the last one "
    "a round trip after the first (98% to 110% of the least, which is 5 ms or more). Those are 80% of the messages in pieces "
    "and half of all, and cost 120 ms and 15% of the time from request to answer.",
    rivals={
        "nagle-delack": "the ACK comes after a round trip, not after a timer",
        "client-pause": "pieces are one round trip apart each time, and no pause of a program is",
        "expect-continue": "no timer lasts a round trip",
    },
    unknown="Whether the sender waits for the ACK itself, as a stack with a single buffer does.",
)
def nagle_trip(case: Case) -> Matches:
    explained = {flow for each in case.all_findings("delayed-ack") for flow, _ in each.finding.flows}
    for talk in talks(case):
        if talk.has_no_answer_times or not explained.isdisjoint(talk.numbers):
            continue
        for name in ("request", "response"):
            split = split_of(case, talk, name)
            held_ns, many = math.fsum(each.ns for each in split.late), max(TRIPS_MIN, TRIPS_OF_ALL * talk.count)
            is_often = len(split.late) >= max(many, TRIPS_OF_SPLIT * split.pieces)
            if not is_often or held_ns < max(HELD_MIN_NS, TRIP_COST * split.spent_ns):
                continue
            flow, trip = talk.flows[0], show_duration(middle([each.timer for each in split.late]))
            yield Match(
                certainty="proven",
                place="client" if name == "request" else "server",
                flows=list(dict.fromkeys(each.flow for each in split.late)),
                members=len(split.late),
                waited_ns=held_ns,
                saving_ns=held_ns,
                frames=talk.cited(),
                proof=f"{plural(len(split.late), name)} of less than a segment in pieces, the last one {trip} after the first",
                excluded={
                    "nagle-delack": f"the ACK came after {trip}, the least round trip",
                    "client-pause": f"{len(split.late):,} of {split.pieces:,} in pieces took a round trip, to 10%",
                },
                sender=talk.server if name == "response" else str(flow["destination" if flow["client"] else "source"]),
                trip=trip,
                waited=parts_str(held_ns, split.spent_ns),
                count=talk.count,
            )
