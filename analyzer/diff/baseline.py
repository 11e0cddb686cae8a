# SPDX-License-Identifier: Apache-2.0
"""A run compared with many runs, its baseline: which measures are unusual, and whether the run is.

The score of a measure in a run is its distance from the median of all runs, the new one included, in units of their spread;
the score of a run is the greatest of its measures. p of a measure of the new run is the share of all runs whose score is at
least that of the measure: the max-T procedure of Westfall and Young (1993), by rank among the runs in place of permutations.
If the new run is drawn as the others were, its rank is uniform, whatever the distributions and however measures depend on each
other. So the probability that any measure is called unusual by mistake is at most LEVEL, for few runs as for many. Below
RUNS_LEAST runs, no rank is that improbable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, log
from statistics import median
from typing import NamedTuple

from wiretale.analyzer.diff.difference import Change
from wiretale.analyzer.diff.measures import COUNT, MEASURES, PERCENT, RATE, TIME, Measure, Values
from wiretale.analyzer.diff.run import Run, RunFinding
from wiretale.analyzer.findings.transfers import PARTS
from wiretale.analyzer.units import plural

LEVEL = 0.05
RUNS_LEAST = ceil(1 / LEVEL) - 1
SCORE_LEAST = 3.0  # a smaller distance is not called unusual, however stable the baseline is
KNOWN_LEAST = 0.5  # share of runs with a measure, below which it is not tested
NORMAL_MAD = 1.4826  # ratio of standard deviation to median absolute deviation
NORMAL_RANGE = 3.29  # width of p5 to p95, in standard deviations
RARE = 0.05  # share of runs
VERDICTS = ("worse", "better", "different", "usual")

# Measures that do not grow with the size of a run; those of the last line do, and are shown but not tested.
BASELINE = {
    measure.name: measure
    for measure in (
        *(MEASURES[name] for name in ("goodput", "throughput", "retransmissions")),
        Measure("spurious_share", PERCENT, -1, "proven spurious retransmissions, of all TCP segments with payload"),
        Measure("upstream_loss", PERCENT, -1, "TCP segments lost before the capture point, of all with payload"),
        Measure("downstream_loss", PERCENT, -1, "TCP segments or their ACKs lost after it, of all with payload"),
        MEASURES["block_loss"],
        Measure("unseen", PERCENT, -1, "TCP payload that was acknowledged but not captured, of all"),
        Measure("reordering", PERCENT, -1, "TCP segments or blocks that the network reordered, of all packets"),
        Measure("zero_window_share", PERCENT, -1, "segments with a zero receive window, of all packets"),
        Measure("fragment_share", PERCENT, -1, "IP fragments, of all packets"),
        *(MEASURES[name] for name in ("rtt_min", "rtt_median", "rtt_p99", "jitter")),
        Measure("handshake", TIME, -1, "median time of TCP and QUIC handshakes (handshake_rtt_ns)"),
        Measure("failed", PERCENT, -1, "TCP connections refused or without an answer, of all"),
        Measure("dns", TIME, -1, "median time from a DNS question to its answer"),
        Measure("dns_failed", PERCENT, -1, "DNS questions without an answer, or with one but NOERROR and NXDOMAIN"),
        Measure("tls", TIME, -1, "median time of TLS and QUIC handshakes (handshakes.duration_ns)"),
        Measure("response", TIME, -1, "median server time of requests (exchanges.server_ns)"),
        *(
            Measure(f"time_{part}", PERCENT, -1 if part == "loss" else 0, f"time: {text}")
            for part, text in PARTS.items()
        ),
        MEASURES["findings"],
        *(MEASURES[name] for name in ("duration", "packets", "bytes", "flows")),
    )
}
UNTESTED = ("duration", "packets", "bytes", "flows")
# The least spread of each unit: of times and rates relative, of shares in points.
LEAST_SPREAD = {RATE.name: 0.02, TIME.name: 0.02, PERCENT.name: 0.1, COUNT.name: 1.0}
TIME_SPREAD = 2.0  # points of a part of the time
OFFSET = {RATE.name: 1e3, TIME.name: 1e4}  # below 1 kbit/s and 10 µs, differences are absolute


class RunMeasures(NamedTuple):
    """The measures of a run by service; None is the service of all flows together."""

    by_service: dict[str | None, Values]
    #: packets or segments of which shares are, by service; None if unknown
    events: dict[str | None, float | None]
    #: codes of its findings
    codes: frozenset[str]


@dataclass
class Standing:
    """A measure of the new run among the runs of a baseline.

    >>> import tempfile, wiretale
    >>> store = wiretale.Store(tempfile.mkdtemp() + "/archive")
    >>> _ = store.add("sample_pcaps/tcp_losses.pcap", "sample_pcaps/timeouts.pcap")
    >>> standing = wiretale.diff("sample_pcaps/reordering.pcap", store=store.folder).standings[0]
    >>> standing.measure.name, standing.is_unusual
    ('goodput', False)
    """

    measure: Measure
    #: such as tcp/443; None for all flows
    service: str | None
    value: float | None
    #: in each run of the baseline
    runs: list[float | None]
    #: of the baseline's runs, then of the new one: distances from the median in units of the spread; empty if not tested
    scores: list[float | None] = field(default_factory=list)
    #: the share of runs with at least this score in this measure, and in any measure
    p_alone: float | None = None
    p: float | None = None

    @cached_property
    def baseline_values(self) -> list[float]:
        """The values of the baseline, sorted."""
        return sorted(value for value in self.runs if value is not None)

    def quantile(self, share: float) -> float | None:
        """Returns a quantile of the baseline, interpolated."""
        return quantile_of(self.baseline_values, share)

    @property
    def score(self) -> float:
        """The score of the new run; 0 if unknown or not tested."""
        return (self.scores[-1] or 0.0) if self.scores else 0.0

    @property
    def is_unusual(self) -> bool:
        """Whether the new run differs from the baseline in this measure."""
        return self.p is not None and self.p <= LEVEL and self.score >= SCORE_LEAST

    @property
    def change(self) -> Change:
        """The new run against the median of the baseline."""
        return Change(self.measure, self.quantile(0.5), self.value)

    @property
    def verdict(self) -> str | None:
        """One of VERDICTS; None if the measure is not tested or its value is unknown."""
        if self.p is None:
            return None
        if not self.is_unusual:
            return "usual"
        verdict = self.change.verdict
        return verdict if verdict in ("worse", "better") else "different"

    @property
    def is_outside(self) -> bool:
        """Whether the value is less or greater than in each run of the baseline."""
        values = self.baseline_values
        return self.value is not None and bool(values) and not values[0] <= self.value <= values[-1]


@dataclass
class AgainstBaseline:
    """A run and the runs of a baseline."""

    after: Run
    store: str
    #: number of the baseline's runs
    runs: int
    #: of all flows, then of services
    standings: list[Standing]
    #: services of the new run that no other has, and those of almost all runs that the new one lacks
    services_new: list[str]
    services_gone: list[str]
    #: codes of findings that the new run has, and number of the baseline's runs with them, if these are few
    findings: list[tuple[RunFinding, int]]
    #: captures of the store that are damaged or empty, or the new one itself
    left_out: int = 0

    @property
    def changes(self) -> list[Change]:
        """The new run against the median, of all flows together."""
        return [standing.change for standing in self.standings if standing.service is None]

    @property
    def tested(self) -> list[Standing]:
        """The measures that the new run has and that are tested."""
        return [standing for standing in self.standings if standing.p is not None]

    @property
    def unusual(self) -> list[Standing]:
        """The measures that differ from the baseline: those that are worse first, then by score."""
        unusual = [standing for standing in self.standings if standing.is_unusual]
        return sorted(unusual, key=lambda standing: (VERDICTS.index(standing.verdict or "usual"), -standing.score))

    @property
    def verdict(self) -> str | None:
        """One of VERDICTS; None if it cannot be determined."""
        if self.runs < RUNS_LEAST or not self.tested:
            return None
        return next((standing.verdict for standing in self.unusual), "usual")

    def sentence(self) -> str:
        """Returns the verdict as text."""
        if self.runs < RUNS_LEAST:
            return (
                f"Whether B is unusual cannot be determined: the baseline has {plural(self.runs, 'run')}, "
                f"{RUNS_LEAST} are needed for p ≤ {LEVEL:g}."
            )
        if not self.tested:
            return "Whether B is unusual cannot be determined: no measure is known in B and in half of the baseline."
        if not self.unusual:
            least = min(standing.p for standing in self.tested if standing.p is not None)
            return (
                f"B is as usual: none of {plural(len(self.tested), 'measure')} is unusual among {self.runs:,} runs "
                f"(least p = {p_text(least)})."
            )
        first, more = self.unusual[0], len(self.unusual) - 1
        verdict = {"different": "different from"}.get(first.verdict or "", f"{first.verdict} than")
        show = first.measure.unit.show
        suffix = f"; {more:,} more {'measure is' if more == 1 else 'measures are'} unusual" if more else ""
        return (
            f"B is {verdict} {self.runs:,} runs: {label_of(first)} {show(first.value)}, their median "
            f"{show(first.quantile(0.5))} (p5 to p95: {show(first.quantile(0.05))} to {show(first.quantile(0.95))}), "
            f"p = {p_text(first.p or 0.0)}{suffix}."
        )


def label_of(standing: Standing) -> str:
    """`rtt_median`, `rtt_median of tcp/443`."""
    return f"{standing.measure.name} of {standing.service}" if standing.service else standing.measure.name


def p_text(p: float) -> str:
    """`0.048`, `0.62`."""
    return f"{p:.2g}"


def quantile_of(values: Sequence[float], share: float) -> float | None:
    """Returns a quantile of sorted values, interpolated; None of none."""
    if not values:
        return None
    place = share * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (place - low) * (values[high] - values[low])


def scores_of(measure: Measure, values: Sequence[float | None], event: float) -> list[float | None]:
    """Returns the score of each value, all of which are treated alike; empty if fewer than KNOWN_LEAST of them are known.

    Times and rates are compared by their ratio. `event` is the share in percent that a single packet is.
    """
    unit = measure.unit.name
    offset = OFFSET.get(unit)
    scaled = [None if value is None else value if offset is None else log(max(value, 0.0) + offset) for value in values]
    ordered = sorted(value for value in scaled if value is not None)
    if len(ordered) < 2 or len(ordered) < KNOWN_LEAST * len(values):
        return []
    middle = median(ordered)
    low, high = (quantile_of(ordered, share) or 0.0 for share in (0.05, 0.95))
    least = TIME_SPREAD if measure.name.startswith("time_") else LEAST_SPREAD[unit]
    if unit == PERCENT.name:
        least = max(least, event)
    spread = max(NORMAL_MAD * median(abs(value - middle) for value in ordered), (high - low) / NORMAL_RANGE, least)
    return [None if value is None else abs(value - middle) / spread for value in scaled]


def fill_p(standings: Sequence[Standing], runs: int) -> None:
    """Fills both p of each measure that the new run has, from the scores of all."""
    tested = [standing for standing in standings if standing.scores]
    greatest = [max((standing.scores[run] or 0.0 for standing in tested), default=0.0) for run in range(runs)]
    for standing in tested:
        score = standing.scores[-1]
        if score is None:
            continue
        scores = [other for other in standing.scores if other is not None]
        standing.p_alone = sum(other >= score for other in scores) / len(scores)
        standing.p = (1 + sum(other >= score for other in greatest)) / (runs + 1)


def services_of(runs: Sequence[RunMeasures], most: int) -> list[str]:
    """Returns the services that at least KNOWN_LEAST of the runs have, by bytes; none if there is but one."""
    sizes: dict[str, list[float]] = {}
    for run in runs:
        for service, values in run.by_service.items():
            if service is not None:
                sizes.setdefault(service, []).append(values.get("bytes") or 0.0)
    frequent = [service for service, each in sizes.items() if len(each) >= KNOWN_LEAST * len(runs)]
    largest = sorted(frequent, key=lambda service: (-sum(sizes[service]), service))[:most]
    return largest if len(largest) > 1 else []


def standings_of(baseline: Sequence[RunMeasures], new: RunMeasures, service: str | None) -> list[Standing]:
    """Returns the measures of a service, or of all flows, that any run has."""
    every = [*baseline, new]
    events = [count for run in every if (count := run.events.get(service))]
    event = 100 / median(events) if events else 0.0
    standings = []
    for name, measure in BASELINE.items():
        values = [run.by_service.get(service, {}).get(name) for run in every]
        if any(value is not None for value in values):
            standing = Standing(measure, service, values[-1], values[:-1])
            if name not in UNTESTED:
                standing.scores = scores_of(measure, values, event)
            standings.append(standing)
    return standings


def against(
    after: Run, new: RunMeasures, store: str, baseline: Sequence[RunMeasures], services: int
) -> AgainstBaseline:
    """Compares a run with those of a baseline: all flows together, and at most so many services."""
    scopes = [None, *services_of([*baseline, new], services)]
    standings = [standing for service in scopes for standing in standings_of(baseline, new, service)]
    fill_p(standings, len(baseline))
    having: dict[str, int] = {}
    for run in baseline:
        for service in run.by_service:
            if service is not None:
                having[service] = having.get(service, 0) + 1
    usual = {service for service, count in having.items() if count >= (1 - RARE) * len(baseline)}
    first = {finding.code: finding for finding in reversed(after.findings)}
    counts = {code: sum(code in run.codes for run in baseline) for code in first}
    return AgainstBaseline(
        after,
        store,
        len(baseline),
        standings,
        sorted({*filter(None, new.by_service)} - {*having}) if baseline else [],
        sorted(usual - {*filter(None, new.by_service)}),
        [(first[code], count) for code, count in counts.items() if count <= RARE * len(baseline)] if baseline else [],
    )
