# SPDX-License-Identifier: Apache-2.0
"""Whether the flows of an experiment agree with those that its plan was modeled from.

Sizes and gaps of each UDP session are compared by the two-sample test of Kolmogorov and Smirnov. Gaps may differ by the
resolution, and a share of OUTLIERS of them by more: a sender reports by how much 99% of its blocks were late at most, and a
gap has two ends. The p-value is asymptotic (Stephens 1970). It is a bound if values are repeated, as sizes are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.errors import InputError, UsageError
from wiretale.traffic.experiment.session_series import assign, capture_of, data_directions
from wiretale.traffic.experiment.store import PLAN_FILE, Store
from wiretale.traffic.model.datagrams import Datagrams
from wiretale.traffic.model.flows import DIRECTIONS
from wiretale.traffic.model.samples import Place, Samples
from wiretale.traffic.model.turns import Turns
from wiretale.traffic.pattern import SIZE_LEAST

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

LEAST_P = 0.01  # below it, the distributions differ
OUTLIERS = 0.02
TURN_NS = 1_000_000  # the resolution of turns, whose ends sleep until they are due
PATH_NS = 250_000  # of the resolution: the error of an emulated link and of a capture
LABEL = re.compile(rf"flow (\d+) ({'|'.join(DIRECTIONS)}|turns)")
# Measure, column, and whether it is a time.
MEASURES: dict[type[Samples], tuple[tuple[str, str, bool], ...]] = {
    Datagrams: (("sizes", "size", False), ("gaps", "gap", True)),
    Turns: (
        *(("requests", "request", False), ("responses", "response", False)),
        *(("server times", "server", True), ("pauses", "pause", True)),
    ),
}
ORIGINAL, RERUN = 0, 1


@dataclass(frozen=True)
class Measure:
    """One measure of a session; `agrees` is None if it cannot be determined."""

    session: str
    measure: str
    original: int  # values
    rerun: int
    original_mean: float | None
    rerun_mean: float | None
    resolution_ns: int | None = None
    distance: float | None = None
    p: float | None = None
    agrees: bool | None = None


def probability(distance: float, first: int, second: int) -> float:
    """Returns the probability of at least this distance of two samples with the same distribution."""
    size = math.sqrt(first * second / (first + second))
    scale = (size + 0.12 + 0.11 / size) * distance
    if scale < 0.2:  # the sum converges slowly, to 1
        return 1.0
    terms = ((1 if k % 2 else -1) * math.exp(-2 * (k * scale) * (k * scale)) for k in range(1, 101))
    return min(max(2 * sum(terms), 0.0), 1.0)


def tested(samples: Samples, session: str, first: Place, second: Place, resolution_ns: int) -> Iterator[Measure]:
    """Yields the measures of a session."""
    for measure, column, is_time in MEASURES[type(samples)]:
        count, mean, most = samples.figures(column, first)
        other, other_mean, _ = samples.figures(column, second)
        slack, spare = (resolution_ns, OUTLIERS) if is_time else (0, 0.0)
        if not count and not other:  # as the gaps of one datagram
            continue
        facts = Measure(session, measure, count, other, mean, other_mean, slack or None)
        if not count or not other or (most or 0) < slack:
            yield facts
            continue
        distance = samples.distance(column, first, second, slack)
        p = probability(max(distance - spare, 0.0), count, other)
        yield replace(facts, distance=distance, p=p, agrees=p >= LEAST_P)


def modeled(data: dict[str, Any]) -> dict[int, tuple[int, int]]:
    """Returns the flow and direction that each session of a test was modeled from."""
    flows = {}
    for number, session in enumerate(data["test"]["sessions"]):
        if match := LABEL.fullmatch(session["label"]):
            flows[number] = (int(match[1]), 0 if match[2] == "turns" else DIRECTIONS.index(match[2]))
    return flows


def resolution_of(report: dict[str, Any]) -> int:
    """Returns the timing resolution of a session: how late its sender was, and the error of the path."""
    return int((report.get("sender") or {}).get("late_p99_ns") or 0) + PATH_NS


def stream_measure(session: str, original: Trace, flow: tuple[int, int], report: dict[str, Any], count: int) -> Measure:
    """Returns the measure of a TCP stream: its bytes, of which each of the `count` blocks may have a part of a byte more."""
    query = f"select unique_bytes from directions where flow = {flow[0]:d} and direction = {flow[1]:d}"
    sent = original.query(query).fetchall()[0][0] or 0
    received = report.get("bytes_received")
    agrees = None if received is None else 0 <= received - sent < max(count, SIZE_LEAST)
    return Measure(session, "bytes", sent, received or 0, None, None, agrees=agrees)


def sent_flows(
    rerun: Trace, sessions: list[dict[str, Any]], reports: list[dict[str, Any]]
) -> dict[int, tuple[int, int]]:
    """Returns flow and direction of each session in the capture of its test."""
    planned = [
        (session["protocol"], (report.get("sender") or {}).get("first_ns"), session["streams"])
        for session, report in zip(sessions, reports, strict=True)
    ]
    return {number: place for place, number in assign(data_directions(rerun), planned).items()}


def of_test(original: Trace, data: dict[str, Any], folder: Path, resolution_ns: int | None) -> Iterator[Measure]:
    """Yields the measures of all sessions of a test. InputError if it has no capture with them."""
    test, sessions = data["test"], modeled(data)
    reports = [entry["report"] or {} for entry in data["sessions"]]
    rerun = capture_of(data, folder)
    if rerun is None:
        raise InputError(f"{folder}: {test['name']}: expected a capture: run the plan in a lab, or with --interface")
    flows = sent_flows(rerun, test["sessions"], reports)
    udp = {number: flow for number, flow in sessions.items() if test["sessions"][number]["protocol"] == "udp"}
    datagrams = Datagrams().add(original, [flow for flow, _ in udp.values()], ORIGINAL)
    datagrams.add(rerun, sorted({flows[number][0] for number in udp if number in flows}), RERUN)
    turns = Turns().add(original, ORIGINAL).add(rerun, RERUN)
    for number, (flow, direction) in sessions.items():
        session, report = f"{test['name']}, {test['sessions'][number]['label']}", reports[number]
        if number in udp:
            place = flows.get(number, (-1, 0))
            resolution = resolution_of(report) if resolution_ns is None else resolution_ns
            yield from tested(datagrams, session, (ORIGINAL, flow, direction), (RERUN, *place), resolution)
        elif test["sessions"][number].get("turns"):
            first, second = (ORIGINAL, flow, turns.direction(flow)), (RERUN, *flows.get(number, (-1, 0)))
            yield from tested(turns, session, first, second, TURN_NS if resolution_ns is None else resolution_ns)
        else:
            count = test["sessions"][number].get("count") or 0
            yield stream_measure(session, original, (flow, direction), report, count)


def experiment_folder(folder: Path) -> Path:
    """Returns the directory of an experiment: the output of `experiment run`, or the one in that of `lab run`."""
    for place in (folder, folder / "experiment"):
        if (place / PLAN_FILE).exists():
            return place
    raise InputError(f"{folder}: expected the output of `wiretale experiment run` or `wiretale lab run`")


def agreement(original: Trace, folder: Path, resolution_ns: int | None = None) -> list[Measure]:
    """Returns the measures of all modeled sessions; `resolution_ns` replaces that of their senders."""
    place = experiment_folder(folder)
    flow_count = original.totals["flows"]
    measures: list[Measure] = []
    for data in Store(place).tests():
        for flow, _ in modeled(data).values():
            if flow >= flow_count:
                raise UsageError(f"{place}: its plan has flow {flow}: expected the capture that it was modeled from")
        measures += of_test(original, data, place, resolution_ns)
    if not measures:
        raise InputError(f"{place}: expected a completed test of a plan that `wiretale experiment model` made")
    return measures
