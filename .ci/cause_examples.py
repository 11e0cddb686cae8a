# SPDX-License-Identifier: Apache-2.0
"""The example of each cause in docs/causes.md: a capture of tests/support/causes_*.py, and what is said of it."""

from __future__ import annotations

import importlib
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import wiretale
from wiretale.analyzer.causes.registry import CAUSES
from wiretale.reports.phrases import cause_cost

ROOT = Path(__file__).parents[1]
SUPPORT = ROOT / "tests" / "support"
sys.path[:0] = [str(SUPPORT), str(SUPPORT / "models"), str(ROOT / "tests" / "scenarios")]
FRAMES_SHOWN = 4


def makers() -> dict[str, tuple[str, Any]]:
    """Returns the module and the function that writes the capture of each cause."""
    names = sorted(path.stem for path in SUPPORT.glob("causes_*.py"))
    modules = [importlib.import_module(name) for name in names]
    return {code: (module.__name__, make) for module in modules for code, make in module.EXAMPLES.items()}


def frame_lines(trace: wiretale.Trace, number: int) -> list[str]:
    """Returns the first packets that show a cause, as lines of time, ends and length."""
    frames = {row["frame"] for row in trace.cause_frames if row["cause"] == number}
    packets = {row["frame"]: row for row in trace.packets() if row["frame"] in frames}
    start_ns = min((ns for ns in trace.interfaces.column("first_ns") if ns is not None), default=0)
    return [
        f"frame {frame}: {((packets[frame]['time_ns'] or start_ns) - start_ns) / 1e9:.6f} s, flow {packets[frame]['flow']}, "
        f"{packets[frame]['payload_bytes'] or 0} bytes of payload"
        for frame in sorted(packets)[:FRAMES_SHOWN]
    ]


def example_of(code: str, module: str, make: Any) -> dict[str, Any]:
    """Returns what is said of the capture of a cause. SystemExit if it does not show it."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", wiretale.DamagedInputWarning)
        trace = wiretale.analyze(make(Path(folder) / "capture.pcap"))
        row = next((row for row in trace.causes if row["code"] == code), None)
        if row is None:
            raise SystemExit(f"the capture of {code} (tests/support/{module}.py) does not show it")
        rivals = [rival for rival in trace.cause_rivals if rival["cause"] == row["cause"]]
        return {
            "capture": f"tests/support/{module}.py",
            "certainty": row["certainty"],
            "cost": cause_cost(row),
            "sentence": row["sentence"],
            "frames": frame_lines(trace, row["cause"]),
            "rivals": {rival["rival"]: rival["fact"] for rival in rivals},
        }


def examples() -> dict[str, dict[str, Any]]:
    """Returns the examples of all causes that have one."""
    return {code: example_of(code, *makers()[code]) for code in CAUSES if code in makers()}
