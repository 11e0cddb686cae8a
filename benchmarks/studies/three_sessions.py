# SPDX-License-Identifier: Apache-2.0
"""S5's three TCP sessions, over 20 runs: how unevenly they share a link, and what a session has in its first seconds.

One run says little, because TCP shares differently in each. So a published figure is compared with what the runs had.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from studies.lab import StudyLab, received, study_lab

Row = tuple[Any, ...]
RUNS = 20
TOGETHER_SECONDS = 8
FIRST_SECONDS = 3  # of the published interim reports
# Of each session, seconds: its start and its time. The second has ended before the third starts, as 50 MiB do in 10 s.
STAGGERED = ((0, 12), (4, 3.5), (8, 3.5))
BUFFER = ("--buffer", "250KiB")
RATIOS = (39.6 / 29.3, 36.8 / 30.4)  # published: most over least of three sessions at once, in two trials
FIRST_RATES = (94.7, 68.9, 63.6)  # published: Mbit/s of each session in its first seconds
# Mbit/s of each flow in its first seconds, in the order of their starts; lines of control connections are few.
FIRST = f"""
WITH data AS (SELECT *, min(in_ns) OVER (PARTITION BY source_port) AS began FROM truth
    WHERE direction = 0 AND protocol = 6 AND payload_bytes > 1000)
SELECT sum(payload_bytes) * 8 / {FIRST_SECONDS * 1e6} AS rate FROM data WHERE in_ns - began < {FIRST_SECONDS * 10**9}
GROUP BY source_port, began HAVING rate > 1 ORDER BY began
"""


def together(lab: StudyLab) -> Iterator[float]:
    """Yields the most over the least rate of three sessions at once, for each run."""
    for _ in range(RUNS):
        report = lab.send("--streams", 3, "--time", TOGETHER_SECONDS)
        rates = [stream["rate_mbit_s"] for stream in received(report).get("streams", [])]
        if len(rates) == 3:
            yield max(rates) / min(rates)


def spread(name: str, unit: str, measured: Sequence[float], published: float) -> Row:
    """Returns a row: median, least and most of the runs beside the published figure."""
    return name, unit, len(measured), median(measured), min(measured), max(measured), published


def three_sessions(folder: Path) -> list[Row]:
    """S5: figure, unit, runs, median, least and most of the runs, published."""
    with study_lab("same-switch", folder / "together") as lab:
        ratios = list(together(lab))
    with study_lab("same-switch", folder / "first-seconds") as lab:
        tests = [(*BUFFER, "--start-offset", start, "--time", seconds) for start, seconds in STAGGERED]
        for _ in range(RUNS):
            lab.send_together(tests)
    first = [rate for (rate,) in lab.truth(FIRST)]
    name = "three TCPs at once: most over least"
    return [
        *(spread(f"{name}, trial {trial}", "", ratios, ratio) for trial, ratio in enumerate(RATIOS, start=1)),
        *(
            spread(
                f"three TCPs one after the other: first {FIRST_SECONDS} s, session {number + 1}", "Mbit/s", rates, rate
            )
            for number, rate in enumerate(FIRST_RATES)
            if (rates := [float(rate) for rate in first[number :: len(STAGGERED)]])
        ),
    ]
