# SPDX-License-Identifier: Apache-2.0
"""A rule about the wire itself: transfers that take all that an Ethernet of a usual speed carries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.model import Finding
from wiretale.analyzer.findings.spread import mean, variation
from wiretale.analyzer.findings.transfers import Survey, Transfer, survey_of
from wiretale.analyzer.units import plural, show_rate, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

SPEEDS = (10e6, 100e6, 1e9, 2.5e9, 5e9, 10e9, 25e9, 40e9, 50e9, 100e9)  # bit/s, IEEE 802.3
FULL_LEAST, FULL_MOST = 0.985, 1.01  # of a speed
LEVEL = 0.25  # most that the time bins of one transfer may vary
BINS_LEAST = 20
TAKES_PART = 0.01  # of the trace's bytes
FINDINGS_MOST = 5
WORTH = 0.11  # before path-limited, which it explains
SECOND = 1e9


def levels(survey: Survey, members: Sequence[Transfer]) -> list[list[float]]:
    """bit/s on the wire of each in its time bins while all of them lasted, first and last bin left out."""
    start = max(one.row["first_ns"] for one in members)
    end = min(one.row["last_ns"] for one in members)
    found = []
    for one in members:
        bins = survey.bins(one)
        sizes = [
            size
            for at, size in zip(bins.start_ns, bins.wire_bytes, strict=True)
            if at >= start and at + bins.width_ns <= end
        ]
        found.append([8 * size / bins.width_ns * SECOND for size in sizes])
    return found


def between(source: str, destination: str) -> str:
    """A display filter for the packets from one host to another."""
    family = "ipv6" if ":" in source else "ip"
    return f"{family}.src == {source} && {family}.dst == {destination}"


def middle_mean(values: Sequence[float]) -> float:
    """The mean of the middle half: a pause of the sender, or packets stamped late, do not count."""
    quarter = len(values) // 4
    return mean(sorted(values)[quarter : len(values) - quarter])


def full_speed(rates: Sequence[Sequence[float]]) -> float | None:
    """The speed of the Ethernet that these fill together."""
    if min(map(len, rates)) < BINS_LEAST or (len(rates) == 1 and variation(rates[0]) > LEVEL):
        return None
    whole = middle_mean(rates[0]) if len(rates) == 1 else sum(map(mean, rates))
    return next((speed for speed in SPEEDS if FULL_LEAST * speed <= whole <= FULL_MOST * speed), None)


def wire_full(trace: Trace) -> Iterator[Finding]:
    """Transfers from one host to another that together fill a wire."""
    survey = survey_of(trace)
    groups: dict[tuple[str, str], list[Transfer]] = {}
    for one in survey.transfers:
        if one.life_ns and one.weight >= TAKES_PART:
            groups.setdefault((one.row["source"], one.row["destination"]), []).append(one)
    for (source, destination), members in list(groups.items())[:FINDINGS_MOST]:
        speed = full_speed(levels(survey, members))
        if speed is None:
            continue
        wire, payload = (sum(one.row[name] or 0 for one in members) for name in ("wire_bytes", "payload_bytes"))
        alone = members[0] if len(members) == 1 else None
        who = f"{alone.name} takes" if alone else f"{plural(len(members), 'transfer')} {source} → {destination} take"
        yield Finding(
            *("wire-full", "info", "flow"),
            f"{who} all that an Ethernet of {show_rate(speed)} carries: {show_share(payload, wire)} of it is payload, "
            f"{show_rate(speed * payload / wire)}; {show_share(wire - payload, wire)} goes into headers, preambles, checksums "
            "and gaps between frames.",
            "Nothing to mend: the wire is full. More takes a faster one, or packets that are fuller.",
            flow=alone.row["flow"] if alone else None,
            cost=float(wire - payload),
            cost_unit="bytes",
            evidence=f"{alone.frames if alone else plural(len(members), 'transfer')}; wire_bytes in the series",
            filter=flow_filter(alone.flow) if alone else between(source, destination),
            impact=WORTH * sum(one.weight for one in members),
        )
