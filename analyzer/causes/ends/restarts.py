# SPDX-License-Identifier: Apache-2.0
"""Senders that forget what the path carries while a connection is idle (RFC 5681 section 4.1)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.causes.ends.talk import middle, parts_str, talks
from wiretale.analyzer.units import plural, show_bytes, show_duration

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.causes.ends.talk import Requests, Talk
    from wiretale.analyzer.findings.transfers import Bins

IDLE_NS = 300_000_000  # the least retransmission timer is 200 ms and a round trip
ANSWERS_MIN, GROWING_SHARE = 3, 0.8  # that begin anew, of those after a pause
FIRST_BYTES = 16 * 1460  # the initial window has 10 segments (RFC 6928), some 16
GROWTH = (1.4, 2.6)  # of a flight over the one before: it doubles, by half with delayed ACKs
REACHED = 1.8  # times the first flight that the answer before had reached
ROUNDS_MAX, BINS_OF_ROUND = 8, 2
INITIAL_SEGMENTS = 10  # RFC 6928
ROUNDS_LEAST, ROUND_WITHIN, GROWN_SHARE = 4, 0.35, 0.95  # where time bins are too wide; of the flight before the last
HELD_SHARE = 0.2  # of the round trips, by windows
RESTARTS_NS = 1_000_000_000  # of round trips: less is a note


class Restart(NamedTuple):
    """An answer whose flights grow again."""

    number: int  # of the request in its connection
    first_bytes: float
    lost_ns: float  # the round trips after the first flight


def flights_of(bins: Bins, start_ns: float, rtt_ns: float, rounds: int) -> list[float]:
    """Returns the payload of each round trip from a time on."""
    flights = [0.0] * rounds
    for at, size in zip(bins.start_ns, bins.payload_bytes, strict=True):
        number = math.floor((at + bins.width_ns / 2 - start_ns) / rtt_ns + 0.25)
        if 0 <= number < rounds:
            flights[number] += size
    return flights


def grows(flights: list[float], reached: float) -> bool:
    """Returns whether flights begin as small as on a new connection and grow, though they had been larger."""
    first, second, *later = flights
    if not 0 < first <= FIRST_BYTES or reached < REACHED * first:
        return False
    return GROWTH[0] <= second / first <= GROWTH[1] and (not later or later[0] >= first)


def restarts_of(case: Case, requests: Requests, rtt_ns: float) -> tuple[list[Restart], int]:
    """Returns the answers after a pause that begin anew, and the number of answers after a pause that are long enough to show "
    "it."""
    flow, columns = requests.flow, requests.columns
    bins = case.transfers.bins_at(flow["flow"], 1 - (flow["client"] or 0))
    if bins.width_ns * BINS_OF_ROUND > rtt_ns:
        return restarts_by_time(case, requests, rtt_ns)
    restarts, judged, reached = [], 0, 0.0
    for number, answered_ns in enumerate(columns["answered_ns"]):
        spread_ns, pause_ns = columns["response_ns"][number], columns["pause_ns"][number]
        if math.isnan(answered_ns) or math.isnan(spread_ns):
            continue
        rounds = min(int(spread_ns / rtt_ns + 0.5) + 1, ROUNDS_MAX)
        flights = flights_of(bins, case.transfers.base_ns + answered_ns, rtt_ns, rounds)
        if pause_ns >= IDLE_NS and reached and columns["response_bytes"][number] > FIRST_BYTES:
            judged += 1
            is_own_pace = columns["response_pause_ns"][number] * 2 > spread_ns
            if rounds > 1 and not is_own_pace and grows(flights, reached):
                restarts.append(Restart(number, flights[0], (rounds - 1) * rtt_ns))
        reached = max(*flights, reached)
    return restarts, judged


def rounds_from(first_bytes: float, size: float) -> int:
    """Returns the round trips in which flights that double carry an answer."""
    return math.ceil(math.log2(size / first_bytes + 1))


def restarts_by_time(case: Case, requests: Requests, rtt_ns: float) -> tuple[list[Restart], int]:
    """Returns the same where time bins are too wide to show flights: answers that take as many round trips as flights do that
    double from the initial window, though much more was in flight at other times."""
    flow, columns = requests.flow, requests.columns
    row = case.direction(flow["flow"], 1 - (flow["client"] or 0))
    first_bytes = INITIAL_SEGMENTS * float(row["segment_max"] or 0)
    if not first_bytes:
        return [], 0
    restarts, judged, most = [], 0, 0
    for number, (spread_ns, pause_ns) in enumerate(zip(columns["response_ns"], columns["pause_ns"], strict=True)):
        size = columns["response_bytes"][number]
        if not (size > first_bytes and pause_ns >= IDLE_NS and spread_ns > 0):  # NaN is none of them
            continue
        rounds = rounds_from(first_bytes, size)
        if rounds < ROUNDS_LEAST:
            continue
        judged, most = judged + 1, max(most, rounds)
        if (
            abs(spread_ns / rtt_ns - (rounds - 1)) <= ROUND_WITHIN
            and columns["response_pause_ns"][number] * 2 <= spread_ns
        ):
            restarts.append(Restart(number, first_bytes, (rounds - 1) * rtt_ns))
    has_grown = (row["flight_max"] or 0) >= GROWN_SHARE * first_bytes * 2 ** (most - 2)
    return (restarts, judged) if has_grown else ([], 0)


