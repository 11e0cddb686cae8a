# SPDX-License-Identifier: Apache-2.0
"""Resets that worry people and cost nothing: health checks that hang up at once, last words after the end, and idle connections
of which nobody wants anything."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.connections import EXCHANGE_KINDS, Connections, times_str
from wiretale.analyzer.findings.exchanges.exchange_rows import named, rows_where
from wiretale.analyzer.findings.model import duration_of, endpoint_str
from wiretale.analyzer.units import plural, show_bytes

if TYPE_CHECKING:
    from wiretale.analyzer.rows import DirectionRow, ExchangeRow, FlowRow
    from wiretale.analyzer.trace import Trace

FLOWS_MAX = 5_000  # that are examined
CHECKS_MIN, PERIOD_MIN_NS, IN_TIME = 5, 500_000_000, 0.2  # of the period
AT_ONCE_NS = 200_000_000
CHECKS_SHARE = 0.8  # of the pauses that are as long as the period
RESETS_MIN, WORDS_MOST = 3, 64  # bytes: an alert of TLS has 31 or less
IDLE_MIN_NS = 4_500_000_000  # before a reset; common servers close after 5 s
SEGMENT_LEAST = 536  # bytes (RFC 9293 section 3.7.1): a shorter message is in one segment


#: when a host opened connections to a port, and their period, by host, target and port
Checks = dict[tuple[str, str, "int | None"], tuple[list[int], float]]


class Ended(NamedTuple):
    """A TCP connection that a RST ended, and both directions."""

    flow: FlowRow
    client: DirectionRow
    server: DirectionRow


def reset_flows(trace: Trace) -> list[Ended]:
    """Returns the first connections that a RST ended."""
    legs = trace.transfers.legs
    numbers = [flow for flow in trace.transfers.flows_where("state", "reset") if flow not in legs][:FLOWS_MAX]
    sides = trace.directions._rows_at(side for flow in numbers for side in (2 * flow, 2 * flow + 1))
    return list(map(Ended, trace.flows._rows_at(numbers), sides[::2], sides[1::2]))


def harmless_resets_str(trace: Trace) -> str:
    """Returns what resets of health checks, after the last words or of idle connections mean; empty without these."""
    ended = reset_flows(trace)
    return checks_str(ended) or last_words_str(ended) or idle_str(trace, ended)


def is_check(flow: FlowRow, client: DirectionRow, server: DirectionRow) -> bool:
    """Returns whether a connection was opened and reset by its client at once, without a word: later, the client may have waited
    for a greeting."""
    is_open = bool(client["syns"] and server["syns"]) and not flow["payload_bytes"]
    is_short = (duration_of(flow) or 0) <= AT_ONCE_NS + (flow["handshake_rtt_ns"] or 0)
    return is_open and is_short and bool(client["resets"]) and not server["resets"] and not server["fins"]


def period_of(begun: list[int]) -> float | None:
    """Returns the time between events that come by a timer; None if they do not."""
    pauses = [then - now for now, then in pairwise(sorted(begun))]
    if len(begun) < CHECKS_MIN:
        return None
    period = median(pauses)
    in_time = sum(abs(pause - period) <= IN_TIME * period for pause in pauses)
    return period if period >= PERIOD_MIN_NS and in_time >= CHECKS_SHARE * len(pauses) else None


def count_of(checks: Checks, end: tuple[str, int | None], sources: list[str]) -> int:
    """Returns how often these hosts check whether a port is open."""
    return sum(len(checks[source, *end][0]) for source in sources)


def checks_str(ended: list[Ended]) -> str:
    """`10.0.0.9 checks every 2 s whether 10.0.0.1:80 is open …`; empty without such checks."""
    begun: dict[tuple[str, str, int | None], list[int]] = defaultdict(list)
    for flow, client, server in ended:
        if flow["first_ns"] is not None and is_check(flow, client, server):
            begun[flow["source"], flow["destination"], flow["destination_port"]].append(flow["first_ns"])
    checks: Checks = {ends: (times, period) for ends, times in begun.items() if (period := period_of(times))}
    if not checks:
        return ""
    by_target: dict[tuple[str, int | None], list[str]] = defaultdict(list)
    for source, target, port in checks:
        by_target[target, port].append(source)
    (target, port), sources = max(by_target.items(), key=lambda entry: count_of(checks, *entry))
    periods = sorted(round(checks[source, target, port][1]) for source in sources)
    who, verb = (sources[0], "s") if len(sources) == 1 else (f"{len(sources):,} hosts ({named(sources)})", "")
    return (
        f"{who} check{verb} every {times_str(periods)} whether {endpoint_str(target, port)} is open: {'it' if verb else 'they'} "
        f"connect{verb} and reset{verb} at once without a word ({plural(count_of(checks, (target, port), sources), 'time')}), as "
        "health checks of load balancers do; these resets are harmless"
    )


def last_words_of(closer: DirectionRow, peer: DirectionRow) -> int | None:
    """Returns the bytes that came for an end that had closed before it reset; None if anything else was open."""
    is_done = bool(closer["fins"] and closer["resets"]) and not closer["unacked_bytes"] and not peer["resets"]
    words = peer["unacked_bytes"] or 0
    return words if is_done and closer["unique_bytes"] and 0 < words <= WORDS_MOST else None


def last_words_str(ended: list[Ended]) -> str:
    """`10.0.0.1:443 reset 11 connections that it had closed …`; empty without several."""
    closed: dict[tuple[str, int | None], list[int]] = defaultdict(list)
    for flow, client, server in ended:
        words = last_words_of(server, client)
        if words and flow["application"] == "tls" and flow["handshake_rtt_ns"] is not None:
            closed[server["source"], server["source_port"]].append(words)
    end, sizes = max(closed.items(), key=lambda entry: len(entry[1]), default=(("", None), []))
    if len(sizes) < RESETS_MIN:
        return ""
    return (
        f"{endpoint_str(*end)} reset {plural(len(sizes), 'connection')} that it had closed before, after all its data was "
        f"acknowledged: the last {show_bytes(max(sizes))} of the client, probably a TLS close_notify, found no socket any more; "
        "these resets are harmless"
    )


def resetter_of(ended: Ended) -> DirectionRow | None:
    """Returns the end whose RST, the only one, ended a pause of a connection on which everything was acknowledged; None if it was
    another one."""
    flow, (reset, peer) = ended.flow, sorted((ended.client, ended.server), key=lambda row: not row["resets"])
    is_used = bool(flow["payload_bytes"])  # else somebody may have waited for the first words
    is_whole = is_used and not any(row["unacked_bytes"] or row["fins"] or row["missing_bytes"] for row in (reset, peer))
    is_last = flow["pause_until_ns"] == flow["last_ns"] and flow["pause_direction"] == reset["direction"]
    is_alone = reset["resets"] == 1 and not peer["resets"]
    return reset if is_whole and is_last and is_alone and (flow["pause_ns"] or 0) >= IDLE_MIN_NS else None


def last_answers(trace: Trace, flows: set[int]) -> dict[int | None, ExchangeRow]:
    """Returns the last request of each of these flows, with its answer."""
    rows = rows_where(trace.transfers, "kind", *EXCHANGE_KINDS) if flows else []
    return {row["flow"]: row for row in rows if row["flow"] in flows}


def may_be_half(each: Ended, answer: ExchangeRow | None) -> bool:
    """Returns whether the last answer on a connection may have stopped before its end: it has several segments, or full ones, and
    no length that it reached."""
    if answer is None:
        return True
    came, announced = answer["response_bytes"] or 0, answer["response_announced_bytes"]
    segment = max(min(row["segment_max"] or SEGMENT_LEAST for row in (each.client, each.server)), SEGMENT_LEAST)
    return came >= segment if announced is None else came < announced


def missed_str(are_whole: bool, is_single: bool, by_client: bool) -> str:
    """Returns whether somebody misses connections that were reset: their last answers may have stopped before their end, and a
    client that keeps a session may still want it. Then its system tells it of the reset, and it sends nothing."""
    if are_whole and by_client:
        return f", so probably nobody misses {'it' if is_single else 'them'}"
    if are_whole:
        return f", but a client that wants {'it' if is_single else 'one'} later must connect again"
    return f"; whether the last {'one was' if is_single else 'ones were'} whole doesn't show"


def idle_groups(trace: Trace, ended: list[Ended]) -> dict[tuple[str, str], list[Ended]]:
    """Returns the connections that were reset while nobody waited for an answer, by who did it, and the server."""
    resetters = [(each, row) for each in ended if (row := resetter_of(each))]
    waiting = Connections(trace.transfers).open_requests if resetters else {}
    groups: dict[tuple[str, str], list[Ended]] = defaultdict(list)
    for each, row in resetters:
        if each.flow["flow"] not in waiting:
            server = endpoint_str(each.server["source"], each.server["source_port"])
            who = server if row is each.server else row["source"]
            is_forged = row["ttl_min"] != row["ttl_max"]
            groups[f"A device in the name of {who} (by its TTL)" if is_forged else who, server].append(each)
    return groups


def idle_str(trace: Trace, ended: list[Ended]) -> str:
    """`10.0.0.2:5432 reset 3 idle connections, 60 s after their last packet …`; empty without such a reset."""
    groups = idle_groups(trace, ended)
    if not groups:
        return ""
    (who, server), idle = max(groups.items(), key=lambda entry: len(entry[1]))
    by_client, is_single = server not in who, len(idle) == 1
    to = f" to {server}" if by_client else ""
    what = f"an idle connection{to}" if is_single else f"{len(idle):,} idle connections{to}"
    after = times_str([each.flow["pause_ns"] or 0 for each in idle])
    answers = last_answers(trace, {each.flow["flow"] for each in idle})
    are_whole = not any(may_be_half(each, answers.get(each.flow["flow"])) for each in idle)
    return (
        f"{who} reset {what}, {after} after {'its' if is_single else 'their'} last packet: all data was acknowledged and every "
        f"request answered{missed_str(are_whole, is_single, by_client)}"
    )
