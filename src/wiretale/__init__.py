# SPDX-License-Identifier: Apache-2.0
"""Analyzes packet captures.

>>> import wiretale
>>> trace = wiretale.analyze("sample_pcaps/tcp_losses.pcap")
>>> trace.flows[0]["payload_bytes"]
301712
>>> for row in trace.findings:
...     print(row["severity"], row["code"])
warning lost-downstream
warning timeout-stalls
info recovery-limited
>>> trace.query("select source, sum(unique_bytes) from directions group by all order by 2 desc").fetchall()
[('192.0.2.10', 300000), ('198.51.100.20', 0)]

`explain`, `compare`, `diff`, `theory`, `verify` and `cut` are the commands of these names; `check` has the conditions of
`--fail-if`; `open` reopens an output folder,
`Store` keeps many captures, and `view` serves the page of one.
The results print themselves as the commands do.
"""

from __future__ import annotations

from wiretale.version import __version__

TYPE_CHECKING = False  # importing typing would take 2 ms
if TYPE_CHECKING:
    from typing import Any

    from wiretale.analyzer.causes.answer import Answer
    from wiretale.analyzer.compare.capture_point import CapturePoint
    from wiretale.analyzer.compare.clock_offset import Clock
    from wiretale.analyzer.compare.loss_location import Ledger
    from wiretale.analyzer.compare.one_way_delay import Delay
    from wiretale.analyzer.diff.baseline import Standing
    from wiretale.analyzer.diff.difference import Change, FindingChange, FlowPair, TimeChange
    from wiretale.analyzer.diff.run import Run
    from wiretale.analyzer.diff.trace_condition import Checks
    from wiretale.analyzer.errors import (
        DamagedInputWarning,
        InputError,
        MissingToolError,
        OutputError,
        SkippedFileWarning,
        SkippedFolderWarning,
        UsageError,
        WiretaleError,
    )
    from wiretale.analyzer.findings.explain import Explained
    from wiretale.analyzer.flow import Flow
    from wiretale.analyzer.query import QueryResult
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace, analyze
    from wiretale.api import (
        CaptureComparison,
        Explanation,
        LinkCapacity,
        RunDifference,
        StoreDifference,
        Verification,
        compare,
        diff,
        explain,
        open,
        theory,
        verify,
    )
    from wiretale.checking import check
    from wiretale.copying import Cut, cut
    from wiretale.serving import view
    from wiretale.store import Store, StoreRows

__all__ = [
    "Answer",
    "CaptureComparison",
    "CapturePoint",
    "Change",
    "Checks",
    "Clock",
    "Cut",
    "DamagedInputWarning",
    "Delay",
    "Explained",
    "Explanation",
    "FindingChange",
    "Flow",
    "FlowPair",
    "InputError",
    "Ledger",
    "LinkCapacity",
    "MissingToolError",
    "OutputError",
    "QueryResult",
    "Run",
    "RunDifference",
    "SkippedFileWarning",
    "SkippedFolderWarning",
    "Standing",
    "Store",
    "StoreDifference",
    "StoreRows",
    "Table",
    "TimeChange",
    "Trace",
    "UsageError",
    "Verification",
    "WiretaleError",
    "__version__",
    "analyze",
    "check",
    "compare",
    "cut",
    "diff",
    "explain",
    "open",
    "theory",
    "verify",
    "view",
]

HOMES = {
    **dict.fromkeys(("Answer",), "wiretale.analyzer.causes.answer"),
    **dict.fromkeys(("QueryResult",), "wiretale.analyzer.query"),
    **dict.fromkeys(("Explained",), "wiretale.analyzer.findings.explain"),
    **dict.fromkeys(("Ledger",), "wiretale.analyzer.compare.loss_location"),
    **dict.fromkeys(("Clock",), "wiretale.analyzer.compare.clock_offset"),
    **dict.fromkeys(("Delay",), "wiretale.analyzer.compare.one_way_delay"),
    **dict.fromkeys(("CapturePoint",), "wiretale.analyzer.compare.capture_point"),
    **dict.fromkeys(("Change", "FindingChange", "FlowPair", "TimeChange"), "wiretale.analyzer.diff.difference"),
    **dict.fromkeys(("Standing",), "wiretale.analyzer.diff.baseline"),
    **dict.fromkeys(("Run",), "wiretale.analyzer.diff.run"),
    "Table": "wiretale.analyzer.table",
    "Flow": "wiretale.analyzer.flow",
    **dict.fromkeys(("Trace", "analyze"), "wiretale.analyzer.trace"),
    **dict.fromkeys(
        ("CaptureComparison", "Explanation", "LinkCapacity", "RunDifference", "StoreDifference", "Verification"),
        "wiretale.api",
    ),
    "Checks": "wiretale.analyzer.diff.trace_condition",
    "check": "wiretale.checking",
    **dict.fromkeys(("Cut", "cut"), "wiretale.copying"),
    **dict.fromkeys(("Store", "StoreRows"), "wiretale.store"),
    "view": "wiretale.serving",
    **dict.fromkeys(("compare", "diff", "explain", "open", "theory", "verify"), "wiretale.api"),
}  # the others are in wiretale.analyzer.errors


def __getattr__(name: str) -> Any:
    """Imports a public name at its first use, because `wiretale --version` needs no name."""
    if name not in __all__:
        raise AttributeError(f"module 'wiretale' has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(HOMES.get(name, "wiretale.analyzer.errors")), name)
    except ImportError as error:
        from wiretale.analyzer.errors import MissingToolError
        from wiretale.installation import explain_import

        raise MissingToolError(explain_import(error)) from error


def __dir__() -> list[str]:
    return sorted(__all__)
