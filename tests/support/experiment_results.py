# SPDX-License-Identifier: Apache-2.0
"""Directories of experiments with computed reports."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wiretale.traffic.experiment.plan import Plan, plan_text, read_plan
from wiretale.traffic.experiment.plan import Test as Case
from wiretale.traffic.experiment.store import Store

Row = dict[str, Any]
NOW = 1_790_000_000_000_000_000


def built_in(name: str, trials: int | None = None) -> Plan:
    return read_plan(*plan_text(name), trials=trials)


def report_of(test: Case, number: int, lost: int = 0) -> Row:
    """A report as of wiretale-traffic, with a rate of its own for each session and trial."""
    session = test.sessions[number]
    seconds = session.seconds or 1.0
    mbit = (session.rate_bps or 50e6 * (number + 1) * (1 + test.trial / 10)) / 1e6
    sent = session.count or max(2, int(mbit * 1e6 * seconds / 8 / session.block_bytes))
    came = sent - min(lost, sent)
    start = NOW + int(session.start_s * 1e9)
    end = {"elapsed_s": seconds, "rate_mbit_s": mbit, "first_ns": start, "last_ns": start + int(seconds * 1e9)}
    return {
        **{"schema": "wiretale.send/1", "complete": True, "start_ns": start},
        **{"blocks_sent": sent, "blocks_received": came, "blocks_lost": sent - came},
        **{"blocks_out_of_order": 0, "blocks_duplicate": 0, "blocks_corrupt": 0},
        **{"bytes_sent": sent * session.block_bytes, "bytes_received": came * session.block_bytes},
        "sender": end,
        "receiver": {**end, "host_dropped": None, "jitter_ns": None},
    }


def intervals_of(test: Case, number: int) -> list[Row]:
    """One each half second, all of the same rate."""
    session = test.sessions[number]
    count = int((session.seconds or 0) * 2)
    return [{"from_s": n / 2, "to_s": (n + 1) / 2, "bytes_sent": 1000 * (number + 1)} for n in range(count)]


def stored(plan: Plan, folder: Path, error: str | None = None, lost: int = 0) -> Path:
    """A folder as a run leaves it."""
    store = Store(folder)
    store.begin(plan)
    for test in plan.tests:
        sessions = [
            {
                **{"label": session.label, "error": error, "intervals": intervals_of(test, n)},
                "report": None if error else report_of(test, n, lost),
            }
            for n, session in enumerate(test.sessions)
        ]
        data = {"sessions": sessions, "error": error, "tracer": None, "started_ns": NOW, "ended_ns": NOW}
        test_data = json.loads(json.dumps(asdict(plan)))["tests"][plan.tests.index(test)]
        store.keep(test.name, {"test": test_data, **data})
    return folder
