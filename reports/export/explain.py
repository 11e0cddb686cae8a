# SPDX-License-Identifier: Apache-2.0
"""`wiretale explain --json`: transfers with their limits, and findings by rank; the list of findings, and the page of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.findings.explain import Explained, NumberedFinding, left_out
from wiretale.analyzer.findings.judged import judge
from wiretale.analyzer.findings.registry import RULES, example_of, page_of
from wiretale.analyzer.findings.turns import Split
from wiretale.reports.verdict import verdict

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

SCHEMA = "wiretale.explain/1"
FIELDS = [
    "code",
    "severity",
    "scope",
    "flow",
    "sentence",
    "cost",
    "cost_unit",
    "impact",
    "evidence",
    "advice",
    "filter",
]
Row = dict[str, Any]


def short_name(column: str) -> str:
    """Returns `window` for `limit_window_ns`."""
    return column.removeprefix("limit_").removesuffix("_ns")


def transfer_object(one: Explained) -> Row:
    """Returns a transfer with its headline and its time by limit."""
    row = one.transfer.row
    whole = one.transfer.accounted_ns
    return {
        "flow": row["flow"],
        "direction": row["direction"],
        "name": one.transfer.name,
        "protocol": one.transfer.flow["protocol"],
        "application": one.transfer.flow["application"],
        "server_name": one.transfer.flow["server_name"],
        "headline": one.headline,
        "minor": one.transfer.is_control_connection,
        "limited_by": short_name(one.limited_by) if one.limited_by else None,
        "share": one.share,
        "parted_seconds": whole / 1e9 if one.transfer.limits else None,
        "limits": {
            short_name(name): {"seconds": ns / 1e9, "share": ns / whole if whole else 0.0}
            for name, ns in one.transfer.limits.items()
        },
        "goodput_bps": row["goodput_bps"],
        "maximum_bps": one.maximum_bps,
    }


def seconds_of(split: Split) -> Row:
    """Returns the parts of a split in seconds."""
    return {name: ns / 1e9 for name, ns in split._asdict().items()}


def turns_object(trace: Trace, one: Explained) -> Row:
    """Returns how the flow's payload alternates, and the split of its turns; null without turns."""
    turns = trace.transfers.turns
    found = turns.of_flow(one.transfer.row["flow"])
    return {
        "exchange": one.transfer.flow["exchange"],
        "turns": found and {"count": len(found.first_frames), **seconds_of(found.split)},
        "idle": {name: ns / 1e9 for name, ns in turns.idle_parts(one.transfer).items()} or None,
    }


def list_object(version: str) -> Row:
    """Returns every code with its title."""
    found = [{"code": page.code, "title": page.title} for page in RULES.values()]
    return {"schema": "wiretale.finding-codes/1", "wiretale": version, "findings": found}


def page_object(code: str, version: str) -> Row:
    """Returns the page of a finding. UsageError if no finding has this code."""
    page = page_of(code)
    names = ("code", "title", "severity", "computed", "unknown", "weakens")
    return {
        "schema": SCHEMA,
        "wiretale": version,
        **{name: getattr(page, name) for name in names},
        "example": example_of(code),
    }


def explain_object(trace: Trace, transfers: Sequence[Explained], found: Sequence[NumberedFinding], version: str) -> Row:
    """Returns the object that `wiretale explain --json` prints; `found` is of numbered_findings()."""
    return {
        "schema": SCHEMA,
        "wiretale": version,
        "inputs": trace.inputs,
        "verdict": verdict(trace),
        "judged": judge(trace).as_object(),
        "time": seconds_of(trace.transfers.turns.split),
        "transfers": [{**transfer_object(one), **turns_object(trace, one)} for one in transfers],
        "transfers_left_out": left_out(trace),
        "findings": [
            {"rank": row["number"], **{name: value for name, value in row.items() if name in FIELDS}} for row in found
        ],
    }
