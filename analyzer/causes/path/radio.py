# SPDX-License-Identifier: Apache-2.0
"""Radios: frames that are repeated, and adapters that hold packets back while they sleep or scan."""

from __future__ import annotations

import cmath
import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Match, Matches, cause
from wiretale.analyzer.findings.exchanges.exchange_rows import packets_of
from wiretale.analyzer.findings.hosts.echo import Pings, pings_of
from wiretale.analyzer.units import plural, show_duration, show_rate, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case
    from wiretale.analyzer.rows import ExchangeRow

RETRIES_BAD = 0.25  # of the data frames
BEACON_NS, BEACONS_MOST, BEATS_LEAST = 102_400_000, 10, 20  # from a beacon to the next; of a beat; pings
IN_BEAT, OUT_OF_BEAT, BEAT_ROOM = 0.9, 0.5, 1.1  # regularity of answers and pings; waits, of the beat
BEAT_QUANTILE, BEATS_MISSED = 0.75, 4.0  # of the answers, which wait for the next beat; others, whose beacon was missed
HELD_NS, HELD_TIMES, PROMPT_TIMES, PROMPT_NS = 100_000_000, 20.0, 3.0, 3_000_000  # least waits; times the least one
HELD_LEAST, HELD_SHARE, PROMPT_SHARE, BETWEEN_SHARE = 5, 0.05, 0.3, 0.2  # of the pings; of those that wait long
RETURNS_LEAST = 3  # from a late answer to a fast one: a path that changes for a while does so once
NEAR_NS, QUIET_BPS = 10_000_000, 500_000  # the round trip of a network at hand; of a capture in which no queue grows
WEAK_DBM, STRONG_DBM = -75, -65


def signal_words(signal: int | None) -> tuple[str, str, str]:
    """Returns how the signal is told, what follows from it, and what to do."""
    if signal is None:
        return (
            "",
            "the receiver did not get them, or the sender not its acknowledgments",
            "Read the signal of both ends",
        )
    words = f", at {signal} dBm"
    if signal <= WEAK_DBM:
        return words, "it is too far from its access point", "Move the station or the access point nearer"
    if signal >= STRONG_DBM:
        return words, "the signal is strong, so others interfere on the channel", "Choose a channel with less traffic"
    return words, "distance or interference", "Compare other channels and places"


@cause(
    code="wifi-retries",
    title="Wi-Fi frames that are repeated",
    sentence="{share} of the {total} data frames {of_station} are 802.11 retries{signal}: {reason}.",
    advice="{remedy} (`iw dev wlan0 station dump`, 5 GHz instead of 2.4 GHz).",
    shows="At least 25% of 100 or more data frames have the retry bit; from 10% on it is a note. The signal is the mean of "
    "the station with the most retries, from radiotap. At -75 dBm or below, distance is the reason; at -65 dBm or above, "
    "interference.",
    rivals={"copies": "the retry bit is set: the station repeated them, not the capture"},
    unknown="Frames that the monitor did not hear. On the wire beyond the access point only jitter shows.",
    explains=("network-duplicates", "unknown-duplicates", "jitter"),
)
def wifi_retries(case: Case) -> Matches:
    findings = case.findings("wlan-retries")
    rows = [row for row in case.trace.interfaces if row["wlan_retries"]]
    if not findings or not rows:
        return
    row = max(rows, key=lambda each: each["wlan_retries"] or 0)
    frames, retries, station = row["wlan_frames"] or 0, row["wlan_retries"] or 0, row["wlan_station"]
    of_station = "on the air"
    if station and row["wlan_station_frames"]:
        frames, retries, of_station = (
            row["wlan_station_frames"],
            row["wlan_station_retries"] or 0,
            f"of station {station}",
        )
    signal, reason, remedy = signal_words(row["wlan_station_signal_dbm"])
    yield Match(
        certainty="proven",
        place="client",
        findings=findings,
        proof=f"{retries:,} of {frames:,} data frames have the retry bit{signal}",
        excluded={"copies": "the sender set the retry bit"},
        severity="warning" if retries >= RETRIES_BAD * frames else "info",
        share=show_share(retries, frames),
        total=f"{frames:,}",
        of_station=of_station,
        signal=signal,
        reason=reason,
        remedy=remedy,
    )


