# SPDX-License-Identifier: Apache-2.0
"""`wiretale analyze --all --json`: transfers with their limits, and findings by rank; the list and the pages of findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.causes.registry import CAUSES, cause_of
from wiretale.analyzer.causes.registry import example_of as example_of_cause
from wiretale.analyzer.findings.evidence import evidence_of, first_rows
from wiretale.analyzer.findings.exchanges.turns import Split
from wiretale.analyzer.findings.explain import Explained, left_out
from wiretale.analyzer.findings.judged import judge
from wiretale.analyzer.findings.registry import RULES, example_of, page_of
from wiretale.reports.phrases import with_evidence

if TYPE_CHECKING:
    from wiretale.analyzer.rows import FindingRow
    from wiretale.analyzer.trace import Trace

SCHEMA = "wiretale.explain/2"
Row = dict[str, Any]


def transfer_object(explained: Explained) -> Row:
    """Returns a transfer with its headline and what it waited for."""
    row = explained.transfer.row
    times, waited_ns = explained.transfer.times, explained.transfer.waited_ns
    return {
        "flow": row["flow"],
        "direction": row["direction"],
        "name": explained.transfer.name,
        "protocol": explained.transfer.flow["protocol"],
        "application": explained.transfer.flow["application"],
        "server_name": explained.transfer.flow["server_name"],
        "headline": explained.headline,
        "minor": explained.transfer.is_control_connection,
        "limited_by": explained.limited_by,
        "share": explained.share,
        "waited_seconds": waited_ns / 1e9 if times else None,
        "times": {
            name: {"seconds": ns / 1e9, "share": ns / waited_ns if waited_ns else 0.0} for name, ns in times.items()
        },
        "goodput_bps": row["goodput_bps"],
        "maximum_bps": explained.maximum_bps,
    }


def seconds_of(split: Split) -> Row:
    """Returns the parts of a split in seconds."""
    return {name: ns / 1e9 for name, ns in split._asdict().items()}


def turns_object(trace: Trace, explained: Explained) -> Row:
    """Returns how the flow's payload alternates, its requests, and its time by who took it; null without turns."""
    turns, flow = trace.transfers.turns, explained.transfer.row["flow"]
    turns_of_flow, split = turns.of_flow(flow), turns.split_of(flow) or Split()
    return {
        "exchange": explained.transfer.flow["exchange"],
        "turns": turns_of_flow and {"count": len(turns_of_flow.first_frames), **seconds_of(split)},
    }


def list_object(version: str) -> Row:
    """Returns every code of a finding and of a cause with its title."""
    codes, causes = ([{"code": page.code, "title": page.title} for page in pages.values()] for pages in (RULES, CAUSES))
    return {"schema": "wiretale.finding-codes/1", "wiretale": version, "findings": codes, "causes": causes}


def cause_object(code: str, version: str) -> Row:
    """Returns the page of a cause. UsageError if no cause has this code."""
    rule = cause_of(code)
    names = ("code", "title", "shows", "unknown", "explains")
    page = {name: getattr(rule, name) for name in names}
    rivals = dict(rule.rivals)
    return {"schema": SCHEMA, "wiretale": version, **page, "rivals": rivals, "example": example_of_cause(code)}


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


def causes_of(trace: Trace, code: str | None) -> list[Row]:
    """Returns the causes, or those of a code, with the numbers of the findings that each explains, its rivals, packets and
    first flows."""
    parts = {
        name: first_rows(table, "cause", len(trace.causes))
        for name, table in (
            ("frames", trace.cause_frames),
            ("flows", trace.cause_flows),
            ("findings", trace.cause_findings),
            ("rivals", trace.cause_rivals),
        )
    }
    causes: list[Row] = []
    for row in (row for row in trace.causes if code in (None, row["code"])):
        members = {name: list(map(without_cause, rows[row["cause"] - 1])) for name, rows in parts.items()}
        causes.append({**row, **members, "findings": [member["finding"] for member in members["findings"]]})
    return causes


def without_cause(row: Mapping[str, Any]) -> Row:
    """Returns a row of a table of causes without the number of the cause."""
    return {name: value for name, value in row.items() if name != "cause"}


def explain_object(
    trace: Trace,
    transfers: Sequence[Explained],
    findings: Sequence[FindingRow],
    version: str,
    cause: str | None = None,
) -> Row:
    """Returns the object that `wiretale analyze --all --json` prints; `findings` are rows of that table, `cause` is a code."""
    evidence = evidence_of(trace)
    return {
        "schema": SCHEMA,
        "wiretale": version,
        "inputs": trace.inputs,
        "answer": trace.answer._asdict(),
        "causes": causes_of(trace, cause),
        "judged": judge(trace).as_object(),
        "time": seconds_of(trace.transfers.turns.split),
        "transfers": [{**transfer_object(explained), **turns_object(trace, explained)} for explained in transfers],
        "transfers_left_out": left_out(trace),
        "findings": [{**row, **evidence[row["finding"] - 1].members()} for row in with_evidence(trace, findings)],
    }
