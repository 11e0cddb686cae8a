# SPDX-License-Identifier: Apache-2.0
"""One report of each kind, for tests in a browser."""

from __future__ import annotations

from pathlib import Path

import wiretale
from capture_points import MS, Points, block, udp
from checkout import SAMPLES
from experiment_results import built_in, stored
from ideal_link import INTERVAL_NS, lab_row, measured
from plain_wire import Connection, Wire
from wiretale.reports.html.experiment.lab import write_lab_report
from wiretale.reports.html.experiment.page import write_page
from wiretale.traffic.experiment.results import read_outcome


def many_flows(path: Path, count: int = 3000) -> Path:
    """Connections of few packets; the larger the number, the smaller."""
    wire = Wire()
    for number in range(count):
        ends = (f"10.1.{number // 250}.{number % 250 + 1}", "10.2.0.1")
        talk = Connection(wire, port=20000 + number, ends=ends).open(number * 1.0)
        talk.data(number + 30.0, 0, 1400 - number // 3).ack(number + 50.0, 1400 - number // 3)
    return wire.write(path)


def analyze_report(folder: Path) -> Path:
    """Findings, limits and marks of a transfer beside 3,000 flows, and drops of the interface."""
    captures = [SAMPLES / "tcp_losses.pcap", SAMPLES / "capture_drops.pcapng", many_flows(folder / "many.pcap")]
    return wiretale.analyze(*captures).report(folder / "analyze.html")


def compare_report(folder: Path) -> Path:
    """Three points, with losses before the tracer and behind it."""
    from wiretale.analyzer.compare.comparison import compare_captures
    from wiretale.reports.html.compare.page import write_report

    points = Points()
    for n in range(600):
        before, after = n % 7 == 5, n % 100 == 50
        delays = (0, None if before else 2, None if before or after else 5 + n % 13 / 100)
        points.pass_by(udp(block(31, 0, n), n), n, delays)
    with compare_captures(*points.write(folder)) as comparison:
        return write_report(comparison, folder / "compare.html")


def diff_report(folder: Path) -> Path:
    """Two runs with other flows, losses and RTTs, the first with tables alone."""
    from wiretale.analyzer.diff.difference import diff_runs
    from wiretale.analyzer.diff.run import load_run
    from wiretale.reports.html.compare.diff import write_report

    wiretale.analyze(SAMPLES / "tcp_blocks.pcapng").write(folder / "before")
    runs = load_run(str(folder / "before")), load_run(str(SAMPLES / "timeouts.pcap"), keep=True)
    return write_report(diff_runs(*runs), folder / "diff.html")


def experiment_report(folder: Path, plan: str = "s2-controller-sweep") -> Path:
    """Means and trials by block size, published figures beside."""
    trials = 2 if plan == "s2-controller-sweep" else None
    return write_page(read_outcome(stored(built_in(plan, trials), folder / plan)), folder / f"{plan}.html")


def lab_report(folder: Path) -> Path:
    """A narrow link, with the published figures of one."""
    flow = measured(folder, 600, INTERVAL_NS, 8 * MS, 10 * MS, 20)
    row = lab_row(flow, published={"latency_ms": 162, "jitter_ms": 3}, capture_drops={"before": 0, "after": 0})
    return write_lab_report("narrow", [row], [flow.bins], folder / "lab.html")


REPORTS = {
    "analyze": analyze_report,
    "compare": compare_report,
    "diff": diff_report,
    "experiment": experiment_report,
    "sessions": lambda folder: experiment_report(folder, "s5-parallel-tcp"),
    "lab": lab_report,
}