class Delayed(NamedTuple):
    """Pings of which some are answered at once, and others much later."""

    late: list[ExchangeRow]
    prompt_ns: int  # the median of the others
    most_ns: int


class Beat(NamedTuple):
    """Pings whose answers come in a beat."""

    waiting: list[ExchangeRow]
    ns: int


def delayed_of(pings: Pings) -> Delayed | None:
    """Returns the pings that were held back, if most others were answered at once and few in between; else None. A queue that
    grows and shrinks passes all values between."""
    timed = [row for row in pings.answered() if row["waited_ns"]]
    if not timed:
        return None
    waits = [row["waited_ns"] or 0 for row in timed]
    least = min(waits)
    late_least, prompt_most = max(HELD_NS, HELD_TIMES * least), max(PROMPT_TIMES * least, least + PROMPT_NS)
    late = [row for row in timed if (row["waited_ns"] or 0) >= late_least]
    prompt = sorted(ns for ns in waits if ns <= prompt_most)
    between = len(timed) - len(late) - len(prompt)
    is_often = are_often(len(late), len(prompt), len(timed)) and comes_again(waits, late_least, prompt_most)
    if not is_often or between > BETWEEN_SHARE * len(late) or least > NEAR_NS:
        return None
    return Delayed(late, prompt[len(prompt) // 2], max(waits))


def beat_of(pings: Pings) -> Beat | None:
    """Returns the beat in which answers come, if they wait for the next one whenever the ping came: a station that sleeps takes
    its packets at each beacon or each few, 102.4 ms apart as a rule (IEEE 802.11 section 11.2). None without one."""
    spans = [(row, *span_of(row)) for row in pings.answered()]
    awake_ns = PROMPT_TIMES * min((came - sent for _, sent, came in spans), default=0)  # or it woke just then
    waiting = [row for row, sent, came in spans if came - sent > awake_ns]
    if len(waiting) < BEATS_LEAST:
        return None
    times = [span_of(row) for row in waiting]
    waits = sorted(came - sent for sent, came in times)
    usual, most = waits[int(BEAT_QUANTILE * (len(waits) - 1))], waits[-1]
    beats = (beacons * BEACON_NS for beacons in range(1, BEACONS_MOST + 1))
    fitting = (beat for beat in beats if HELD_NS <= usual <= BEAT_ROOM * beat and most <= BEATS_MISSED * beat)
    return next((Beat(waiting, beat) for beat in fitting if is_beat(times, beat)), None)


def span_of(row: ExchangeRow) -> tuple[int, int]:
    """Returns when a ping was sent and when its answer came, ns."""
    sent = row["asked_ns"] or 0
    return sent, sent + (row["waited_ns"] or 0)


def is_beat(times: list[tuple[int, int]], beat: int) -> bool:
    """Returns whether answers come in a beat, and their pings do not."""
    sent, came = (regularity([time % beat / beat for time in each]) for each in zip(*times, strict=True))
    return came >= IN_BEAT and sent <= OUT_OF_BEAT


def regularity(phases: list[float]) -> float:
    """Returns how much phases have in common: 1 if they are one, about 0 if they are any."""
    total = sum(cmath.exp(2j * math.pi * phase) for phase in phases)
    return abs(total) / len(phases)


def comes_again(waits: list[int], late_least: float, prompt_most: float) -> bool:
    """Returns whether fast answers follow right after late ones several times."""
    returns = sum(sooner >= late_least and later <= prompt_most for sooner, later in pairwise(waits))
    return returns >= RETURNS_LEAST


def are_often(late: int, prompt: int, timed: int) -> bool:
    """Returns whether both late and fast answers are a good part of all."""
    return late >= max(HELD_LEAST, HELD_SHARE * timed) and prompt >= PROMPT_SHARE * timed


def total_bps(case: Case) -> float:
    """Returns the rate of all that was captured, bits per second."""
    sent = sum(row["bytes"] for row in case.trace.interfaces)
    return 8e9 * sent / max(case.transfers.turns.capture_ns, 1)


@cause(
    code="held-pings",
    title="Answers are held back again and again",
    sentence="Something {probably}holds packets between {client} and {server} back again and again, like a Wi-Fi adapter "
    "that sleeps (power save){or_scans}. {facts}. {lost}, and only {rate} passed, so no queue grew.",
    advice="Turn power save off (`iw dev wlan0 set power_save off`) and stop background scans at the end with the radio; "
    "compare a cable, another driver, and pings from another host.",
    shows="At least five pings and 5% of a pair took 100 ms and 20 times the minimum. At least 30% were answered about as "
    "fast as the minimum, within 10 ms, three or more right after a late one; hardly any took a time in between. Or the "
    "answers to at least 20 pings, which come at any time, come in one beat of 1 to 10 beacon intervals (102.4 ms). At least 75% "
    "come in the next beat, and none waits for more than four; those within three times the least wait do not count. Less than "
    "500 kbit/s was captured.",
    rivals={
        "bufferbloat": "hardly anything was sent, and the next ping is fast at once: a queue drains gradually",
        "outage": "every packet arrives, late",
        "slow-server": "kernels answer pings at once",
    },
    unknown="Which end, or access point, holds them, and whether packets of other hosts fill a queue that both share.",
)
def held_pings(case: Case) -> Matches:
    if total_bps(case) >= QUIET_BPS:
        return
    for pings in pings_of(case.transfers):
        slow, lost = delayed_of(pings), len(pings.lost())
        beat = beat_of(pings) if slow is None else None
        if slow and lost <= len(slow.late):
            most, prompt = show_duration(slow.most_ns), show_duration(slow.prompt_ns)
            facts = f"{len(slow.late):,} of {plural(len(pings.rows), 'ping')} took up to {most}, the others {prompt}"
            proof = f"the next ping was fast again; {prompt} is the median of the others"
            yield held_match(case, pings, slow.late, proof, facts, " or scans")
        elif beat:
            waiting, beat_str = beat.waiting, show_duration(beat.ns)
            beacons, most = round(beat.ns / BEACON_NS), show_duration(max(row["waited_ns"] or 0 for row in waiting))
            facts = f"The answers to {plural(len(waiting), 'ping')} come in a beat of {beat_str} and wait up to {most} for it"
            proof = f"the beat is {plural(beacons, 'beacon interval')} of 102.4 ms, whenever the pings came"
            yield held_match(case, pings, waiting, proof, facts, "")


def held_match(case: Case, pings: Pings, late: list[ExchangeRow], proof: str, facts: str, or_scans: str) -> Match:
    """Returns the match of pings that were held back."""
    (client, server), lost = pings.hosts, len(pings.lost())
    return Match(
        certainty="likely",
        place="path",
        flows=[(pings.flow, pings.direction)],
        waited_ns=sum(row["waited_ns"] or 0 for row in late),
        frames=packets_of(late),
        members=len(late),
        proof=proof,
        excluded={
            "outage": f"{plural(len(pings.answered()), 'ping')} of {len(pings.rows):,} were answered",
        },
        undecided={"bufferbloat": f"pings of another host to {server}: do they wait at the same moments?"},
        client=client,
        server=server,
        lost=f"{lost:,} got no answer" if lost else "Each was answered",
        rate=show_rate(total_bps(case)),
        facts=facts,
        or_scans=or_scans,
    )