@cause(
    code="idle-restart",
    title="Slow start after each pause",
    sentence="{server} starts again from {first} in flight after each pause: {count} of {answers} after a pause grew over "
    "round trips of {rtt}, though more had been in flight before. That took {spent}.",
    advice="Set `net.ipv4.tcp_slow_start_after_idle=0` at {host}, or send small messages often enough that the connection "
    "does not go idle.",
    shows="After pauses of 300 ms or more, answers begin with at most 16 segments in flight and double each round trip, "
    "though earlier ones had reached 1.8 times as much. At least three answers do, and 80% of those after a pause; nothing is "
    "lost. A sender that was idle for longer than its retransmission timer begins anew (RFC 5681 section 4.1). In long "
    "captures, time bins are wider than half of a round trip. Then answers must take as many round trips (at least four, to "
    "0.35) as flights that double from 10 segments. As much was in flight at its most as before their last round trip, and "
    "windows held nothing back. Below 1 s in all it is a note.",
    rivals={
        "slow-start": "the connection had carried more at once",
        "slow-server": "ACKs release the data, and the server has it at once",
        "small-window": "the flight doubles, a window stays",
    },
    unknown="Whether the path still carries as much at once as before the pause.",
    explains=("slow-start",),
)
def idle_restart(case: Case) -> Matches:
    for talk in talks(case):
        limited_ns = talk.parts["window"] + talk.parts["send_buffer"]
        if not talk.parts["loss"] and not talk.is_parallel and limited_ns <= HELD_SHARE * talk.parts["path"]:
            yield from restart_matches(case, talk)


class Restarts(NamedTuple):
    """The answers of a conversation that begin anew, and the number of those that could show it."""

    by_flow: list[tuple[Requests, list[Restart]]]
    judged: int

    @property
    def every(self) -> list[Restart]:
        """The answers of all connections."""
        return [restart for _, restarts in self.by_flow for restart in restarts]


def restarts_in(case: Case, talk: Talk) -> Restarts:
    """Returns the answers of a conversation that begin anew."""
    by_flow, judged = [], 0
    for requests in talk.requests:
        rtt_ns = requests.flow["handshake_rtt_ns"]
        restarts, count = restarts_of(case, requests, rtt_ns) if rtt_ns else ([], 0)
        judged += count
        if restarts:
            by_flow.append((requests, restarts))
    return Restarts(by_flow, judged)


def restart_matches(case: Case, talk: Talk) -> Matches:
    """Yields the match of a conversation whose answers begin anew after pauses."""
    restarts = restarts_in(case, talk)
    count = len(restarts.every)
    if count < ANSWERS_MIN or count < GROWING_SHARE * restarts.judged:
        return
    flow, base_ns = restarts.by_flow[0][0].flow, case.transfers.base_ns
    lost_ns = math.fsum(restart.lost_ns for restart in restarts.every)
    yield Match(
        certainty="proven",
        place="server",
        severity=None if lost_ns >= RESTARTS_NS else "info",
        flows=[requests.flow["flow"] for requests, _ in restarts.by_flow],
        waited_ns=lost_ns,
        saving_ns=lost_ns,
        members=count,
        frames=[
            packet
            for requests, of_flow in restarts.by_flow
            for restart in of_flow[:2]
            for packet in requests.cited(base_ns, restart.number)
        ],
        proof="the flight doubles each round trip from the initial window, and nothing is lost",
        excluded={
            "slow-start": "answers before the pause had more in flight",
            "slow-server": "each flight leaves a round trip after the one before, as ACKs arrive",
            "small-window": "the flight doubles",
        },
        server=talk.server,
        host=talk.server,
        first=show_bytes(middle([restart.first_bytes for restart in restarts.every])),
        count=count,
        answers=plural(restarts.judged, "answer"),
        rtt=show_duration(flow["handshake_rtt_ns"] or 0),
        spent=parts_str(lost_ns, talk.life_ns),
    )
