# SPDX-License-Identifier: Apache-2.0
"""wiretale lab check: measures the precision of the link on this machine, with traffic of its own."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import WiretaleError
from wiretale.traffic.lab.flow import first_row
from wiretale.traffic.lab.hosts import ADDRESSES
from wiretale.traffic.lab.lifecycle import lab_for_run
from wiretale.traffic.lab.link import link_summary, write_truth
from wiretale.traffic.lab.process import last_line
from wiretale.traffic.lab.profile import Profile
from wiretale.traffic.lab.scenario import PORT, receiving, run_sender
from wiretale.traffic.program import find_program
from wiretale.version import __version__

BLOCK_BYTES = 1472  # an IP packet of 1500
SECONDS = 3
DELAY = "delay=5ms queue=20000"
MEDIAN_MOST_US, P99_MOST_US = 100, 1000


@dataclass(frozen=True)
class Trial:
    """The load of the link in one trial."""

    rate_bps: float  # of IP packets; 0 if unlimited
    promised: bool  # whether docs/lab.md promises its precision for this rate


TRIALS = (Trial(10e6, True), Trial(100e6, True), Trial(1e9, False))
QUERY = """
SELECT count(*) AS packets, sum(ip_bytes) AS bytes, max(in_ns) - min(in_ns) AS span_ns,
    median(out_ns - due_ns) / 1e3 AS median, quantile_cont(out_ns - due_ns, 0.99) / 1e3 AS p99,
    max(out_ns - due_ns) / 1e3 AS max, count(*) FILTER (fate NOT IN ('delivered', 'unfinished')) AS not_delivered
FROM read_parquet($truth) WHERE direction = 0 AND block_sequence IS NOT NULL
"""


def send(trial: Trial, folder: Path) -> None:
    """Sends blocks through a lab whose link only delays."""
    rate = trial.rate_bps * BLOCK_BYTES / (BLOCK_BYTES + 28)
    command = [find_program("wiretale-traffic"), "send", ADDRESSES["receiver"][0], "--port", str(PORT), "--udp"]
    command += ["--size", str(BLOCK_BYTES), "--rate", f"{rate:.0f}", "--time", str(SECONDS), "--json"]
    with lab_for_run(Profile("check", forward=DELAY, reverse=DELAY), folder) as lab, receiving(lab):
        done = run_sender(lab, command, SECONDS)
        if done.returncode not in (0, 3):
            raise WiretaleError(f"wiretale-traffic send: {last_line(done.stderr)}")


def measure(trial: Trial, folder: Path) -> dict[str, Any]:
    """Returns the figures of a trial: the truth of the link has the time when each packet left, and when it should have."""
    import duckdb

    from wiretale.analyzer.query import SETTINGS

    send(trial, folder)
    truth = write_truth(folder, folder / "truth.parquet")
    with duckdb.connect(config=dict(SETTINGS)) as connection:
        row = first_row(connection, QUERY, {"truth": str(truth)})
    if not row["packets"] or row["median"] is None:
        raise WiretaleError("no packet crossed the link: nothing to measure")
    overruns = sum(direction["overruns"] for direction in link_summary(folder)["directions"])
    is_precise = row["median"] <= MEDIAN_MOST_US and row["p99"] <= P99_MOST_US
    return {
        "asked_bps": trial.rate_bps,
        "carried_bps": round(row["bytes"] * 8e9 / row["span_ns"]) if row["span_ns"] else None,
        "packets": row["packets"],
        "overruns": overruns,
        "not_delivered": row["not_delivered"],
        **{f"error_us_{name}": round(row[name], 1) for name in ("median", "p99", "max")},
        "within_limits": not trial.promised or (is_precise and not overruns),
    }


def verdict(trials: list[dict[str, Any]]) -> str:
    """Returns the result in a sentence."""
    carried = max((trial["carried_bps"] for trial in trials if not trial["overruns"]), default=0)
    precise = [trial for trial in trials if trial["within_limits"]]
    promise = f"delay errors of {MEDIAN_MOST_US} µs (median) and {P99_MOST_US} µs (p99)"
    if len(precise) < len(trials):
        return f"This machine, with its current load, exceeds {promise} at 100 Mbit/s: use slower links or more cores."
    return f"This machine stays within {promise} at 100 Mbit/s; the link carried {carried / 1e6:.0f} Mbit/s and lost nothing."


def check_lab() -> dict[str, Any]:
    """Runs all trials, about four seconds each."""
    trials = []
    for trial in TRIALS:
        with tempfile.TemporaryDirectory(prefix="wiretale-lab-check-") as folder:
            trials.append(measure(trial, Path(folder)))
    return {
        "schema": "wiretale.lab-check/1",
        "wiretale": __version__,
        "cores": os.cpu_count(),
        "within_limits": all(trial["within_limits"] for trial in trials),
        "trials": trials,
        "verdict": verdict(trials),
    }
